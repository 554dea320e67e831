// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/log_service.h"

#include <algorithm>

#include "log/pmem/backends.h"

namespace alpheus {
namespace {

// Interval at which WaitForAcks checks whether calls still process the acks of
// a replica that is catching up.
constexpr int64_t kCheckForWaitersNanos = 1'000'000;

}  // namespace

// LSV1.
template <Persistence P>
Polled LogService<P>::Poll() {
  durability_.Poll();
  const Polled polled = idle_keeper_.Poll();
  const bool is_idle = durability_.AreBackupsIdle() || failure_.failed();
  return is_idle ? polled : Polled::kMoved;
}

template <Persistence P>
void LogService<P>::WaitForWork(uint32_t seen, Deadline deadline) {
  ActivityWatch::Role role(watch_, progress_);
  role.Wait(seen, deadline);
}

// Waits without announcing itself, so that a thread that completes a record
// does not pay for a useless wake-up.
template <Persistence P>
bool LogService<P>::WaitForAcks(Deadline deadline,
                                const std::atomic<uint32_t>& stop) {
  const ReplicatedForcer<P>* const replicated = durability_.replicated();
  if (replicated == nullptr || failure_.failed() ||
      deadline.HasPassed(clock_.NowNanos())) {
    return false;
  }
  const bool for_callbacks = durability_.HasCallbackOnItsWay();
  if (!for_callbacks && !replicated->is_catching_up()) {
    watch_->WaitToBeCalled(
        stop, deadline, [this] { return durability_.HasCallbackOnItsWay(); });
    return true;
  }
  if (watch_->has_waiters()) {
    // A wake-up by each call that leaves would cost the calls.
    if (for_callbacks) {
      watch_->WaitForWaitersToLeave(stop, deadline);
    } else {
      watch_->Wait(
          stop, 0,
          Deadline::AtNanos(std::min(
              deadline.at_nanos(), clock_.NowNanos() + kCheckForWaitersNanos)));
    }
    return true;
  }
  ActivityWatch::Role role(watch_, progress_);
  if (role.WaitForArrivals(stop, deadline)) durability_.Poll();
  return true;
}

ALPHEUS_INSTANTIATE_CLASS(LogService);

}  // namespace alpheus
