// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring_log.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"
#include "log/base/thread_token.h"
#include "log/core/own_reservations.h"
#include "log/pmem/crash_model.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"

namespace alpheus {

template <Persistence P>
RingLog<P>::RingLog(P& pmem, std::span<std::byte> region,
                    const RingLogStart& start, const RingLogOptions& options,
                    const Clock& clock, Waiter& waiter)
    : pmem_(pmem),
      region_(region),
      options_(options),
      ring_(RingOf(region, start.superline)),
      payload_bytes_max_(PayloadBytesMax(ring_.capacity())),
      clock_(clock),
      progress_(waiter),
      tracker_(options.exposure_records_max),
      superline_(pmem, region, start.superline, start.superline_seq, failure_),
      reclaimer_(pmem, options.name, start.superline.ring_offset, ring_,
                 start.table,
                 {start.superline.head_lsn, start.superline.head_offset,
                  start.superline.head_chain},
                 start.index, superline_),
      forcer_(pmem, region, ring_, start.superline.log_id,
              start.superline.log_epoch, start.end, tracker_, *start.index,
              progress_, failure_),
      reserver_(ring_.capacity(), tracker_.size(),
                {start.end.lsn, start.end.offset}, forcer_.durable_lsn_word(),
                reclaimer_.reuse_limit_word()),
      writer_(pmem, ring_,
              reclaimer_.table().KeyOf(&reclaimer_.table().entries().back()),
              start.superline.log_epoch) {
  CheckInvariants();
}

template <Persistence P>
RingLog<P>::~RingLog() {
  ALPHEUS_CHECK(!HasOpenReservations(),
                "a Reservation must not outlive its log (reservation.h)");
  callbacks_.Abandon(absl::AbortedError(absl::StrCat(
      options_.name,
      ": the log was dropped before the record was durable; the outcome is "
      "unknown until it is opened again")));
}

template <Persistence P>
absl::StatusOr<ReservedRecord> RingLog<P>::Reserve(size_t bytes,
                                                   Deadline deadline) {
  Reserver::Space space;
  if (!TryTakeSpace(bytes, &space)) {
    ALPHEUS_ASSIGN_OR_RETURN(space, TakeSpace(bytes, deadline));
  }
  pmem_.YieldPoint("reserve: taken");
  ReservedRecord record;
  record.lsn = space.lsn;
  record.begin = space.begin;
  record.offset = space.offset;
  record.payload_bytes = bytes;
  record.payload = ring_.At(space.offset) + kRecordHeaderBytes;
  record.owner = ThreadToken();
  tracker_.NoteReserved(space.lsn, {space.begin, space.end}, record.owner);
  ++OwnReservationsMax();
  return record;
}

template <Persistence P>
bool RingLog<P>::TryTakeSpace(size_t bytes, Reserver::Space* space) {
  return IsUsable() && bytes <= payload_bytes_max_ &&
         reserver_.TryReserve(RecordBytes(bytes), space) ==
             Reserver::Outcome::kReserved;
}

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
          const uint64_t limit = reclaimer_.reuse_limit_word().load();
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
  if (refusal == Reserver::Outcome::kHeld) return false;
  // Both other refusals end when records become durable: the exposure shrinks,
  // and aborted records may be passed by the head.
  const Lsn before = durable_lsn();
  if (!IsMutant(Mutant::kCapForcesNothing) &&
      forcer_.Step(next_lsn() - 1) == Forcer<P>::Progressed::kFailed) {
    return failure_.status();
  }
  if (refusal == Reserver::Outcome::kExposureFull) {
    if (durable_lsn() > before) return true;
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(first_open_lsn()));
    return false;
  }
  if (!IsMutant(Mutant::kRoomUnpublished)) {
    ALPHEUS_RETURN_IF_ERROR(reclaimer_.Publish(durable_lsn()));
  }
  // Freed by this call or by another thread since the refusal.
  if (reclaimer_.reuse_limit_word().load() != limit) return true;
  if (head_lsn() > durable_lsn()) {
    // Nothing durable is left to clean: what fills the ring is open.
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(first_open_lsn()));
  }
  // Only the application can clean; without a deadline of its own it would
  // wait for itself.
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
      " bytes. Clean records that are no longer needed, then reserve again"));
}

