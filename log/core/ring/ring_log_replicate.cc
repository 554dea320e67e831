// SPDX-License-Identifier: Apache-2.0
// Part of ring_log for a replicated log: polling, waiting for acks, the head.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "log/core/ring/ring_log.h"
#include "log/core/ring/ring_log_wait.h"
#include "log/pmem/backends.h"

namespace alpheus {
namespace {

// Interval at which WaitForAcks checks whether calls still process the acks of
// a replica that is catching up.
constexpr int64_t kLookForCallersNanos = 1'000'000;

}  // namespace

template <Persistence P>
std::unique_ptr<ActivityWatch> RingLog<P>::MakeWatch(
    const RingLogOptions& options, Waiter& waiter) {
  if (options.sink == nullptr) return nullptr;
  return std::make_unique<ActivityWatch>(waiter, *options.sink);
}

template <Persistence P>
std::unique_ptr<ReplicatedForcer<P>> RingLog<P>::MakeReplicated(
    const RingLogStart& start) {
  if (options_.sink == nullptr) return nullptr;
  return std::make_unique<ReplicatedForcer<P>>(
      *options_.sink, options_.flush_order,
      RingEnd{start.end.lsn - 1, start.end.offset}, reclaimer_.published(),
      ring_.capacity(), tracker_, forcer_, reclaimer_, progress_, failure_);
}

// A log is idle only if its backups are. A backup that lags, although W others
// do not, must be dropped after a while, and no arrival triggers that.
template <Persistence P>
typename IdleKeeper<P>::Next RingLog<P>::Poll() {
  PollReplication();
  const auto next = idle_keeper_.Poll();
  const bool is_idle =
      replicated_ == nullptr || replicated_->is_idle() || failure_.failed();
  return is_idle ? next : IdleKeeper<P>::Next::kPollAgain;
}

template <Persistence P>
void RingLog<P>::WaitForWork(uint32_t seen, Deadline deadline) {
  ActivityWatch::Role role(watch_.get(), progress_);
  role.Wait(seen, deadline);
}

// Waits without announcing itself, so that a thread that completes a record
// does not pay for a useless wake-up.
template <Persistence P>
bool RingLog<P>::WaitForAcks(Deadline deadline,
                             const std::atomic<uint32_t>& stop) {
  if (replicated_ == nullptr || failure_.failed() ||
      deadline.HasPassed(clock_.NowNanos())) {
    return false;
  }
  const bool for_callbacks = HasCallbackOnItsWay();
  if (!for_callbacks && !replicated_->is_catching_up()) {
    watch_->WaitToBeCalled(stop, deadline,
                           [this] { return HasCallbackOnItsWay(); });
    return true;
  }
  if (watch_->has_callers()) {
    // A wake-up by each call that leaves would cost the calls.
    if (for_callbacks) {
      watch_->WaitForCallersToLeave(stop, deadline);
    } else {
      watch_->Wait(
          stop, 0,
          Deadline::AtNanos(std::min(
              deadline.at_nanos(), clock_.NowNanos() + kLookForCallersNanos)));
    }
    return true;
  }
  ActivityWatch::Role role(watch_.get(), progress_);
  if (role.WaitForArrivals(stop, deadline)) PollReplication();
  return true;
}

template <Persistence P>
bool RingLog<P>::HasCallbackOnItsWay() const {
  return callbacks_.AreWaitingFor(replicated_->offered_lsn());
}

// The callback's record may have no other waiting thread.
template <Persistence P>
void RingLog<P>::CallAttendantIfNeeded() {
  if (replicated_ == nullptr) return;
  if (HasCallbackOnItsWay()) watch_->CallAttendant();
}

template <Persistence P>
absl::Status RingLog<P>::WaitHeadDurable(Deadline deadline) {
  if (replicated_ == nullptr) return absl::OkStatus();
  const Lsn head = reclaimer_.published().lsn;
  return WaitFor("publish the head", deadline, [&]() -> absl::StatusOr<bool> {
    PollReplication();
    if (replicated_->durable_head_lsn() >= head) return true;
    if (failure_.failed()) return failure_.status();
    return false;
  });
}

// Ignores a timeout: a backup that does not answer only knows less.
template <Persistence P>
void RingLog<P>::TellRest() {
  constexpr int64_t kAnswerNanos = 50'000'000;
  if (replicated_ == nullptr) return;
  replicated_->TellDurable();
  WaitFor("tell the backups",
          Deadline::AtNanos(clock_.NowNanos() + kAnswerNanos),
          [&]() -> absl::StatusOr<bool> {
            PollReplication();
            return replicated_->is_idle() || failure_.failed();
          })
      .IgnoreError();
}

// Members, not the class: that is for ring_log.cc.
#define ALPHEUS_INSTANTIATE(P)                                              \
  template std::unique_ptr<ActivityWatch> RingLog<P>::MakeWatch(            \
      const RingLogOptions&, Waiter&);                                      \
  template std::unique_ptr<ReplicatedForcer<P>> RingLog<P>::MakeReplicated( \
      const RingLogStart&);                                                 \
  template typename IdleKeeper<P>::Next RingLog<P>::Poll();                 \
  template void RingLog<P>::WaitForWork(uint32_t, Deadline);                \
  template bool RingLog<P>::WaitForAcks(Deadline,                           \
                                        const std::atomic<uint32_t>&);      \
  template bool RingLog<P>::HasCallbackOnItsWay() const;                    \
  template void RingLog<P>::CallAttendantIfNeeded();                        \
  template absl::Status RingLog<P>::WaitHeadDurable(Deadline);              \
  template void RingLog<P>::TellRest()

ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);

#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
