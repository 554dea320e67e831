// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/log_durability.h"

#include <optional>
#include <utility>

#include "log/base/status_macros.h"
#include "log/base/thread_token.h"
#include "log/core/write/own_reservations.h"
#include "log/pmem/backends.h"

namespace alpheus {
namespace {

// Converts the result of a step: true, durable; false, not yet; else the log's
// failure.
template <class Progressed>
absl::StatusOr<bool> IsDurable(Progressed progressed,
                               const LogFailure& failure) {
  if (progressed == Progressed::kFailed) return failure.status();
  return progressed == Progressed::kDurable;
}

}  // namespace

template <Persistence P>
LogDurability<P>::LogDurability(const LogDurabilityParts<P>& parts,
                                const LogDurabilityStart& start)
    : parts_(parts),
      own_progress_(parts.waiter),
      forcer_(parts.pmem, parts.region, parts.ring, start.log_id,
              start.log_epoch, start.end, parts.tracker, parts.index,
              start.sink == nullptr ? parts.progress : own_progress_,
              parts.failure),
      replicated_(MakeReplicated(start)),
      durable_lsn_word_(replicated_ == nullptr
                            ? forcer_.durable_lsn_word()
                            : replicated_->durable_lsn_word()),
      callbacks_(durable_lsn_word_, parts.failure, parts.progress) {}

template <Persistence P>
std::unique_ptr<ReplicatedForcer<P>> LogDurability<P>::MakeReplicated(
    const LogDurabilityStart& start) {
  if (start.sink == nullptr) return nullptr;
  return std::make_unique<ReplicatedForcer<P>>(
      *start.sink, start.flush_order,
      RingEnd{start.end.lsn - 1, start.end.offset},
      parts_.reclaimer.published(), parts_.ring.capacity(), parts_.tracker,
      forcer_, parts_.reclaimer, parts_.progress, parts_.failure);
}

template <Persistence P>
Lsn LogDurability<P>::first_open_lsn() const {
  const Lsn next = parts_.reserver.next().lsn;
  Lsn lsn = durable_lsn() + 1;
  while (lsn < next) {
    if (!parts_.tracker.IsFinished(lsn) && lsn > durable_lsn()) return lsn;
    // Finished; or durable meanwhile, so that its slot may have a new user.
    lsn = lsn + 1;
  }
  return next;
}

template <Persistence P>
absl::Status LogDurability<P>::CheckNotBlockedBySelf(Lsn lsn) const {
  if (OwnReservationsMax() == 0) return absl::OkStatus();
  const uint32_t self = ThreadToken();
  for (Lsn at = durable_lsn() + 1; at <= lsn; at = at + 1) {
    if (!parts_.tracker.IsFinished(at) && parts_.tracker.IsOwnedBy(at, self)) {
      return absl::FailedPreconditionError(absl::StrCat(
          parts_.name, ": this thread holds the open reservation of LSN ",
          at.value,
          " and waits behind it. Complete, abort or detach it "
          "first"));
    }
  }
  return absl::OkStatus();
}

// --- Forcing -----------------------------------------------------------------

template <Persistence P>
absl::Status LogDurability<P>::ForceUnder(const ForcePolicy& policy, Lsn lsn,
                                          Deadline deadline) {
  if (policy.group != 0) return ForceInGroup(policy.group, lsn, deadline);
  if (lsn.value % policy.frequency != 0) return absl::OkStatus();
  return WaitFor("force", deadline, [&]() -> absl::StatusOr<bool> {
    const absl::StatusOr<bool> durable = IsDurable(Step(lsn), parts_.failure);
    if (!durable.ok() || *durable) return durable;
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(lsn));
    return false;
  });
}

template <Persistence P>
absl::Status LogDurability<P>::ForceInGroup(uint32_t group, Lsn lsn,
                                            Deadline deadline) {
  std::optional<Lsn> due;
  ALPHEUS_RETURN_IF_ERROR(
      WaitFor("group commit", deadline, [&]() -> absl::StatusOr<bool> {
        Poll();
        return group_commit_.TryJoin(lsn, group, &due);
      }));
  if (!due) return absl::OkStatus();
  absl::Status forced = ForceUnder(ForcePolicy::Each(), *due, deadline);
  group_commit_.Done();
  parts_.progress.Notify();
  return forced;
}

template <Persistence P>
absl::Status LogDurability<P>::BeginForce(Lsn lsn) {
  const auto is_begun = [&]() -> absl::StatusOr<bool> {
    const absl::StatusOr<bool> durable = IsDurable(Step(lsn), parts_.failure);
    if (!durable.ok() || *durable) return durable;
    // The thread that held the step may never make another one.
    return replicated_ == nullptr || replicated_->IsBegun(lsn);
  };
  ALPHEUS_ASSIGN_OR_RETURN(const bool begun, is_begun());
  if (!begun) [[unlikely]] {
    const typename ReplicatedForcer<P>::Beginner beginner(*replicated_);
    ALPHEUS_RETURN_IF_ERROR(WaitFor("begin a force", Deadline(), is_begun));
  }
  CallAckPollerIfNeeded();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status LogDurability<P>::WaitDurable(Lsn lsn, Deadline deadline) {
  // The thread that runs this callback may be the only one that would force.
  const bool is_in_callback = callbacks_.AreRunHere();
  return WaitFor("wait for durable", deadline, [&]() -> absl::StatusOr<bool> {
    is_in_callback ? (void)Step(lsn) : Poll();
    if (durable_lsn() >= lsn) return true;
    if (parts_.failure.failed()) return parts_.failure.status();
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(lsn));
    return false;
  });
}

// --- Callbacks ---------------------------------------------------------------

template <Persistence P>
void LogDurability<P>::OnDurable(Lsn lsn, DurableCallback callback) {
  callbacks_.Add(lsn, std::move(callback));
  CallAckPollerIfNeeded();
}

template <Persistence P>
bool LogDurability<P>::HasCallbackOnItsWay() const {
  return callbacks_.AreWaitingFor(replicated_->offered_lsn());
}

// The callback's record may have no other waiting thread.
template <Persistence P>
void LogDurability<P>::CallAckPollerIfNeeded() {
  if (replicated_ == nullptr) return;
  if (HasCallbackOnItsWay()) parts_.watch->CallAckPoller();
}

// --- The end -----------------------------------------------------------------

template <Persistence P>
absl::Status LogDurability<P>::WaitHeadDurable(Deadline deadline) {
  if (replicated_ == nullptr) return absl::OkStatus();
  const Lsn head = parts_.reclaimer.published().lsn;
  return WaitFor("publish the head", deadline, [&]() -> absl::StatusOr<bool> {
    Poll();
    if (replicated_->durable_head_lsn() >= head) return true;
    if (parts_.failure.failed()) return parts_.failure.status();
    return false;
  });
}

template <Persistence P>
absl::Status LogDurability<P>::Finish() {
  AnnounceIdle();
  return forcer_.WriteFinalWatermarks();
}

// Ignores a timeout: a backup that does not answer only knows less.
template <Persistence P>
void LogDurability<P>::AnnounceIdle() {
  constexpr int64_t kAnswerNanos = 50'000'000;
  if (replicated_ == nullptr) return;
  replicated_->AnnounceDurable();
  WaitFor("tell the backups",
          Deadline::AtNanos(parts_.clock.NowNanos() + kAnswerNanos),
          [&]() -> absl::StatusOr<bool> {
            Poll();
            return replicated_->is_idle() || parts_.failure.failed();
          })
      .IgnoreError();
}

ALPHEUS_INSTANTIATE_CLASS(LogDurability);

}  // namespace alpheus
