// SPDX-License-Identifier: Apache-2.0
// perf_counter: cache misses of the calling thread, counted by the processor.
#ifndef ALPHEUS_BENCH_HARNESS_PERF_COUNTER_H_
#define ALPHEUS_BENCH_HARNESS_PERF_COUNTER_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace alpheus::bench {

enum class CacheMiss { kL1dRead, kLastLevel };

// "L1d read misses" or "last-level misses".
const char* CacheMissName(CacheMiss kind);

class PerfCounter {
 public:
  // Counts from now on, for this thread, in user mode.
  // Errors: Unimplemented (processor or hypervisor has no such counter);
  // PermissionDenied (kernel.perf_event_paranoid); Unavailable.
  static absl::StatusOr<PerfCounter> Start(CacheMiss kind);

  PerfCounter(PerfCounter&& other) noexcept;
  PerfCounter& operator=(PerfCounter&&) = delete;
  ~PerfCounter();

  // Since Start. Errors: Unavailable (the kernel never got hold of a counter).
  absl::StatusOr<uint64_t> Read() const;

 private:
  explicit PerfCounter(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_PERF_COUNTER_H_
