// SPDX-License-Identifier: Apache-2.0
// clock: the clocks of the benchmarks.
#ifndef ALPHEUS_BENCH_HARNESS_CLOCK_H_
#define ALPHEUS_BENCH_HARNESS_CLOCK_H_

#include <time.h>
#include <x86intrin.h>

#include <chrono>
#include <cstdint>

namespace alpheus::bench {

inline int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Time that this thread had the core. For work of many milliseconds, which on a
// shared machine nearly always loses the core in between; too dear for a batch.
inline int64_t ThreadCpuNanos() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// For stages of some ten nanoseconds. All instructions before it have retired,
// none behind it has begun; stores may still be on their way to memory.
inline uint64_t Ticks() {
  _mm_lfence();
  const uint64_t ticks = __rdtsc();
  _mm_lfence();
  return ticks;
}

// The same when all stores, also those past the cache, have arrived.
inline uint64_t TicksWhenStored() {
  _mm_mfence();
  return Ticks();
}

// Ticks per nanosecond, by the steady clock. Takes about 20 ms.
inline double TicksPerNano() {
  constexpr int64_t kCalibrationNs = 20'000'000;
  const int64_t start_ns = NowNanos();
  const uint64_t start = Ticks();
  int64_t elapsed_ns = 0;
  while (elapsed_ns < kCalibrationNs) elapsed_ns = NowNanos() - start_ns;
  return static_cast<double>(Ticks() - start) / static_cast<double>(elapsed_ns);
}

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_CLOCK_H_
