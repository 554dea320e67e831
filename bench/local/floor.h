// SPDX-License-Identifier: Apache-2.0
// floor: the cheapest way to make the bytes of a record persistent, and
// nothing else; what every log is measured against.
//
// Idea: the lines of one Alpheus record (48-byte header and payload, rounded
// up to lines) are stored and fenced once. No checksum, no order, no place to
// find: the source is one buffer in the cache, the target advances through a
// region as large as the logs' rings, so that its lines are as cold as theirs.
// Which kind of store is cheapest depends on size and processor; all are run
// and the cheapest is the floor.
#ifndef ALPHEUS_BENCH_LOCAL_FLOOR_H_
#define ALPHEUS_BENCH_LOCAL_FLOOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/local/candidate.h"

namespace alpheus::bench {

// One candidate for each kind of store that this processor has: cached stores
// with clwb, and non-temporal stores of 16 and of 64 bytes.
absl::StatusOr<std::vector<std::unique_ptr<Candidate>>> MakeFloors(
    const Workload& workload);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_FLOOR_H_
