// SPDX-License-Identifier: Apache-2.0
// verbs_floor: the minimum cost of replicating a record over an RDMA adapter:
// its verbs and nothing else.
//
// Idea: the floor of floor.h with a queue pair instead of a socket. The primary
// writes the record with immediate into the backup's memory, and persists its
// own copy meanwhile. The backup finds the completion of a receive, flushes the
// range that the immediate names, fences, and sends 40 bytes. Written on
// rdma-core directly: no fabric, no checksum, no order, no epoch. Requests and
// answers go inline, and one completion in several is requested, like in the
// log's fabric.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_VERBS_FLOOR_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_VERBS_FLOOR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kVerbsFloorName = "verbs";

// Makes a candidate with one backup, at the second of RdmaHosts().
MakeCandidate VerbsFloor();

// Runs a backup's process; returns when the primary has gone.
absl::Status ServeVerbsFloor(const std::string& folder, uint64_t ring_bytes);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_VERBS_FLOOR_H_
