// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/ring_log.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/base/thread_token.h"
#include "log/core/durability/local_durability.h"
#include "log/core/durability/replicated_durability.h"
#include "log/core/write/own_reservations.h"
#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
std::unique_ptr<ActivityWatch> RingLog<P>::MakeWatch(
    const RingLogOptions& options, Waiter& waiter) {
  if (options.sink == nullptr) return nullptr;
  return std::make_unique<ActivityWatch>(waiter, *options.sink);
}

template <Persistence P>
std::unique_ptr<LogDurability<P>> RingLog<P>::MakeDurability(
    const RingLogStart& start) {
  const LogDurabilityParts<P> parts = {
      options_.name, pmem_,     region_,   ring_,    *start.index, tracker_,
      reclaimer_,    reserver_, progress_, failure_, clock_};
  const LogDurabilityStart begin = {
      start.superline.log_id, start.superline.log_epoch, start.last, start.end};
  if (watch_ == nullptr) {
    return std::make_unique<LocalDurability<P>>(parts, begin);
  }
  return std::make_unique<ReplicatedDurability<P>>(
      parts, begin,
      ReplicationParts{*options_.sink, options_.flush_order, *watch_});
}

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
      watch_(MakeWatch(options, waiter)),
      waiter_(watch_ == nullptr ? waiter : *watch_),
      // Calls of a replicated log sleep for each record.
      progress_(waiter_, watch_ == nullptr ? Progress::PaidBy::kRareSide
                                           : Progress::PaidBy::kBothSides),
      tracker_(options.exposure_records_max),
      superline_(pmem, region, start.superline, start.superline_seq, failure_),
      reclaimer_(pmem, options.name, ring_, start.table, start.superline,
                 options.ceiling_step_bytes, start.index, superline_),
      durability_(MakeDurability(start)),
      durable_lsn_word_(durability_->durable_lsn_word()),
      reserver_(ring_.capacity(), tracker_.size(),
                {start.end.lsn, start.end.offset}, durable_lsn_word_,
                durability_->reuse_limit_word()),
      writer_(pmem, ring_,
              reclaimer_.table().KeyOf(&reclaimer_.table().entries().back()),
              start.superline.log_epoch) {
  CheckInvariants();
}

