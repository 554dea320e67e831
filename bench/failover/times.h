// SPDX-License-Identifier: Apache-2.0
// times: sizes and times that all contestants' turns have in common.
#ifndef ALPHEUS_BENCH_FAILOVER_TIMES_H_
#define ALPHEUS_BENCH_FAILOVER_TIMES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "log/base/random.h"

namespace alpheus::bench::failover {

inline constexpr size_t kPayloadBytes = 1024;  // of each record under load
inline constexpr std::chrono::seconds kFailOverTimeout{30};

// Returns how long a primary works before it is lost: 300 to 400 ms at random,
// so that faults keep no step with heartbeats.
inline std::chrono::microseconds LoadTime() {
  EntropyRandom random;
  return std::chrono::microseconds(300'000 + random.Below(100'000));
}

inline double MillisBetween(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e6;
}

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_TIMES_H_
