// SPDX-License-Identifier: Apache-2.0
// processes: the processes of the log's cluster. A node serves its replica, as
// alpheusd does. The program of a node stands, and appends while it is primary,
// as `alpheus append --stand` does.
//
// Thread safety: one thread each.
#ifndef ALPHEUS_BENCH_FAILOVER_ALPHEUS_PROCESSES_H_
#define ALPHEUS_BENCH_FAILOVER_ALPHEUS_PROCESSES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace alpheus::bench::failover {

inline constexpr const char* kNodeKind = "node";
inline constexpr const char* kProgramKind = "program";

// Returns the file with the notes of such a process.
std::string NotesOf(const std::string& folder, const std::string& kind,
                    uint64_t node);

// Returns the bytes of a ring whose log holds `log_mib` under load.
uint64_t RingBytesFor(uint64_t log_mib);

// Serves a node of the cluster in `folder` until it is killed. Says its
// address. Errors: as Node::Start.
absl::Status ServeNode(const std::string& folder, uint64_t node);

// Stands at a node until it is killed. While it is primary it appends records
// of 1 KiB, each forced alone, and keeps the last `log_mib` of them. Errors: as
// Candidate::Stand.
absl::Status StandAtNode(const std::string& folder, uint64_t node,
                         uint64_t log_mib);

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_ALPHEUS_PROCESSES_H_
