// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/silence_timers.h"

#include <algorithm>

namespace alpheus::tcp {
namespace {

// The most time that is charged between two looks, where `wait_ns` is waited
// for (SIL2): four or five looks for a peer that is gone, and few wake-ups.
constexpr int64_t LookNanos(int64_t wait_ns) { return wait_ns / 4; }

}  // namespace

int64_t SilenceTimers::NextDue() const {
  int64_t next =
      asked_at_ == kNever ? heard_at_ + retry_ns_ / 4 : asked_at_ + retry_ns_;
  if (stalled_at_ != kNever) next = std::min(next, stalled_at_ + retry_ns_);
  if (parked_at_ != kNever) {
    next = std::min(next, parked_at_ + receiver_wait_ns_);
  }
  return next;
}

SilenceTimers::Due SilenceTimers::WhatIsDue(int64_t now) const {
  if (parked_at_ != kNever && now >= parked_at_ + receiver_wait_ns_) {
    return Due::kReceive;
  }
  if (stalled_at_ != kNever && now >= stalled_at_ + retry_ns_) {
    return Due::kPeerGone;  // SIL3
  }
  if (asked_at_ == kNever) return Due::kAsk;
  if (now < asked_at_ + retry_ns_) return Due::kNothing;
  return Due::kPeerGone;
}

int64_t SilenceTimers::NextLook(int64_t looked_at) const {
  int64_t next = NextDue();
  if (asked_at_ != kNever || stalled_at_ != kNever) {
    next = std::min(next, looked_at + LookNanos(retry_ns_));
  }
  if (parked_at_ != kNever) {
    next = std::min(next, looked_at + LookNanos(receiver_wait_ns_));
  }
  return next;
}

void SilenceTimers::ExcuseOwnPause(int64_t now, int64_t looked_at) {
  const auto excuse = [&](int64_t wait_ns, int64_t* since) {
    if (*since == kNever) return;
    // A wait that began after the last look has lasted only since then.
    const int64_t passed = now - std::max(*since, looked_at);
    *since += std::max<int64_t>(0, passed - LookNanos(wait_ns));
  };
  excuse(retry_ns_, &asked_at_);
  excuse(retry_ns_, &stalled_at_);
  excuse(receiver_wait_ns_, &parked_at_);
}

}  // namespace alpheus::tcp
