// SPDX-License-Identifier: Apache-2.0
// verbs_floor: what replicating a record must cost at least over an adapter
// with RDMA: its verbs and nothing else.
//
// Idea: the floor of floor.h with a queue pair instead of a socket. The primary
// writes the record with immediate into the backup's memory, and persists its
// own copy meanwhile; the backup finds the completion of a receive, flushes
// what the immediate names, fences, and sends 40 bytes. Written on rdma-core
// directly: no fabric, no checksum, no order, no epoch. Requests and answers go
// inline, and one completion in so many is asked for, as the log's fabric does.
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

// One backup, at the second of RdmaHosts().
MakeCandidate VerbsFloor();

// A backup's process; returns when the primary has gone.
absl::Status ServeVerbsFloor(const std::string& folder, uint64_t ring_bytes);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_VERBS_FLOOR_H_
