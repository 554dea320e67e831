// SPDX-License-Identifier: Apache-2.0
// Part of ring_log that cleans records, reads them for tails, and closes the
// log.
#include <atomic>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/core/ring/ring_log.h"
#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
absl::Status RingLog<P>::Cleanup(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  ALPHEUS_RETURN_IF_ERROR(Told(reclaimer_.Clean(lsn, durable_lsn())));
  TellHead();
  progress_.Notify();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::CleanupThrough(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  ALPHEUS_RETURN_IF_ERROR(Told(reclaimer_.CleanThrough(lsn, durable_lsn())));
  TellHead();
  progress_.Notify();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::CleanupAll() {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  if (HasOpenReservations()) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": LSN ", first_open_lsn().value,
        " is still open; complete or abort it before cleaning everything"));
  }
  const Lsn last = next_lsn() - 1;
  if (last >= head_lsn()) {
    ALPHEUS_RETURN_IF_ERROR(ForceUntilDurable(last, Deadline()));
    ALPHEUS_RETURN_IF_ERROR(Told(reclaimer_.CleanThrough(last, durable_lsn())));
  }
  // The superline update is the commit point (P-L11). In a replicated log it is
  // the W-th update, because an opening takes the highest head that R replicas
  // report.
  ALPHEUS_RETURN_IF_ERROR(Told(reclaimer_.Publish(durable_lsn())));
  progress_.Notify();
  return WaitHeadDurable(Deadline());
}

// Shows no record above the durable LSN: an opening may drop it, and give its
// LSN to another record (P-C4).
template <Persistence P>
absl::StatusOr<bool> RingLog<P>::CopyNext(TailPlace& place) const {
  const Lsn next = next_lsn();
  if (place.lsn > next) {
    return absl::OutOfRangeError(absl::StrCat(
        options_.name, ": LSN ", place.lsn.value, " is beyond the log, whose ",
        "next LSN is ", next.value, "; was it read from another log?"));
  }
  // Read first, so that all records that became durable before the failure are
  // shown.
  const bool has_failed = failure_.failed();
  const absl::StatusOr<bool> copied = reclaimer_.CopyNext(place, durable_lsn());
  // The log is over: the next records are another primary's.
  if (copied.ok() && !*copied && has_failed) return failure_.status();
  return copied;
}

template <Persistence P>
absl::Status RingLog<P>::Close() {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(ForceEverything());
  CheckInvariants();
  TellRest();
  ALPHEUS_RETURN_IF_ERROR(forcer_.WriteFinalWatermarks());
  ALPHEUS_RETURN_IF_ERROR(Told(reclaimer_.Publish(durable_lsn())));
  ALPHEUS_RETURN_IF_ERROR(WaitHeadDurable(Deadline()));
  ALPHEUS_RETURN_IF_ERROR(WriteCleanCloseWord());
  closed_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

// Loops, because a callback for a durable record may append.
template <Persistence P>
absl::Status RingLog<P>::ForceEverything() {
  for (;;) {
    if (HasOpenReservations()) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.name, ": LSN ", first_open_lsn().value,
                       " is still open; complete or abort it before closing"));
    }
    const Lsn last = next_lsn() - 1;
    if (last <= durable_lsn()) return absl::OkStatus();
    ALPHEUS_RETURN_IF_ERROR(ForceUntilDurable(last, Deadline()));
  }
}

template <Persistence P>
absl::Status RingLog<P>::WriteCleanCloseWord() {
  // Written after everything that it vouches for is on media.
  uint64_t* word = CleanCloseAddress(region_);
  pmem_.Store8(word,
               CleanCloseWord(superline_.Current().log_id, superline_.seq()));
  if (Persist(pmem_, word, sizeof(*word))) return absl::OkStatus();
  failure_.Fail(pmem_.Error());
  return Told(failure_.status());
}

// Members, not the class: that is for ring_log.cc.
#define ALPHEUS_INSTANTIATE(P)                                          \
  template absl::Status RingLog<P>::Cleanup(Lsn);                       \
  template absl::Status RingLog<P>::CleanupThrough(Lsn);                \
  template absl::Status RingLog<P>::CleanupAll();                       \
  template absl::StatusOr<bool> RingLog<P>::CopyNext(TailPlace&) const; \
  template absl::Status RingLog<P>::Close()

ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);

#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
