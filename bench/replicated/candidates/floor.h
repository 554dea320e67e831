// SPDX-License-Identifier: Apache-2.0
// floor: the minimum cost of replicating a record over TCP: sockets and nothing
// else.
//
// Idea: the primary sends the record with one call to each backup, persists its
// own copy meanwhile and waits for enough answers of the size of an ack. A
// backup copies the bytes, flushes, fences, answers. There is no checksum, no
// order, no search for a place, no epoch. A batch is one record of that size.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_FLOOR_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_FLOOR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kFloorName = "floor";

MakeCandidate Floor();

// Runs a backup's process; returns when the primary has gone.
absl::Status ServeFloor(const std::string& folder, uint64_t ring_bytes);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_FLOOR_H_
