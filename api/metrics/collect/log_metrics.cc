// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/collect/log_metrics.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "alpheus/replication_status.h"
#include "api/metrics/model/catalogue.h"
#include "log/core/durability/persisted_by.h"

namespace alpheus::metrics {
namespace {

constexpr double kSecondsPerNano = 1e-9;

void AddOpening(const std::string& log, const OpeningMoments& moments,
                Families* families) {
  if (moments.opened_ns == 0) return;
  const auto add = [&](const char* phase, int64_t from, int64_t to) {
    families->Add(kLogOpeningSeconds, {{"log", log}, {"phase", phase}},
                  static_cast<double>(to - from) * kSecondsPerNano);
  };
  add("promise", moments.began_ns, moments.promised_ns);
  add("choose", moments.promised_ns, moments.chosen_ns);
  add("install", moments.chosen_ns, moments.installed_ns);
  add("use", moments.installed_ns, moments.opened_ns);
}

void AddReplication(const std::string& name, const ReplicationStatus& status,
                    Families* families) {
  const Labels of_log = {{"log", name}};
  families->Add(kLogFailed, of_log, uint64_t{status.has_failed ? 1U : 0U});
  families->Add(kLogReplicas, of_log, uint64_t{status.replicas});
  families->Add(kLogWriteQuorum, of_log, uint64_t{status.write_quorum});
  families->Add(kLogInSync, of_log, uint64_t{status.in_sync});
  for (const uint64_t node : status.nodes) {
    const bool is_in_sync = std::ranges::find(status.out_of_sync_nodes, node) ==
                            status.out_of_sync_nodes.end();
    families->Add(kLogMemberInSync,
                  {{"log", name}, {"node", absl::StrCat(node)}},
                  uint64_t{is_in_sync ? 1U : 0U});
  }
  families->Add(kLogJoins, of_log, status.joins);
  families->Add(kLogFailedJoins, of_log, status.failed_joins);
  families->Add(kLogScrubPasses, of_log, status.scrub_passes);
  families->Add(kLogScrubbedRecords, of_log, status.scrubbed_records);
  families->Add(kLogDamaged, of_log, status.damaged_records);
  families->Add(kLogRepaired, of_log, status.repaired_records);
}

// Positions only grow, so those that are behind are read first: then none of
// them is shown ahead of one that it follows.
void AddOpenLog(const std::string& name, const Log& log, Families* families) {
  const Labels of_log = {{"log", name}};
  families->Add(kLogEpoch, of_log, log.report().epoch.value);
  families->Add(kLogHead, of_log, log.head_lsn().value);
  families->Add(kLogInSyncLsn, of_log,
                log.persisted_lsn(PersistedBy::kAllInSync).value);
  families->Add(kLogDurable, of_log, log.durable_lsn().value);
  families->Add(kLogPersisted, of_log,
                log.persisted_lsn(PersistedBy::kOwnReplica).value);
  families->Add(kLogNext, of_log, log.next_lsn().value);
  families->Add(kLogExposed, of_log, log.Exposed());
  families->Add(kLogExposedMax, of_log, log.ExposedMax());
  families->Add(kLogRingBytes, of_log, log.ring_bytes());
  families->Add(kLogRingUsed, of_log, log.ring_bytes() - log.free_bytes());
  AddReplication(name, log.replication_status(), families);
}

}  // namespace

void AddLogMetrics(const HeldLogs::Held& held, Families* families) {
  const Labels of_log = {{"log", held.name}};
  families->Add(kLogPrimary, of_log, uint64_t{held.log != nullptr ? 1U : 0U});
  families->Add(kLogOpenings, of_log, held.openings);
  AddOpening(held.name, held.last_opening, families);
  if (held.log != nullptr) AddOpenLog(held.name, *held.log, families);
}

}  // namespace alpheus::metrics
