// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/process_clock.h"

#include <algorithm>
#include <limits>

#include "log/base/check.h"

namespace alpheus::sim {
namespace {

// No run lasts until a deadline beyond this.
constexpr int64_t kFarNanos = int64_t{1} << 50;

}  // namespace

Deadline ProcessClock::InWorld(Deadline deadline) const {
  if (!deadline.is_set()) return deadline;
  // Any time in the past.
  if (deadline.at_nanos() <= own_then_) return Deadline::AtNanos(world_then_);
  const int64_t left = std::min(deadline.at_nanos() - own_then_, kFarNanos);
  // Rounded up, or the woken thread would be early.
  return Deadline::AtNanos(world_then_ +
                           (left * kNormalRate + rate_ - 1) / rate_);
}

int64_t ProcessClock::SteadySince(int64_t world_ns) const {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  if (rate_ != kNormalRate || world_ns == kNever) return kNever;
  return own_then_ + std::max<int64_t>(world_ns - world_then_, 0);
}

void ProcessClock::StartAgain() {
  own_then_ = NowNanos();
  world_then_ = world_.NowNanos();
}

void ProcessClock::Jump(int64_t ns) {
  ALPHEUS_CHECK(ns >= 0, "a monotonic clock never goes back (PC1)");
  StartAgain();
  own_then_ += ns;
}

void ProcessClock::SetRate(int64_t rate) {
  ALPHEUS_CHECK(rate >= 1, "a monotonic clock goes on (PC1)");
  StartAgain();
  rate_ = rate;
}

}  // namespace alpheus::sim
