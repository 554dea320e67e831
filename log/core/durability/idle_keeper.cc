// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/idle_keeper.h"

#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
Polled IdleKeeper<P>::Poll() {
  using Progressed = typename Forcer<P>::Progressed;
  // One step forces all finished records; records after an open one wait for
  // the next call.
  if (durability_.Step(last_given_) == Progressed::kFailed) {
    return Polled::kIdle;
  }
  const Lsn given = reserver_.next().lsn - 1;
  if (given == watermark_lsn_) return Polled::kIdle;
  if (given == last_given_ && WriteWatermark() && durability_.TellDurable()) {
    watermark_lsn_ = given;
    return Polled::kIdle;
  }
  last_given_ = given;
  return Polled::kMoved;
}

template <Persistence P>
bool IdleKeeper<P>::WriteWatermark() {
  if (!reserver_.TryHold()) return false;
  // The log remembers a failure, and the Notify below reports it; nothing is
  // left to do then either.
  (void)durability_.forcer().WriteIdleWatermark();
  reserver_.Unhold();
  progress_.Notify();
  return true;
}

ALPHEUS_INSTANTIATE_CLASS(IdleKeeper);

}  // namespace alpheus
