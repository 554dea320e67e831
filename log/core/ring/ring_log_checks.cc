// SPDX-License-Identifier: Apache-2.0
// Part of ring_log that refuses calls before they change anything, and checks
// the invariants.
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/base/thread_token.h"
#include "log/core/ring/ring_log.h"
#include "log/core/write/own_reservations.h"
#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
absl::Status RingLog<P>::Usable() const {
  if (failure_.failed()) return failure_.status();
  if (closed_.load(std::memory_order_acquire)) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.name, ": the log is closed; open it again"));
  }
  return absl::OkStatus();
}

template <Persistence P>
bool RingLog<P>::IsPossible(const ForcePolicy& policy) const {
  if (policy.frequency == 0) return false;
  if (policy.group != 0 && policy.frequency != 1) return false;
  // Otherwise reserving would force before the policy does (P-A3.1).
  const uint32_t records = std::max(policy.frequency, policy.group);
  return records == 1 || 2 * uint64_t{records} <= tracker_.size();
}

template <Persistence P>
absl::Status RingLog<P>::CheckPolicy(const ForcePolicy& policy) const {
  if (IsPossible(policy)) [[likely]]
    return absl::OkStatus();
  if (policy.frequency == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, ": force frequency 0; 1 forces every record"));
  }
  if (policy.group != 0 && policy.frequency != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, ": force frequency ", policy.frequency,
        " and groups of ", policy.group, " are two policies; choose one"));
  }
  const uint32_t records = std::max(policy.frequency, policy.group);
  return absl::InvalidArgumentError(absl::StrCat(
      options_.name, ": forcing every ", records, " records needs a cap of ",
      2 * uint64_t{records}, " exposed ones, and it is ", tracker_.size(),
      ". Raise exposure_records_max"));
}

template <Persistence P>
absl::Status RingLog<P>::CheckGiven(Lsn lsn) const {
  const Lsn next = next_lsn();
  if (lsn.value != 0 && lsn < next) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(options_.name, ": LSN ", lsn.value,
                                            " was never given; the next is ",
                                            next.value));
}

template <Persistence P>
absl::Status RingLog<P>::CheckNotBlockedBySelf(Lsn lsn) const {
  if (OwnReservationsMax() == 0) return absl::OkStatus();
  const uint32_t self = ThreadToken();
  for (Lsn at = durable_lsn() + 1; at <= lsn; at = at + 1) {
    if (!tracker_.IsFinished(at) && tracker_.IsOwnedBy(at, self)) {
      return absl::FailedPreconditionError(absl::StrCat(
          options_.name, ": this thread holds the open reservation of LSN ",
          at.value,
          " and waits behind it. Complete, abort or hand it over "
          "first"));
    }
  }
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::CheckAppendable() const {
  // Failure first: finishing the reservation would not help.
  ALPHEUS_RETURN_IF_ERROR(Usable());
  return CheckNotBlockedBySelf(next_lsn() - 1);
}

template <Persistence P>
Lsn RingLog<P>::first_open_lsn() const {
  const Lsn next = next_lsn();
  Lsn lsn = durable_lsn() + 1;
  while (lsn < next) {
    if (!tracker_.IsFinished(lsn) && lsn > durable_lsn()) return lsn;
    // Finished; or durable meanwhile, so that its slot may have a new user.
    lsn = lsn + 1;
  }
  return next;
}

template <Persistence P>
void RingLog<P>::CheckInvariants() const {
  // Read in this order, in which the distances can only grow.
  const Lsn head = head_lsn();
  const Lsn durable = durable_lsn();
  const Lsn next = next_lsn();
  ALPHEUS_CHECK(head <= durable + 1, "RL1 (ring_log.h)");
  ALPHEUS_CHECK(durable + 1 <= next, "RL1 (ring_log.h)");
  ALPHEUS_CHECK(next - durable - 1 <= tracker_.size(), "RL2 (ring_log.h)");
}

// Members, not the class: that is for ring_log.cc.
#define ALPHEUS_INSTANTIATE(P)                                             \
  template absl::Status RingLog<P>::Usable() const;                        \
  template absl::Status RingLog<P>::CheckPolicy(const ForcePolicy&) const; \
  template absl::Status RingLog<P>::CheckGiven(Lsn) const;                 \
  template absl::Status RingLog<P>::CheckNotBlockedBySelf(Lsn) const;      \
  template absl::Status RingLog<P>::CheckAppendable() const;               \
  template Lsn RingLog<P>::first_open_lsn() const;                         \
  template void RingLog<P>::CheckInvariants() const

ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);

#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
