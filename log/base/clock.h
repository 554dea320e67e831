// SPDX-License-Identifier: Apache-2.0
// clock: the only door to time; the simulator and the tests inject their own.
//
// Thread safety: all members may be called concurrently.
#ifndef ALPHEUS_LOG_BASE_CLOCK_H_
#define ALPHEUS_LOG_BASE_CLOCK_H_

#include <cstdint>

namespace alpheus {

inline constexpr int64_t kNanosPerMs = 1'000'000;

class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic nanoseconds since an arbitrary start.
  virtual int64_t NowNanos() const = 0;

  // The machine's monotonic clock. Lives as long as the process.
  static const Clock& Real();
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_CLOCK_H_