template <Persistence P>
RingLog<P>::~RingLog() {
  ALPHEUS_CHECK(!HasOpenReservations(),
                "a Reservation must not outlive its log (reservation.h)");
  durability_->Abandon(absl::CancelledError(absl::StrCat(
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
  Finish(record, RecordType::kAborted);
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
void RingLog<P>::Detach(ReservedRecord& record) {
  tracker_.Disown(record.lsn);
  if (record.owner == ThreadToken()) --OwnReservationsMax();
  record.owner = 0;
}

// Decides whether a record gets a fence of its own.
// * Forced records do. Fences of concurrent threads are best left to the
//   processor, or to the kernel, which merges its calls to a disk.
// * Under a policy fences are saved: all of them where a fence is a system
//   call.
// * Else a fence is cheaper than the way through the cache from some size on.
//   That size is smaller if several threads write, because the forcing thread
//   has to fetch the others' lines.
template <Persistence P>
inline bool RingLog<P>::IsPersistedAtOnce(Lsn lsn, size_t payload_bytes,
                                          bool forced) {
  if (forced) return true;
  if constexpr (P::kFenceIsCall) return false;
  constexpr size_t kCachedBytesMax = 768;
  constexpr size_t kCachedBytesMaxShared = 192;
  if (payload_bytes <= kCachedBytesMaxShared) return false;
  return payload_bytes > kCachedBytesMax || writer_watch_.IsShared(lsn);
}

template <Persistence P>
absl::StatusOr<Lsn> RingLog<P>::Append(
    std::span<const std::span<const std::byte>> parts, ForcePolicy policy,
    Deadline deadline, std::span<const std::byte>* in_ring) {
  reserver_.PrefetchForReserve();
  const bool forced = policy.forces_each();
  if (!forced) {
    if (!policy.IsPossible(exposed_max())) [[unlikely]]
      return CheckForcePolicy(policy, exposed_max(), options_.name);
  } else if (OwnReservationsMax() != 0) {
    // First of all: a refusal must mean that nothing happened.
    ALPHEUS_RETURN_IF_ERROR(CheckAppendable());
  }
  Payload payload(parts);
  if (payload.bytes <= payload_bytes_max_) [[likely]] {
    payload.ComputeCrc();
  }
  Reserver::Space space;
  if (!TryTakeSpace(payload.bytes, &space)) [[unlikely]] {
    ALPHEUS_ASSIGN_OR_RETURN(space, TakeSpace(payload.bytes, deadline));
  }
  if (in_ring != nullptr) {
    *in_ring = {ring_.At(space.offset) + kRecordHeaderBytes, payload.bytes};
  }
  pmem_.YieldPoint("reserve: taken");
  // Spinning 32 times takes as long as some fences. A thread that will not wait
  // for its record spins longer: a record that it leaves out of order costs the
  // others more.
  const int spins = forced ? 32 : 128;
  // Records for backups are read from the cache, and their bytes must not
  // change once completed.
  if (!durability_->is_replicated() &&
      IsPersistedAtOnce(space.lsn, payload.bytes, forced)) {
    const auto progressed = WriteAndPersist(space, payload, spins);
    if (progressed == Forcer<P>::Progressed::kDurable && policy.group == 0)
        [[likely]] {
      return space.lsn;
    }
  } else {
    WriteCompleted(space, payload);
  }
  // Two calls less for most records under a frequency.
  if (!policy.Forces(space.lsn) && !failure_.failed()) return space.lsn;
  ALPHEUS_RETURN_IF_ERROR(ForceAppended(space.lsn, policy, deadline));
  return space.lsn;
}

template <Persistence P>
void RingLog<P>::WriteCompleted(const Reserver::Space& space,
                                const Payload& payload) {
  tracker_.NoteReserved(space.lsn, {space.begin, space.end}, 0);
  MarkCompleted(space.lsn, writer_.WriteCached(space, payload, durable_lsn()));
}

template <Persistence P>
typename Forcer<P>::Progressed RingLog<P>::WriteAndPersist(
    const Reserver::Space& space, const Payload& payload, int spins) {
  const uint32_t header_crc = writer_.WriteWhole(space, payload, durable_lsn());
  const auto progressed =
      durability_->forcer().PersistOwn(space, header_crc, spins);
  if (progressed == Forcer<P>::Progressed::kFailed) {
    // Not a valid record, but marked completed so that no thread waits for it.
    tracker_.NoteReserved(space.lsn, {space.begin, space.end}, 0);
    MarkCompleted(space.lsn, header_crc);
  }
  return progressed;
}

// --- Forcing -----------------------------------------------------------------

template <Persistence P>
absl::Status RingLog<P>::ForceAppended(Lsn lsn, const ForcePolicy& policy,
                                       Deadline deadline) {
  if (failure_.failed()) return failure_.status();
  absl::Status forced = durability_->ForceUnder(policy, lsn, deadline);
  if (forced.ok()) [[likely]]
    return forced;
  if (absl::IsFailedPrecondition(forced)) {
    return absl::CancelledError(absl::StrCat(options_.name, ": LSN ", lsn.value,
                                             " is completed but not forced. ",
                                             forced.message()));
  }
  return forced;
}

template <Persistence P>
absl::Status RingLog<P>::Force(Lsn lsn, ForcePolicy policy, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(
      CheckForcePolicy(policy, exposed_max(), options_.name));
  ALPHEUS_RETURN_IF_ERROR(CheckAssigned(lsn));
  return durability_->ForceUnder(policy, lsn, deadline);
}

template <Persistence P>
absl::Status RingLog<P>::BeginForce(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckAssigned(lsn));
  return durability_->BeginForce(lsn);
}

template <Persistence P>
absl::Status RingLog<P>::WaitDurable(Lsn lsn, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckAssigned(lsn));
  return durability_->WaitDurable(lsn, deadline);
}

template <Persistence P>
absl::Status RingLog<P>::OnPersisted(Lsn lsn, PersistedBy by,
                                     DurableCallback callback) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckAssigned(lsn));
  durability_->OnPersisted(by, lsn, std::move(callback));
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::ConfirmEpoch(Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  return durability_->ConfirmEpoch(deadline);
}

template <Persistence P>
absl::Status RingLog<P>::OnEpochConfirmed(DurableCallback callback) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  durability_->OnEpochConfirmed(std::move(callback));
  return absl::OkStatus();
}

template <Persistence P>
absl::StatusOr<bool> RingLog<P>::OnResumed(DurableCallback callback) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  return durability_->OnResumed(std::move(callback));
}