template <Persistence P>
absl::Status RingLog<P>::Copy(ReservedRecord& record, size_t offset,
                              std::span<const std::byte> bytes) {
  if (offset > record.payload_bytes ||
      bytes.size() > record.payload_bytes - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.name, ": ", bytes.size(), " bytes at offset ",
                     offset, " do not fit LSN ", record.lsn.value, " of ",
                     record.payload_bytes, " bytes"));
  }
  writer_.Copy(record, offset, bytes, record.owner == ThreadToken());
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::Complete(ReservedRecord& record) {
  Finish(record, RecordType::kData);
  return failure_.status();
}

template <Persistence P>
void RingLog<P>::Abort(const ReservedRecord& record) {
  if (IsMutant(Mutant::kAbortLeavesOpen)) return;
  const bool as_data = IsMutant(Mutant::kAbortCompletes);
  Finish(record, as_data ? RecordType::kData : RecordType::kAborted);
}

template <Persistence P>
void RingLog<P>::Finish(const ReservedRecord& record, RecordType type) {
  const uint32_t header_crc = writer_.Seal(record, type, durable_lsn());
  if (record.owner == ThreadToken()) --OwnReservationsMax();
  MarkCompleted(record.lsn, header_crc);
}

template <Persistence P>
void RingLog<P>::MarkCompleted(Lsn lsn, uint32_t header_crc) {
  pmem_.YieldPoint("complete: sealed");
  tracker_.MarkCompleted(lsn, header_crc);
  progress_.Notify();
}

template <Persistence P>
void RingLog<P>::HandOver(ReservedRecord& record) {
  tracker_.Disown(record.lsn);
  if (record.owner == ThreadToken()) --OwnReservationsMax();
  record.owner = 0;
}

template <Persistence P>
absl::Status RingLog<P>::Force(Lsn lsn, ForcePolicy policy, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckPolicy(policy));
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  return ForceUnder(policy, lsn, deadline);
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
    switch (forcer_.Step(lsn)) {
      case Forcer<P>::Progressed::kDurable:
        return true;
      case Forcer<P>::Progressed::kFailed:
        return failure_.status();
      case Forcer<P>::Progressed::kWaiting:
        break;
    }
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(lsn));
    return false;
  });
}

template <Persistence P>
absl::StatusOr<Lsn> RingLog<P>::Append(
    std::span<const std::span<const std::byte>> parts, ForcePolicy policy,
    Deadline deadline) {
  reserver_.PrefetchForReserve();
  const bool forced = policy.frequency == 1 && policy.group == 0;
  if (!forced) {
    ALPHEUS_RETURN_IF_ERROR(CheckPolicy(policy));
  } else if (OwnReservationsMax() != 0) {
    // Before anything is written: a refusal must mean that nothing happened.
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(next_lsn() - 1));
  }
  Payload payload(parts);
  if (payload.bytes <= payload_bytes_max_ || IsMutant(Mutant::kSizeUnchecked))
      [[likely]] {
    payload.ComputeCrc();
  }
  Reserver::Space space;
  if (!TryTakeSpace(payload.bytes, &space)) [[unlikely]] {
    ALPHEUS_ASSIGN_OR_RETURN(space, TakeSpace(payload.bytes, deadline));
  }
  pmem_.YieldPoint("reserve: taken");
  // A policy saves fences. From some size on a fence is cheaper than the way
  // through the cache, and the record is persisted at once.
  constexpr size_t kCachedBytesMax = 768;
  constexpr int kLooks = 32;  // some fences long
  if (forced || payload.bytes > kCachedBytesMax) {
    const auto progressed =
        WriteAndPersist(space, payload, forced ? kLooks : 1);
    if (progressed == Forcer<P>::Progressed::kDurable && policy.group == 0)
        [[likely]] {
      return space.lsn;
    }
  } else {
    WriteCompleted(space, payload);
  }
  ALPHEUS_RETURN_IF_ERROR(ForceAppended(space.lsn, policy, deadline));
  return space.lsn;
}

