// SPDX-License-Identifier: Apache-2.0
// workers: threads that start together, each on a core of its own while there
// are enough.
#ifndef ALPHEUS_BENCH_HARNESS_WORKERS_H_
#define ALPHEUS_BENCH_HARNESS_WORKERS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/candidate.h"

namespace alpheus::bench {

// Runs work(0) to work(threads - 1), each on a thread of its own, pinned by
// CoreFor; not pinned if `cores` is empty. Returns the time from the first
// start to the last end. Errors: the first one of any worker.
absl::StatusOr<int64_t> RunTogether(
    int threads, const std::vector<int>& cores,
    const std::function<absl::Status(int worker)>& work);

struct Slice {
  int64_t duration_ns = 0;  // workers look at the clock between chunks
  uint64_t chunk_ops = 0;
};

struct RateSample {
  double records_per_second = 0;  // cleaning included
  // How often the threads lost their cores to others, or to each other.
  uint64_t preemptions = 0;
};

// All threads append for the time of the slice, which is longer by as much as
// there are more threads than cores.
absl::StatusOr<RateSample> MeasureRate(Candidate& candidate, int threads,
                                       const std::vector<int>& cores,
                                       const Slice& slice);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_WORKERS_H_