// --- Room --------------------------------------------------------------------

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
      durability_->WaitFor("reserve", deadline, [&]() -> absl::StatusOr<bool> {
        for (;;) {
          const uint64_t limit = durability_->reuse_limit_word().load();
          const auto outcome = reserver_.TryReserve(record_bytes, &space);
          if (outcome == Reserver::Outcome::kReserved) return true;
          ALPHEUS_ASSIGN_OR_RETURN(
              const bool again,
              MakeRoom(outcome, limit, space, bytes, deadline));
          if (!again) return false;
        }
      }));
  return space;
}

template <Persistence P>
absl::StatusOr<bool> RingLog<P>::MakeRoom(Reserver::Outcome refusal,
                                          uint64_t limit,
                                          const Reserver::Space& refused,
                                          size_t bytes, Deadline deadline) {
  if (failure_.failed()) return failure_.status();
  // Each refusal ends when records become durable: the exposure shrinks, the
  // head may pass aborted records, and a log that is held comes to rest.
  const Lsn before = durable_lsn();
  if (durability_->Step(next_lsn() - 1) == Forcer<P>::Progressed::kFailed) {
    return failure_.status();
  }
  if (refusal == Reserver::Outcome::kQuiesced) {
    durability_->Poll();
    return false;
  }
  if (refusal == Reserver::Outcome::kExposureFull) {
    if (durable_lsn() > before) return true;
    ALPHEUS_RETURN_IF_ERROR(
        durability_->CheckNotBlockedBySelf(first_open_lsn()));
    return false;
  }
  const absl::StatusOr<bool> published =
      reclaimer_.Publish(durable_lsn(), refused.end);
  ALPHEUS_RETURN_IF_ERROR(NotifyIfFailed(published.status()));
  durability_->Poll();
  // While the epoch changes no space is freed; the head is written afterwards.
  if (!*published) return false;
  const bool awaits_backups = durability_->AwaitsBackups();
  // Space was freed by this call, or by another thread since the refusal.
  if (durability_->reuse_limit_word().load() != limit) return true;
  if (failure_.failed()) return failure_.status();
  // Wait for backups, unlike for the application: they ack, or are dropped.
  if (awaits_backups) return false;
  if (head_lsn() > durable_lsn()) {
    // Nothing durable is left to clean: open records fill the ring.
    ALPHEUS_RETURN_IF_ERROR(
        durability_->CheckNotBlockedBySelf(first_open_lsn()));
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

// --- Cleaning, reading and closing -------------------------------------------

template <Persistence P>
absl::Status RingLog<P>::Cleanup(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckAssigned(lsn));
  ALPHEUS_RETURN_IF_ERROR(NotifyIfFailed(reclaimer_.Clean(lsn, durable_lsn())));
  durability_->AnnounceHead();
  progress_.Notify();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::CleanupThrough(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_RETURN_IF_ERROR(CheckAssigned(lsn));
  ALPHEUS_RETURN_IF_ERROR(
      NotifyIfFailed(reclaimer_.CleanThrough(lsn, durable_lsn())));
  durability_->AnnounceHead();
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
    ALPHEUS_RETURN_IF_ERROR(
        durability_->ForceUnder(ForcePolicy::Each(), last, Deadline()));
    ALPHEUS_RETURN_IF_ERROR(
        NotifyIfFailed(reclaimer_.CleanThrough(last, durable_lsn())));
  }
  // The superline update is the commit point (P-L11). In a replicated log it is
  // the W-th update, because an opening takes the highest head that R replicas
  // report.
  ALPHEUS_RETURN_IF_ERROR(PublishHead());
  progress_.Notify();
  return durability_->WaitHeadDurable(Deadline());
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
  is_closing_.store(true, std::memory_order_release);
  absl::Status closed = CloseWhole();
  is_closing_.store(false, std::memory_order_release);
  return closed;
}

template <Persistence P>
absl::Status RingLog<P>::CloseWhole() {
  if (is_held_.load(std::memory_order_acquire)) {
    // A change of the epoch has begun, and writes the region.
    ALPHEUS_RETURN_IF_ERROR(durability_->WaitFor(
        "close", Deadline(), [&]() -> absl::StatusOr<bool> {
          durability_->Poll();
          if (failure_.failed()) return failure_.status();
          return !is_held_.load(std::memory_order_acquire);
        }));
  }
  ALPHEUS_RETURN_IF_ERROR(ForceEverything());
  CheckInvariants();
  ALPHEUS_RETURN_IF_ERROR(durability_->Finish());
  const absl::Status published = PublishHead();
  // A record that can't be read stops the head. Everything is durable all the
  // same, and the next opening begins at the head of before.
  if (!absl::IsDataLoss(published)) {
    ALPHEUS_RETURN_IF_ERROR(published);
  }
  ALPHEUS_RETURN_IF_ERROR(durability_->WaitHeadDurable(Deadline()));
  ALPHEUS_RETURN_IF_ERROR(WriteCleanCloseWord());
  closed_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

template <Persistence P>
absl::Status RingLog<P>::PublishHead() {
  return NotifyIfFailed(durability_->WaitFor(
      "publish the head", Deadline(), [&]() -> absl::StatusOr<bool> {
        ALPHEUS_RETURN_IF_ERROR(failure_.status());
        ALPHEUS_ASSIGN_OR_RETURN(const bool published,
                                 reclaimer_.Publish(durable_lsn()));
        if (!published) durability_->Poll();
        return published;
      }));
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
    ALPHEUS_RETURN_IF_ERROR(
        durability_->ForceUnder(ForcePolicy::Each(), last, Deadline()));
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
  return NotifyIfFailed(failure_.status());
}

// --- Changing the epoch ------------------------------------------------------

template <Persistence P>
bool RingLog<P>::TryHold() {
  if (!IsUsable() || is_closing_.load(std::memory_order_acquire) ||
      !reserver_.TryHold()) {
    return false;
  }
  is_held_.store(true, std::memory_order_release);
  return true;
}

// By the published head: an opening finds none that is earlier, and whatever
// leaves the table with a later one makes more room.
template <Persistence P>
bool RingLog<P>::HasRoomForEpoch() const {
  const EpochTable& table = reclaimer_.table();
  EpochEntry next = table.entries().back();
  next.epoch = next.epoch + 1;
  next.start_lsn = next_lsn();
  const Lsn head = reclaimer_.published().head.lsn;
  const uint64_t room =
      std::min(superline_.Current().table_capacity, kEpochTableCapacity);
  return table.With(next, head).entries().size() <= room;
}

template <Persistence P>
absl::Status RingLog<P>::Continue(const RingLogStart& start) {
  const Superline& superline = start.superline;
  const Reserver::Next next = reserver_.next();
  const LogPosition head = {superline.head_lsn, superline.head_offset,
                            superline.head_chain};
  const LogPosition published = reclaimer_.published().head;
  // A member may have known a later head, from a primary before this one.
  // Records before it were cleaned.
  const bool goes_back = head.lsn < published.lsn;
  if (start.end.offset != next.tail || goes_back ||
      !durability_->forcer().Continue(superline.log_id, superline.log_epoch,
                                      start.end)) {
    return absl::DataLossError(
        absl::StrCat(options_.name, ": epoch ", superline.log_epoch.value,
                     " was opened with LSN ", head.lsn.value, " to ",
                     start.end.lsn.value - 1, ", expected ",
                     published.lsn.value, " or a later one to ",
                     next.lsn.value - 1, " of this log. Open the log again"));
  }
  superline_.Continue(superline, start.superline_seq);
  reclaimer_.Continue(start.table, superline);
  const EpochTable& table = reclaimer_.table();
  writer_.Continue(table.KeyOf(&table.entries().back()), superline.log_epoch);
  return absl::OkStatus();
}

// Release, in Unhold: a thread that reserves afterwards sees the new epoch.
template <Persistence P>
void RingLog<P>::Resume() {
  reclaimer_.UnholdHead();
  is_held_.store(false, std::memory_order_release);
  reserver_.Unhold();
  durability_->NoteResumed();
}

// --- Scrubbing ---------------------------------------------------------------

template <Persistence P>
absl::Status RingLog<P>::RestoreBytes(RingOffset offset,
                                      std::span<const std::byte> bytes) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  return repair_.RestoreBytes(offset, bytes);
}

template <Persistence P>
absl::StatusOr<int> RingLog<P>::RepairCopies() {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  return repair_.RepairCopies();
}

// --- Checks ------------------------------------------------------------------

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
absl::Status RingLog<P>::CheckAssigned(Lsn lsn) const {
  const Lsn next = next_lsn();
  if (lsn.value != 0 && lsn < next) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(options_.name, ": LSN ", lsn.value,
                                            " was never assigned; the next is ",
                                            next.value));
}

template <Persistence P>
absl::Status RingLog<P>::CheckAppendable() const {
  // Failure first: finishing the reservation would not help.
  ALPHEUS_RETURN_IF_ERROR(Usable());
  return durability_->CheckNotBlockedBySelf(next_lsn() - 1);
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

ALPHEUS_INSTANTIATE_CLASS(RingLog);

}  // namespace alpheus
