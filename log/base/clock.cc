// SPDX-License-Identifier: Apache-2.0
#include "log/base/clock.h"

#include <chrono>

#include "log/base/deadline.h"

namespace alpheus {
namespace {

int64_t SteadyNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class RealClock final : public Clock {
 public:
  int64_t NowNanos() const override { return SteadyNanos(); }
};

}  // namespace

const Clock& Clock::Real() {
  // Never destroyed: logs are used until the process ends.
  static const auto* const clock = new RealClock();
  return *clock;
}

Deadline Deadline::In(std::chrono::nanoseconds timeout) {
  const int64_t now = SteadyNanos();
  return timeout.count() >= kNever - now ? Deadline()
                                         : AtNanos(now + timeout.count());
}

}  // namespace alpheus
