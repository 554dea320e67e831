// SPDX-License-Identifier: Apache-2.0
// agreement: checks that the replicas of a log hold the same records.
#ifndef ALPHEUS_TOOLS_CLI_VERIFY_AGREEMENT_H_
#define ALPHEUS_TOOLS_CLI_VERIFY_AGREEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "alpheus/cluster_reader.h"

namespace alpheus::cli {

struct Agreement {
  Lsn durable_lsn;
  uint64_t records = 0;         // compared on each replica
  std::vector<uint64_t> nodes;  // nodes that hold them all
  uint32_t write_quorum = 0;

  // One line.
  std::string ToString() const;
};

// Compares LSN, epoch and bytes of all records up to the durable LSN among the
// replicas that have the newest epoch, and are not being repaired.
// Errors: DataLoss (two differ, or one lacks a record: nodes and LSN).
absl::StatusOr<Agreement> CompareReplicas(ClusterReader* reader);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_VERIFY_AGREEMENT_H_
