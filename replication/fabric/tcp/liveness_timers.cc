// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/liveness_timers.h"

#include <algorithm>

namespace alpheus::fabric::tcp {
namespace {

// The most time that is charged between two runs of the timers, where `wait_ns`
// is waited for (LVT2): four or five runs for a peer that is gone, and few
// wake-ups.
constexpr int64_t TimerStepNanos(int64_t wait_ns) { return wait_ns / 4; }

}  // namespace

int64_t LivenessTimers::NextDue() const {
  int64_t next =
      asked_at_ == kNever ? heard_at_ + retry_ns_ / 4 : asked_at_ + retry_ns_;
  if (stalled_at_ != kNever) next = std::min(next, stalled_at_ + retry_ns_);
  if (parked_at_ != kNever) {
    next = std::min(next, parked_at_ + receiver_wait_ns_);
  }
  return next;
}

LivenessTimers::Due LivenessTimers::WhatIsDue(int64_t now) const {
  if (parked_at_ != kNever && now >= parked_at_ + receiver_wait_ns_) {
    return Due::kReceive;
  }
  if (stalled_at_ != kNever && now >= stalled_at_ + retry_ns_) {
    return Due::kPeerGone;  // LVT3
  }
  if (asked_at_ == kNever) return Due::kAsk;
  if (now < asked_at_ + retry_ns_) return Due::kNothing;
  return Due::kPeerGone;
}

int64_t LivenessTimers::NextCheck(int64_t timers_ran_at) const {
  int64_t next = NextDue();
  if (asked_at_ != kNever || stalled_at_ != kNever) {
    next = std::min(next, timers_ran_at + TimerStepNanos(retry_ns_));
  }
  if (parked_at_ != kNever) {
    next = std::min(next, timers_ran_at + TimerStepNanos(receiver_wait_ns_));
  }
  return next;
}

void LivenessTimers::ExcuseOwnPause(int64_t now, int64_t timers_ran_at) {
  const auto excuse = [&](int64_t wait_ns, int64_t* since) {
    if (*since == kNever) return;
    // A wait that began after the last run has lasted only since then.
    const int64_t passed = now - std::max(*since, timers_ran_at);
    *since += std::max<int64_t>(0, passed - TimerStepNanos(wait_ns));
  };
  excuse(retry_ns_, &asked_at_);
  excuse(retry_ns_, &stalled_at_);
  excuse(receiver_wait_ns_, &parked_at_);
}

}  // namespace alpheus::fabric::tcp
