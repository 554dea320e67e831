// SPDX-License-Identifier: Apache-2.0
// floor: the cheapest way to make the bytes of a record persistent, and
// nothing else; what every log is measured against.
//
// Idea: the lines of one Alpheus record (48-byte header and payload, rounded
// up to lines) are stored and fenced once. No checksum, no order, no place to
// find: the source is one buffer in the cache, the target advances through a
// region as large as the logs' rings, so that its lines are as cold as theirs.
// With several workers each has a part of the region of its own. Which kind of
// store is cheapest depends on size and processor; all are run and the
// cheapest is the floor.
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATES_FLOOR_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATES_FLOOR_H_

#include <memory>
#include <vector>

#include "bench/harness/candidate.h"
#include "log/pmem/region.h"

namespace alpheus::bench {

// One for each kind of store that this processor has: "floor-nt16",
// "floor-clwb", "floor-nt64" (non-temporal stores of 16 and of 64 bytes, cached
// ones with clwb).
std::vector<MakeCandidate> Floors();

// The same, all in this region, which must have the workload's bytes.
std::vector<MakeCandidate> FloorsIn(
    const std::shared_ptr<const Region>& region);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATES_FLOOR_H_
