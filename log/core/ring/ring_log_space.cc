// SPDX-License-Identifier: Apache-2.0
// Part of ring_log that reserves when there is no space at once: it waits,
// forces at the exposure cap, and moves the head when the ring is short of
// room.
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/core/ring/ring_log.h"
#include "log/core/ring/ring_log_wait.h"
#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
absl::StatusOr<Reserver::Space> RingLog<P>::TakeSpace(size_t bytes,
                                                      Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  if (bytes > payload_bytes_max_) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, ": a record of ", bytes,
        " bytes is larger than the largest that this log takes, ",
        payload_bytes_max_,
        " (half the ring less the header). Split it, or format a larger "
        "region"));
  }
  const uint64_t record_bytes = RecordBytes(bytes);
  Reserver::Space space;
  ALPHEUS_RETURN_IF_ERROR(
      WaitFor("reserve", deadline, [&]() -> absl::StatusOr<bool> {
        for (;;) {
          const uint64_t limit = reuse_limit_word().load();
          const auto outcome = reserver_.TryReserve(record_bytes, &space);
          if (outcome == Reserver::Outcome::kReserved) return true;
          ALPHEUS_ASSIGN_OR_RETURN(const bool again,
                                   MakeRoom(outcome, limit, bytes, deadline));
          if (!again) return false;
        }
      }));
  return space;
}

template <Persistence P>
absl::StatusOr<bool> RingLog<P>::MakeRoom(Reserver::Outcome refusal,
                                          uint64_t limit, size_t bytes,
                                          Deadline deadline) {
  if (failure_.failed()) return failure_.status();
  if (refusal == Reserver::Outcome::kHeld) {
    PollReplication();
    return false;
  }
  // Both other refusals end when records become durable: the exposure shrinks,
  // and the head may pass aborted records.
  const Lsn before = durable_lsn();
  if (ForceStep(next_lsn() - 1) == Forcer<P>::Progressed::kFailed) {
    return failure_.status();
  }
  if (refusal == Reserver::Outcome::kExposureFull) {
    if (durable_lsn() > before) return true;
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(first_open_lsn()));
    return false;
  }
  ALPHEUS_RETURN_IF_ERROR(Told(reclaimer_.Publish(durable_lsn())));
  PollReplication();
  const bool awaits_backups =
      replicated_ != nullptr && replicated_->AwaitsBackups();
  // Space was freed by this call, or by another thread since the refusal.
  if (reuse_limit_word().load() != limit) return true;
  if (failure_.failed()) return failure_.status();
  // Wait for backups, unlike for the application: they ack, or are dropped.
  if (awaits_backups) return false;
  if (head_lsn() > durable_lsn()) {
    // Nothing durable is left to clean: open records fill the ring.
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(first_open_lsn()));
  }
  // Only the application can clean. Without a deadline it would wait for
  // itself.
  if (!deadline.is_set() || deadline.HasPassed(clock_.NowNanos())) {
    return RingFull(bytes);
  }
  return false;
}

template <Persistence P>
absl::Status RingLog<P>::RingFull(size_t bytes) const {
  const Reserver::Next next = reserver_.next();
  const LogPosition head = reclaimer_.head();
  return absl::ResourceExhaustedError(absl::StrCat(
      options_.name, ": no room for ", bytes, " bytes: LSN ", head.lsn.value,
      " to ", next.lsn.value - 1, " hold ", next.tail - head.offset, " of ",
      ring_.capacity(),
      " bytes. Clean records that are no longer needed, then try again"));
}

// Members, not the class: that is for ring_log.cc.
#define ALPHEUS_INSTANTIATE(P)                                           \
  template absl::StatusOr<Reserver::Space> RingLog<P>::TakeSpace(size_t, \
                                                                 Deadline)

ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);

#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
