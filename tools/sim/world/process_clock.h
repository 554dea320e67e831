// SPDX-License-Identifier: Apache-2.0
// process_clock: the monotonic clock of one simulated process, which differs
// from the world's.
//
// Idea: each process has a clock of its own. Each starts at a different time,
// so that mixing up times of two processes shows. It runs like the world's,
// until a fault makes it jump ahead or run at another rate for a while. It
// never goes back. It measures the process's own affairs (deadlines, ack
// timeouts). The world decides when threads wake, so deadlines are converted.
//
// Invariants:
//   PC1. NowNanos never goes back, and at rate 1 advances like the world's
//        time.
//   PC2. deadline.HasPassed(NowNanos()) is true at the world's time
//        InWorld(deadline) or later, unless the rate sinks meanwhile. It is
//        false before, unless the rate rises or the clock jumps. The code that
//        changes the clock wakes waiting threads.
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_PROCESS_CLOCK_H_
#define ALPHEUS_TOOLS_SIM_WORLD_PROCESS_CLOCK_H_

#include <cstdint>

#include "log/base/clock.h"
#include "log/base/deadline.h"

namespace alpheus::sim {

class ProcessClock final : public Clock {
 public:
  // Rate of the world's clock.
  static constexpr int64_t kNormalRate = 1000;

  // Starts `ahead_ns` ahead of the world's clock.
  ProcessClock(const Clock& world, int64_t ahead_ns)
      : world_(world),
        world_then_(world.NowNanos()),
        own_then_(world_then_ + ahead_ns) {}

  int64_t NowNanos() const override {
    return own_then_ + (world_.NowNanos() - world_then_) * rate_ / kNormalRate;
  }
  // Returns the same moment in the world's time; no deadline for none.
  Deadline InWorld(Deadline deadline) const;

  // Returns, by this clock, the time since which a process is undisturbed that
  // is so since `world_ns` of the world's time, or never: the end of time.
  int64_t SteadySince(int64_t world_ns) const;

  // Requires: ns >= 0.
  void Jump(int64_t ns);
  // Sets the rate, in thousandths of the world's, from now on; at least 1.
  void SetRate(int64_t rate);

 private:
  void StartAgain();

  const Clock& world_;
  int64_t world_then_;
  int64_t own_then_;
  int64_t rate_ = kNormalRate;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_PROCESS_CLOCK_H_
