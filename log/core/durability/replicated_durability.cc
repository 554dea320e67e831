// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/replicated_durability.h"

#include <algorithm>
#include <utility>

#include "log/base/status_macros.h"
#include "log/pmem/backends.h"

namespace alpheus {
namespace {

// Interval at which WaitForAcks checks whether calls still process the acks of
// a replica that is catching up.
constexpr int64_t kCheckForWaitersNanos = 1'000'000;

}  // namespace

template <Persistence P>
ReplicatedForcing<P>::ReplicatedForcing(const LogDurabilityParts<P>& parts,
                                        const LogDurabilityStart& start,
                                        const ReplicationParts& replication)
    : own_progress(replication.watch),
      own_forcer(parts.pmem, parts.region, parts.ring, start.log_id,
                 start.log_epoch, start.last, start.end, parts.tracker,
                 parts.index, own_progress, parts.failure),
      replicated_forcer(replication.sink, replication.flush_order,
                        RingEnd{start.end.lsn - 1, start.end.offset},
                        parts.reclaimer.published(), parts.tracker, own_forcer,
                        parts.reclaimer, parts.progress, parts.failure) {}

template <Persistence P>
ReplicatedDurability<P>::ReplicatedDurability(
    const LogDurabilityParts<P>& parts, const LogDurabilityStart& start,
    const ReplicationParts& replication)
    : ReplicatedForcing<P>(parts, start, replication),
      LogDurability<P>(
          parts, own_forcer,
          {.own_replica = own_forcer.durable_lsn_word(),
           .quorum = replicated_forcer.durable_lsn_word(),
           .all_in_sync = replicated_forcer.in_sync_lsn_word(),
           .confirmed_round = replicated_forcer.confirmed_round_word()},
          /*is_replicated=*/true),
      watch_(replication.watch) {}

template <Persistence P>
typename ReplicatedDurability<P>::Progressed ReplicatedDurability<P>::Step(
    Lsn lsn, Then then) {
  if (this->durable_lsn() >= lsn) return Progressed::kDurable;
  const LogFailure& failure = parts().failure;
  if (failure.failed()) return Progressed::kFailed;
  Poll(lsn, then);
  if (this->durable_lsn() >= lsn) return Progressed::kDurable;
  return failure.failed() ? Progressed::kFailed : Progressed::kWaiting;
}

template <Persistence P>
absl::Status ReplicatedDurability<P>::BeginForce(Lsn lsn) {
  const auto is_begun = [&]() -> absl::StatusOr<bool> {
    const absl::StatusOr<bool> durable = this->IsDurable(Step(lsn));
    if (!durable.ok() || *durable) return durable;
    // The thread that held the step may never make another one.
    return replicated_forcer.IsBegun(lsn);
  };
  ALPHEUS_ASSIGN_OR_RETURN(const bool begun, is_begun());
  if (!begun) [[unlikely]] {
    const typename ReplicatedForcer<P>::Beginner beginner(replicated_forcer);
    ALPHEUS_RETURN_IF_ERROR(WaitFor("begin a force", Deadline(), is_begun));
  }
  CallAckPollerIfNeeded();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status ReplicatedDurability<P>::ConfirmEpoch(Deadline deadline) {
  const uint64_t round = replicated_forcer.AskToConfirm();
  return WaitFor("confirm the epoch", deadline, [&]() -> absl::StatusOr<bool> {
    Poll();
    if (replicated_forcer.confirmed_round() >= round) return true;
    if (parts().failure.failed()) return parts().failure.status();
    return false;
  });
}

template <Persistence P>
void ReplicatedDurability<P>::OnEpochConfirmed(DurableCallback callback) {
  const uint64_t round = replicated_forcer.AskToConfirm();
  this->callbacks().AddConfirmation(round, std::move(callback));
  Poll();
  CallAckPollerIfNeeded();
}

template <Persistence P>
absl::Status ReplicatedDurability<P>::WaitHeadDurable(Deadline deadline) {
  const Lsn head = parts().reclaimer.published().head.lsn;
  return WaitFor("publish the head", deadline, [&]() -> absl::StatusOr<bool> {
    Poll();
    if (replicated_forcer.durable_head_lsn() >= head) return true;
    if (parts().failure.failed()) return parts().failure.status();
    return false;
  });
}

template <Persistence P>
absl::Status ReplicatedDurability<P>::WaitFor(const char* call,
                                              Deadline deadline, Attempt step) {
  ActivityWatch::Role role(watch_, parts().progress);
  return this->LoopUntilDone(
      call, deadline, step,
      [&role](uint32_t seen, Deadline until) { role.Wait(seen, until); });
}

// --- The log's own thread ----------------------------------------------------

template <Persistence P>
void ReplicatedDurability<P>::WaitForWork(uint32_t seen, Deadline deadline) {
  ActivityWatch::Role role(watch_, parts().progress);
  role.Wait(seen, deadline);
}

// Waits without announcing itself, so that a thread that completes a record
// does not pay for a useless wake-up.
template <Persistence P>
bool ReplicatedDurability<P>::WaitForAcks(Deadline deadline,
                                          const std::atomic<uint32_t>& stop) {
  const Clock& clock = parts().clock;
  if (parts().failure.failed() || deadline.HasPassed(clock.NowNanos())) {
    return false;
  }
  const bool for_callbacks = HasCallbackOnItsWay();
  if (!for_callbacks && !replicated_forcer.is_catching_up()) {
    watch_.WaitToBeCalled(stop, deadline,
                          [this] { return HasCallbackOnItsWay(); });
    return true;
  }
  // RDU1.
  if (watch_.has_waiters()) {
    // A wake-up by each call that leaves would cost the calls.
    if (for_callbacks) {
      watch_.WaitForWaitersToLeave(stop, deadline);
    } else {
      watch_.Wait(
          stop, 0,
          Deadline::AtNanos(std::min(
              deadline.at_nanos(), clock.NowNanos() + kCheckForWaitersNanos)));
    }
    return true;
  }
  ActivityWatch::Role role(watch_, parts().progress);
  if (role.WaitForArrivals(stop, deadline)) Poll();
  return true;
}

// The callback's record may have no other waiting thread.
template <Persistence P>
void ReplicatedDurability<P>::CallAckPollerIfNeeded() {
  if (HasCallbackOnItsWay()) watch_.CallAckPoller();
}

// --- The end -----------------------------------------------------------------

// Ignores a timeout: a backup that does not answer only knows less.
template <Persistence P>
void ReplicatedDurability<P>::AnnounceIdle() {
  constexpr int64_t kAnswerNanos = 50'000'000;
  replicated_forcer.AnnounceDurable();
  WaitFor("announce to the backups",
          Deadline::AtNanos(parts().clock.NowNanos() + kAnswerNanos),
          [&]() -> absl::StatusOr<bool> {
            Poll();
            return replicated_forcer.is_idle() || parts().failure.failed();
          })
      .IgnoreError();
}

ALPHEUS_INSTANTIATE_CLASS(ReplicatedDurability);

}  // namespace alpheus
