// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/ring_log.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/base/thread_token.h"
#include "log/core/write/own_reservations.h"
#include "log/pmem/backends.h"

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
      waiter_(waiter),
      watch_(MakeWatch(options, waiter)),
      progress_(watch_ == nullptr ? waiter : *watch_),
      own_progress_(waiter),
      tracker_(options.exposure_records_max),
      superline_(pmem, region, start.superline, start.superline_seq, failure_),
      reclaimer_(pmem, options.name, start.superline.ring_offset, ring_,
                 start.table,
                 {start.superline.head_lsn, start.superline.head_offset,
                  start.superline.head_chain},
                 start.index, superline_),
      forcer_(pmem, region, ring_, start.superline.log_id,
              start.superline.log_epoch, start.end, tracker_, *start.index,
              watch_ == nullptr ? progress_ : own_progress_, failure_),
      replicated_(MakeReplicated(start)),
      durable_lsn_word_(replicated_ == nullptr
                            ? forcer_.durable_lsn_word()
                            : replicated_->durable_lsn_word()),
      reserver_(ring_.capacity(), tracker_.size(),
                {start.end.lsn, start.end.offset}, durable_lsn_word_,
                reuse_limit_word()),
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
void RingLog<P>::HandOver(ReservedRecord& record) {
  tracker_.Disown(record.lsn);
  if (record.owner == ThreadToken()) --OwnReservationsMax();
  record.owner = 0;
}

template <Persistence P>
absl::StatusOr<Lsn> RingLog<P>::Append(
    std::span<const std::span<const std::byte>> parts, ForcePolicy policy,
    Deadline deadline) {
  Reserver::Space space;
  ALPHEUS_RETURN_IF_ERROR(AppendTo(parts, policy, deadline, &space));
  return space.lsn;
}

template <Persistence P>
absl::StatusOr<AppendedRecord> RingLog<P>::AppendInRing(
    std::span<const std::span<const std::byte>> parts, Deadline deadline) {
  Reserver::Space space;
  ALPHEUS_RETURN_IF_ERROR(AppendTo(parts, /*policy=*/1, deadline, &space));
  size_t bytes = 0;
  for (const std::span<const std::byte> part : parts) bytes += part.size();
  return AppendedRecord{space.lsn,
                        {ring_.At(space.offset) + kRecordHeaderBytes, bytes}};
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

// Inlined: an append can't afford extra stores (docs/design/performance.md).
template <Persistence P>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline absl::Status RingLog<P>::AppendTo(
    std::span<const std::span<const std::byte>> parts, ForcePolicy policy,
    Deadline deadline, Reserver::Space* space) {
  reserver_.PrefetchForReserve();
  const bool forced = policy.frequency == 1 && policy.group == 0;
  if (!forced) {
    if (!IsPossible(policy)) [[unlikely]]
      return CheckPolicy(policy);
  } else if (OwnReservationsMax() != 0) {
    // First of all: a refusal must mean that nothing happened.
    ALPHEUS_RETURN_IF_ERROR(CheckAppendable());
  }
  Payload payload(parts);
  if (payload.bytes <= payload_bytes_max_) [[likely]] {
    payload.ComputeCrc();
  }
  if (!TryTakeSpace(payload.bytes, space)) [[unlikely]] {
    ALPHEUS_ASSIGN_OR_RETURN(*space, TakeSpace(payload.bytes, deadline));
  }
  pmem_.YieldPoint("reserve: taken");
  // As long as some fences. A thread that will not wait for its record spins
  // longer: a record that it leaves out of order costs the others more.
  const int looks = forced ? 32 : 128;
  // Records for backups are read from the cache, and their bytes must not
  // change once completed.
  if (replicated_ == nullptr &&
      IsPersistedAtOnce(space->lsn, payload.bytes, forced)) {
    const auto progressed = WriteAndPersist(*space, payload, looks);
    if (progressed == Forcer<P>::Progressed::kDurable && policy.group == 0)
        [[likely]] {
      return absl::OkStatus();
    }
  } else {
    WriteCompleted(*space, payload);
  }
  return ForceAppended(space->lsn, policy, deadline);
}

template <Persistence P>
void RingLog<P>::WriteCompleted(const Reserver::Space& space,
                                const Payload& payload) {
  tracker_.NoteReserved(space.lsn, {space.begin, space.end}, 0);
  MarkCompleted(space.lsn, writer_.WriteCached(space, payload, durable_lsn()));
}

template <Persistence P>
typename Forcer<P>::Progressed RingLog<P>::WriteAndPersist(
    const Reserver::Space& space, const Payload& payload, int looks) {
  const uint32_t header_crc = writer_.WriteWhole(space, payload, durable_lsn());
  const auto progressed = forcer_.PersistOwn(space, header_crc, looks);
  if (progressed == Forcer<P>::Progressed::kFailed) {
    // Not a valid record, but marked completed so that no thread waits for it.
    tracker_.NoteReserved(space.lsn, {space.begin, space.end}, 0);
    MarkCompleted(space.lsn, header_crc);
  }
  return progressed;
}

template <Persistence P>
bool RingLog<P>::IsUsable() const {
  return !failure_.failed() && !closed_.load(std::memory_order_acquire);
}

ALPHEUS_INSTANTIATE_CLASS(RingLog);

}  // namespace alpheus
