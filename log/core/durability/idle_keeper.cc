// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/idle_keeper.h"

#include "log/pmem/backends.h"

namespace alpheus {

// IK4.
template <Persistence P>
Polled IdleKeeper<P>::Poll() {
  durability_.Poll();
  const Polled polled = ForceRest();
  return durability_.AreBackupsIdle() ? polled : Polled::kMoved;
}

template <Persistence P>
Polled IdleKeeper<P>::ForceRest() {
  using Progressed = typename Forcer<P>::Progressed;
  // One step forces all finished records; records after an open one wait for
  // the next call.
  if (durability_.Step(last_assigned_) == Progressed::kFailed) {
    return Polled::kIdle;
  }
  const Lsn assigned = reserver_.next().lsn - 1;
  if (assigned == watermark_lsn_) return Polled::kIdle;
  if (assigned == last_assigned_ && WriteWatermark() &&
      durability_.AnnounceDurable()) {
    watermark_lsn_ = assigned;
    return Polled::kIdle;
  }
  last_assigned_ = assigned;
  return Polled::kMoved;
}

template <Persistence P>
bool IdleKeeper<P>::WriteWatermark() {
  if (!reserver_.TryQuiesce()) return false;
  // The log remembers a failure, and the Notify below reports it; nothing is
  // left to do then either.
  (void)durability_.forcer().WriteIdleWatermark();
  reserver_.Unhold();
  durability_.NoteResumed();
  progress_.Notify();
  return true;
}

ALPHEUS_INSTANTIATE_CLASS(IdleKeeper);

}  // namespace alpheus
