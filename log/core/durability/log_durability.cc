// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/log_durability.h"

#include <optional>
#include <utility>

#include "log/base/status_macros.h"
#include "log/base/thread_token.h"
#include "log/core/write/own_reservations.h"
#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
LogDurability<P>::LogDurability(const LogDurabilityParts<P>& parts,
                                Forcer<P>& forcer, const PersistedWords& words,
                                bool is_replicated)
    : parts_(parts),
      forcer_(forcer),
      durable_lsn_word_(words.quorum),
      is_replicated_(is_replicated),
      callbacks_(words, parts.failure, parts.progress) {}

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
          " and waits for a later LSN. Complete, abort or detach it first"));
    }
  }
  return absl::OkStatus();
}

// --- Forcing -----------------------------------------------------------------

template <Persistence P>
absl::Status LogDurability<P>::ForceUnder(const ForcePolicy& policy, Lsn lsn,
                                          Deadline deadline) {
  if (!policy.Forces(lsn)) return absl::OkStatus();
  if (policy.group != 0) return ForceInGroup(policy.group, lsn, deadline);
  return WaitFor("force", deadline, [&]() -> absl::StatusOr<bool> {
    const absl::StatusOr<bool> durable = IsDurable(StepBeforeWait(lsn));
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
void LogDurability<P>::OnPersisted(PersistedBy by, Lsn lsn,
                                   DurableCallback callback) {
  callbacks_.Add(by, lsn, std::move(callback));
  CallAckPollerIfNeeded();
}

// The number is read first: who lets reservations go on does so, then raises
// it.
template <Persistence P>
bool LogDurability<P>::OnResumed(DurableCallback callback) {
  const uint64_t before = callbacks_.resumptions();
  if (!parts_.reserver.IsHeld()) return false;
  callbacks_.AddResumption(before + 1, std::move(callback));
  return true;
}

// --- The end -----------------------------------------------------------------

template <Persistence P>
absl::Status LogDurability<P>::Finish() {
  AnnounceIdle();
  return forcer_.WriteFinalWatermarks();
}

ALPHEUS_INSTANTIATE_CLASS(LogDurability);

}  // namespace alpheus
