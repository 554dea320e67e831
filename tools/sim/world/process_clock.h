// SPDX-License-Identifier: Apache-2.0
// process_clock: the monotonic clock of one simulated process, which is not the
// world's.
//
// Idea: no two processes have one clock. Each begins at a time of its own, so
// that a time of one that is taken for a time of another is far off, and goes
// on as the world does, until a fault has it jump ahead or run at another rate
// for a while. It never goes back. What is measured by it (deadlines, silence,
// timeouts) is the process's own affair; when its threads are woken is the
// world's, so that deadlines are converted.
//
// Invariants:
//   PC1. NowNanos never goes back, and at rate 1 goes on as the world's time.
//   PC2. deadline.HasPassed(NowNanos()) at the world's time InWorld(deadline)
//        or later, unless the rate sinks meanwhile; not before, unless it rises
//        or the clock jumps. Whoever changes it wakes those who wait.
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_PROCESS_CLOCK_H_
#define ALPHEUS_TOOLS_SIM_WORLD_PROCESS_CLOCK_H_

#include <cstdint>

#include "log/base/clock.h"
#include "log/base/deadline.h"

namespace alpheus::sim {

class ProcessClock final : public Clock {
 public:
  // As the world's clock goes.
  static constexpr int64_t kNormalRate = 1000;

  // Begins `ahead_ns` ahead of the world's.
  ProcessClock(const Clock& world, int64_t ahead_ns)
      : world_(world),
        world_then_(world.NowNanos()),
        own_then_(world_then_ + ahead_ns) {}

  int64_t NowNanos() const override {
    return own_then_ + (world_.NowNanos() - world_then_) * rate_ / kNormalRate;
  }
  // The same moment in the world's time; none of none.
  Deadline InWorld(Deadline deadline) const;

  // By this clock, since when a process is undisturbed that is so since
  // `world_ns` of the world's time, or never: the end of time.
  int64_t SteadySince(int64_t world_ns) const;

  // Requires: ns >= 0.
  void Jump(int64_t ns);
  // Thousandths of the world's, from now on; at least 1.
  void SetRate(int64_t rate);

 private:
  void StartAnew();

  const Clock& world_;
  int64_t world_then_;
  int64_t own_then_;
  int64_t rate_ = kNormalRate;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_PROCESS_CLOCK_H_
