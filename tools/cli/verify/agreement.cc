// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/verify/agreement.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/status_macros.h"
#include "log/format/checksum.h"

namespace alpheus::cli {
namespace {

// Part of a record that must be equal. "Cleaned" is a hint that one replica may
// have alone.
struct Identity {
  Epoch epoch;
  size_t bytes = 0;
  uint32_t checksum = 0;

  bool operator==(const Identity&) const = default;
};

using Identities = std::map<Lsn, Identity>;

// Up to `end` or where the replica's records end.
absl::StatusOr<Identities> ReadIdentities(LogReader* reader, Lsn end) {
  Identities identities;
  bool beyond = false;
  const absl::Status read = reader->ForEach([&](const ReaderRecord& record) {
    beyond = record.lsn > end;
    if (beyond) return absl::CancelledError("beyond the end");
    identities[record.lsn] = {record.epoch, record.payload.size(),
                              Crc32c(0, record.payload)};
    return absl::OkStatus();
  });
  if (!read.ok() && !beyond) return read;
  return identities;
}

absl::Status Differ(uint64_t node, uint64_t other, Lsn lsn) {
  return absl::DataLossError(
      absl::StrCat("LSN ", lsn.value, ": node ", node, " and node ", other,
                   " hold different records, and each is whole by itself. Keep "
                   "copies of both regions"));
}

}  // namespace

std::string Agreement::ToString() const {
  const std::string durable =
      absl::StrCat("durable up to LSN ", durable_lsn.value, ": ");
  const std::string quorum = absl::StrCat(" (W is ", write_quorum, ")\n");
  if (nodes.empty()) {
    return absl::StrCat(
        durable, "no node that could be read has all of these records", quorum);
  }
  if (nodes.size() == 1) {
    return absl::StrCat(durable, records,
                        " records, not compared: ", "only node ", nodes.front(),
                        " has them all", quorum);
  }
  return absl::StrCat(durable, records, " records, the same on nodes ",
                      absl::StrJoin(nodes, ", "), quorum);
}

absl::StatusOr<Agreement> CompareReplicas(ClusterReader* reader) {
  Agreement agreement;
  agreement.durable_lsn = reader->durable_lsn();
  agreement.write_quorum = reader->write_quorum();
  Epoch newest;
  for (const ReplicaReading& replica : reader->replicas()) {
    if (replica.info) newest = std::max(newest, replica.info->log_epoch);
  }
  std::map<Lsn, std::pair<Identity, uint64_t>> known;  // and a node that has it
  for (size_t i = 0; i < reader->replicas().size(); ++i) {
    const ReplicaReading& replica = reader->replicas()[i];
    if (!replica.status.ok() || replica.info->log_epoch != newest ||
        replica.info->repairing) {
      continue;
    }
    ALPHEUS_ASSIGN_OR_RETURN(
        const Identities identities,
        ReadIdentities(reader->reader(i), agreement.durable_lsn));
    for (const auto& [lsn, identity] : identities) {
      const auto [at, is_new] = known.try_emplace(lsn, identity, replica.node);
      if (!is_new && at->second.first != identity) {
        return Differ(replica.node, at->second.second, lsn);
      }
    }
    if (replica.report->end_lsn >= agreement.durable_lsn) {
      agreement.nodes.push_back(replica.node);
    }
  }
  agreement.records = known.size();
  return agreement;
}

}  // namespace alpheus::cli
