// SPDX-License-Identifier: Apache-2.0
// wall_clock: the time of day, for what has a date: certificates and tokens.
//
// It may jump, so nothing else is measured by it (clock.h).
//
// Thread safety: all members may be called concurrently.
#ifndef ALPHEUS_LOG_BASE_WALL_CLOCK_H_
#define ALPHEUS_LOG_BASE_WALL_CLOCK_H_

#include <cstdint>
#include <string>

namespace alpheus {

class WallClock {
 public:
  virtual ~WallClock() = default;

  // Seconds since the beginning of 1970, in UTC.
  virtual int64_t NowSeconds() const = 0;

  // The machine's. Lives as long as the process.
  static const WallClock& Real();
};

// Returns a time for people, to the minute: "2027-01-31 07:05 UTC".
std::string UtcText(int64_t seconds);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_WALL_CLOCK_H_
