// SPDX-License-Identifier: Apache-2.0
// reclaim_timer: adds the time of one cleaning to a batch, from its making to
// its end.
#ifndef ALPHEUS_BENCH_HARNESS_RECLAIM_TIMER_H_
#define ALPHEUS_BENCH_HARNESS_RECLAIM_TIMER_H_

#include <cstdint>

#include "bench/harness/candidate.h"
#include "bench/harness/clock.h"

namespace alpheus::bench {

class ReclaimTimer {
 public:
  explicit ReclaimTimer(BatchResult* result)
      : result_(*result), start_(NowNanos()), cpu_start_(ThreadCpuNanos()) {}
  ~ReclaimTimer() {
    result_.reclaim_ns += ThreadCpuNanos() - cpu_start_;
    result_.reclaim_elapsed_ns += NowNanos() - start_;
    ++result_.reclaims;
  }
  ReclaimTimer(const ReclaimTimer&) = delete;
  ReclaimTimer& operator=(const ReclaimTimer&) = delete;

 private:
  BatchResult& result_;
  const int64_t start_;
  const int64_t cpu_start_;
};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_RECLAIM_TIMER_H_
