// SPDX-License-Identifier: Apache-2.0
// floor: what replicating a record must cost at least over TCP: sockets and
// nothing else.
//
// Idea: the primary sends the record with one call to each backup, persists its
// own copy meanwhile and waits for as many answers of the size of an ack as it
// takes; a backup copies what has come, flushes, fences, answers. No checksum,
// no order, no place to find, no epoch. A batch is one record of that size.
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

// A backup's process; returns when the primary has gone.
absl::Status ServeFloor(const std::string& folder, uint64_t ring_bytes);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_FLOOR_H_