template <Persistence P>
absl::Status RingLog<P>::ForceAppended(Lsn lsn, const ForcePolicy& policy,
                                       Deadline deadline) {
  if (failure_.failed()) return failure_.status();
  absl::Status forced = ForceUnder(policy, lsn, deadline);
  if (absl::IsFailedPrecondition(forced)) {
    return absl::AbortedError(absl::StrCat(options_.name, ": LSN ", lsn.value,
                                           " is completed but not forced. ",
                                           forced.message()));
  }
  return forced;
}

template <Persistence P>
void RingLog<P>::WriteCompleted(const Reserver::Space& space,
                                const Payload& payload) {
  tracker_.NoteReserved(space.lsn, {space.begin, space.end}, 0);
  MarkCompleted(space.lsn,
                IsMutant(Mutant::kUnfencedStoresPastCache)
                    ? writer_.WriteWhole(space, payload, durable_lsn())
                    : writer_.WriteCached(space, payload, durable_lsn()));
}

template <Persistence P>
typename Forcer<P>::Progressed RingLog<P>::WriteAndPersist(
    const Reserver::Space& space, const Payload& payload, int looks) {
  const uint32_t header_crc = writer_.WriteWhole(space, payload, durable_lsn());
  const auto progressed = forcer_.PersistOwn(space, header_crc, looks);
  if (progressed == Forcer<P>::Progressed::kFailed) {
    // Not a record: but nobody may wait for it either.
    tracker_.NoteReserved(space.lsn, {space.begin, space.end}, 0);
    MarkCompleted(space.lsn, header_crc);
  }
  return progressed;
}

template <Persistence P>
absl::Status RingLog<P>::OnDurable(Lsn lsn, DurableCallback callback) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  callbacks_.Add(lsn, std::move(callback));
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::WaitDurable(Lsn lsn, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  return WaitFor("wait for durable", deadline, [&]() -> absl::StatusOr<bool> {
    if (durable_lsn() >= lsn) return true;
    if (failure_.failed()) return failure_.status();
    ALPHEUS_RETURN_IF_ERROR(CheckNotBlockedBySelf(lsn));
    return false;
  });
}

template <Persistence P>
absl::Status RingLog<P>::Cleanup(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  ALPHEUS_RETURN_IF_ERROR(reclaimer_.Clean(lsn, durable_lsn()));
  progress_.Notify();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::CleanupThrough(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckGiven(lsn));
  ALPHEUS_RETURN_IF_ERROR(reclaimer_.CleanThrough(lsn, durable_lsn()));
  progress_.Notify();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::CleanupAll() {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  if (HasOpenReservations() && !IsMutant(Mutant::kCleanupAllDespiteOpen)) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": LSN ", first_open_lsn().value,
        " is still open; complete or abort it before cleaning everything"));
  }
  const Lsn last = next_lsn() - 1;
  if (last >= head_lsn()) {
    ALPHEUS_RETURN_IF_ERROR(ForceUntilDurable(last, Deadline()));
    ALPHEUS_RETURN_IF_ERROR(reclaimer_.CleanThrough(last, durable_lsn()));
  }
  // The superline update is the commit point (L11).
  if (IsMutant(Mutant::kCleanupAllUnpublished)) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(reclaimer_.Publish(durable_lsn()));
  progress_.Notify();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::Close() {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  if (HasOpenReservations()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.name, ": LSN ", first_open_lsn().value,
                     " is still open; complete or abort it before closing"));
  }
  if (const Lsn last = next_lsn() - 1; last > durable_lsn()) {
    ALPHEUS_RETURN_IF_ERROR(ForceUntilDurable(last, Deadline()));
  }
  CheckInvariants();
  ALPHEUS_RETURN_IF_ERROR(forcer_.WriteFinalWatermarks());
  ALPHEUS_RETURN_IF_ERROR(reclaimer_.Publish(durable_lsn()));
  ALPHEUS_RETURN_IF_ERROR(WriteCleanCloseWord());
  closed_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::WriteCleanCloseWord() {
  // After everything that it vouches for is on media.
  uint64_t* word = CleanCloseAddress(region_);
  pmem_.Store8(word,
               CleanCloseWord(superline_.Current().log_id, superline_.seq()));
  if (Persist(pmem_, word, sizeof(*word))) return absl::OkStatus();
  failure_.Fail(pmem_.Error());
  return failure_.status();
}

