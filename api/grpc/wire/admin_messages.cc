// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/wire/admin_messages.h"

#include <cstdint>
#include <string>

#include "recovery/protocol/messages.h"

namespace alpheus::rpc {

void SetScrubs(const std::vector<ScrubResult>& scrubs, v1::ScrubResponse* out) {
  for (const ScrubResult& scrub : scrubs) {
    v1::ScrubResponse::Replica* const replica = out->add_replicas();
    replica->set_node(scrub.node);
    replica->set_address(scrub.address);
    replica->set_code(static_cast<int32_t>(scrub.status.code()));
    replica->set_message(std::string(scrub.status.message()));
    replica->set_is_empty(scrub.said.is_empty);
    replica->set_records(scrub.said.pass.records);
    replica->set_bytes(scrub.said.pass.bytes);
    replica->set_damaged(scrub.said.pass.damaged);
    replica->set_repaired(scrub.said.pass.repaired);
    replica->set_unrepairable(scrub.said.pass.unrepairable);
    for (const recovery::LsnRun& run : scrub.said.unrepairable) {
      v1::ScrubResponse::Lsns* const lsns = replica->add_unrepairable_lsns();
      lsns->set_first(run.first.value);
      lsns->set_last(run.end.value - 1);
    }
  }
}

void SetDeleted(const DeletedLog& deleted, v1::DeleteLogResponse* out) {
  for (const uint64_t node : deleted.removed) out->add_removed_nodes(node);
  for (const uint64_t node : deleted.left) out->add_left_nodes(node);
}

void SetMembers(const RecoveryReport& report, v1::MembersChanged* out) {
  out->set_epoch(report.epoch.value);
  out->set_head_lsn(report.head_lsn.value);
  out->set_end_lsn(report.end_lsn.value);
  out->set_was_running(report.was_running);
  for (const std::string& absent : report.absent_members) {
    out->add_absent_members(absent);
  }
  for (const std::string& repair : report.repairs) out->add_repairs(repair);
}

}  // namespace alpheus::rpc
