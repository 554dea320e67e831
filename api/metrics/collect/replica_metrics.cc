// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/collect/replica_metrics.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_replace.h"
#include "api/metrics/model/catalogue.h"
#include "recovery/protocol/reject_counters.h"

namespace alpheus::metrics {
namespace {

void AddServed(const NodeStatus::Replica& replica, Families* families) {
  const Labels of_log = {{"log", replica.log}};
  const recovery::Followed& followed = replica.followed;
  families->Add(kReplicaInSession, of_log,
                uint64_t{followed.in_session ? 1U : 0U});
  families->Add(kReplicaEpoch, of_log, followed.log_epoch.value);
  families->Add(kReplicaHead, of_log, followed.head.lsn.value);
  families->Add(kReplicaPersisted, of_log, followed.persisted_lsn.value);
  families->Add(kReplicaDurable, of_log, followed.durable_lsn.value);
  const recovery::Scrubbed& scrubbed = replica.scrubbed;
  families->Add(kReplicaScrubPasses, of_log, scrubbed.passes);
  families->Add(kReplicaScrubbedRecords, of_log, scrubbed.total.records);
  families->Add(kReplicaScrubbedBytes, of_log, scrubbed.total.bytes);
  families->Add(kReplicaDamaged, of_log, scrubbed.total.damaged);
  families->Add(kReplicaRepaired, of_log, scrubbed.total.repaired);
  families->Add(kReplicaUnrepairable, of_log,
                uint64_t{scrubbed.unrepairable.size()});
}

}  // namespace

void AddReplicaMetrics(const NodeStatus& status, Families* families) {
  families->Add(kNodeConnections, {}, uint64_t{status.connections});
  for (size_t i = 0; i < status.rejected.size(); ++i) {
    const auto reason = static_cast<recovery::RejectReason>(i);
    const std::string name = absl::StrReplaceAll(
        std::string(recovery::RejectReasonName(reason)), {{" ", "_"}});
    families->Add(kNodeRejections, {{"reason", name}}, status.rejected[i]);
  }
  if (status.certificate_end_s) {
    families->Add(kNodeCertificateEnd, {},
                  static_cast<double>(*status.certificate_end_s));
  }
  for (const NodeStatus::Replica& replica : status.replicas) {
    families->Add(kReplicaServed, {{"log", replica.log}},
                  uint64_t{replica.is_served ? 1U : 0U});
    if (replica.is_served) AddServed(replica, families);
  }
}

}  // namespace alpheus::metrics