template <Persistence P>
Lsn RingLog<P>::first_open_lsn() const {
  const Lsn next = next_lsn();
  Lsn lsn = durable_lsn() + 1;
  while (lsn < next) {
    if (!tracker_.IsFinished(lsn) && lsn > durable_lsn()) return lsn;
    // Finished, or durable since: then its slot may have a new user.
    lsn = lsn + 1;
  }
  return next;
}

template <Persistence P>
void RingLog<P>::CheckInvariants() const {
  // Read in the order in which they may only grow apart.
  const Lsn head = head_lsn();
  const Lsn durable = durable_lsn();
  const Lsn next = next_lsn();
  ALPHEUS_CHECK(head <= durable + 1, "I1 (ring_log.h)");
  ALPHEUS_CHECK(durable + 1 <= next, "I1 (ring_log.h)");
  ALPHEUS_CHECK(next - durable - 1 <= tracker_.size(), "I2 (ring_log.h)");
}

template <Persistence P>
bool RingLog<P>::IsUsable() const {
  return !failure_.failed() && !closed_.load(std::memory_order_acquire);
}

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
  // Else reserving would force before the policy does (A3.1).
  const uint32_t records = std::max(policy.frequency, policy.group);
  return records == 1 || 2 * uint64_t{records} <= tracker_.size();
}

template <Persistence P>
inline absl::Status RingLog<P>::CheckPolicy(const ForcePolicy& policy) const {
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
  if (IsMutant(Mutant::kThreadWaitsForItself)) return absl::OkStatus();
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
template <class Step>
absl::Status RingLog<P>::WaitFor(const char* call, Deadline deadline,
                                 Step step) {
  for (int round = 0;; ++round) {
    absl::StatusOr<bool> finished = step();
    if (!finished.ok()) return finished.status();
    if (*finished) return absl::OkStatus();
    if (deadline.is_set() && deadline.HasPassed(clock_.NowNanos())) {
      if (IsMutant(Mutant::kDeadlinePoisons)) {
        failure_.Fail(absl::AbortedError("deadline"));
      }
      return absl::DeadlineExceededError(absl::StrCat(
          options_.name, ": ", call, " reached its deadline; LSN ",
          first_open_lsn().value, " is the first not finished, durable is ",
          durable_lsn().value,
          ". A record that was completed may still become durable"));
    }
    if (progress_.Spin(round)) continue;
    const uint32_t seen = progress_.Announce();
    if (!IsMutant(Mutant::kNoStepOnceAnnounced)) finished = step();
    if (finished.ok() && !*finished) progress_.Wait(seen, deadline);
    progress_.Withdraw();
    if (!finished.ok()) return finished.status();
    if (*finished) return absl::OkStatus();
  }
}

template class RingLog<LibpmemPersistence>;
template class RingLog<MsyncPersistence>;
template class RingLog<ModelPersistence>;

}  // namespace alpheus
