// SPDX-License-Identifier: Apache-2.0
// Part of ring_log that makes records durable: at once, under a policy, or by
// waiting for other threads.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/core/ring/ring_log.h"
#include "log/core/ring/ring_log_wait.h"
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
absl::Status RingLog<P>::Force(Lsn lsn, ForcePolicy policy, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckPolicy(policy));
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  return ForceUnder(policy, lsn, deadline);
}

template <Persistence P>
absl::Status RingLog<P>::BeginForce(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  const auto is_begun = [&]() -> absl::StatusOr<bool> {
    const absl::StatusOr<bool> durable = IsDurable(ForceStep(lsn), failure_);
    if (!durable.ok() || *durable) return durable;
    // The thread that held the step may never make another one.
    return replicated_ == nullptr || replicated_->IsBegun(lsn);
  };
  ALPHEUS_ASSIGN_OR_RETURN(const bool begun, is_begun());
  if (!begun) [[unlikely]] {
    const typename ReplicatedForcer<P>::Beginner beginner(*replicated_);
    ALPHEUS_RETURN_IF_ERROR(WaitFor("begin a force", Deadline(), is_begun));
  }
  CallAttendantIfNeeded();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::ForceUnder(const ForcePolicy& policy, Lsn lsn,
                                    Deadline deadline) {
  if (policy.group != 0) return ForceInGroup(policy.group, lsn, deadline);
  if (lsn.value % policy.frequency != 0) return absl::OkStatus();
  return ForceUntilDurable(lsn, deadline);
}

template <Persistence P>
absl::Status RingLog<P>::ForceInGroup(uint32_t group, Lsn lsn,
                                      Deadline deadline) {
  std::optional<Lsn> due;
  ALPHEUS_RETURN_IF_ERROR(
      WaitFor("group commit", deadline, [&]() -> absl::StatusOr<bool> {
        PollReplication();
        return group_commit_.TryJoin(lsn, group, &due);
      }));
  if (!due) return absl::OkStatus();
  absl::Status forced = ForceUntilDurable(*due, deadline);
  group_commit_.Done();
  progress_.Notify();
  return forced;
}

template <Persistence P>
absl::Status RingLog<P>::ForceUntilDurable(Lsn lsn, Deadline deadline) {
  return WaitFor("force", deadline, [&]() -> absl::StatusOr<bool> {
    const absl::StatusOr<bool> durable = IsDurable(ForceStep(lsn), failure_);
    if (!durable.ok() || *durable) return durable;
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(lsn));
    return false;
  });
}

template <Persistence P>
absl::Status RingLog<P>::ForceAppended(Lsn lsn, const ForcePolicy& policy,
                                       Deadline deadline) {
  if (failure_.failed()) return failure_.status();
  absl::Status forced = ForceUnder(policy, lsn, deadline);
  if (forced.ok()) [[likely]]
    return forced;
  if (absl::IsFailedPrecondition(forced)) {
    return absl::AbortedError(absl::StrCat(options_.name, ": LSN ", lsn.value,
                                           " is completed but not forced. ",
                                           forced.message()));
  }
  return forced;
}

template <Persistence P>
absl::Status RingLog<P>::OnDurable(Lsn lsn, DurableCallback callback) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  callbacks_.Add(lsn, std::move(callback));
  CallAttendantIfNeeded();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::WaitDurable(Lsn lsn, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  // The thread that runs this callback may be the only one that would force.
  const bool is_in_callback = callbacks_.AreRunHere();
  return WaitFor("wait for durable", deadline, [&]() -> absl::StatusOr<bool> {
    is_in_callback ? (void)ForceStep(lsn) : PollReplication();
    if (durable_lsn() >= lsn) return true;
    if (failure_.failed()) return failure_.status();
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(lsn));
    return false;
  });
}

// Members, not the class: that is for ring_log.cc.
#define ALPHEUS_INSTANTIATE(P)                                             \
  template absl::Status RingLog<P>::Force(Lsn, ForcePolicy, Deadline);     \
  template absl::Status RingLog<P>::BeginForce(Lsn);                       \
  template absl::Status RingLog<P>::ForceUntilDurable(Lsn, Deadline);      \
  template absl::Status RingLog<P>::ForceAppended(Lsn, const ForcePolicy&, \
                                                  Deadline);               \
  template absl::Status RingLog<P>::OnDurable(Lsn, DurableCallback);       \
  template absl::Status RingLog<P>::WaitDurable(Lsn, Deadline)

ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);

#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
