// SPDX-License-Identifier: Apache-2.0
// cluster_reading: reads a cluster's log as its users do, by `alpheus cat`.
//
// Thread safety: one thread for each cluster.
#ifndef ALPHEUS_TOOLS_NEMESIS_ORACLES_CLUSTER_READING_H_
#define ALPHEUS_TOOLS_NEMESIS_ORACLES_CLUSTER_READING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/nemesis/oracles/recovery_oracle.h"
#include "tools/nemesis/processes/cluster.h"

namespace alpheus::demo {

// Reads a log that nobody writes. Errors: DataLoss (a command failed);
// DeadlineExceeded.
absl::StatusOr<std::vector<RecoveredRecord>> ReadLog(Cluster* cluster,
                                                     const std::string& log);

// Reads a log while it is written; it must have all records up to this LSN.
// Errors: as ReadLog.
absl::StatusOr<std::vector<RecoveredRecord>> ReadBesideWriter(
    Cluster* cluster, const std::string& log, uint64_t lsn_max);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ORACLES_CLUSTER_READING_H_
