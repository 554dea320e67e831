// SPDX-License-Identifier: Apache-2.0
#include "log/core/space/reclaimer.h"

#include <algorithm>
#include <utility>

#include "absl/base/dynamic_annotations.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/core/space/ceiling.h"
#include "log/pmem/backends.h"

namespace alpheus {
namespace {

// The head is published when this part of the ring would be freed (P-A6).
constexpr uint64_t kPublishFraction = 16;
// Number of epochs, a quarter of a default table, from which those without a
// live record leave as soon as they may.
constexpr size_t kManyEpochs = 256;

}  // namespace

template <Persistence P>
Reclaimer<P>::Reclaimer(P& pmem, std::string name, Ring ring, EpochTable table,
                        const Superline& found, uint64_t ceiling_step,
                        std::shared_ptr<LsnIndex> index,
                        SuperlineStore<P>& superline)
    : pmem_(pmem),
      name_(std::move(name)),
      ring_offset_(found.ring_offset),
      ring_(ring),
      ceiling_step_(ceiling_step),
      raise_room_(
          std::min(ceiling_step / 2, ring.capacity() / kPublishFraction)),
      index_(std::move(index)),
      superline_(superline),
      head_{found.head_lsn, found.head_offset, found.head_chain},
      published_(head_),
      ceiling_(found.ceiling),
      head_lsn_(found.head_lsn.value),
      reuse_limit_(found.ceiling.value) {
  const MutexLock lock(mutex_);
  tables_.push_back(std::make_unique<const EpochTable>(std::move(table)));
  table_.store(tables_.back().get(), std::memory_order_release);
}

template <Persistence P>
absl::Status Reclaimer<P>::Clean(Lsn lsn, Lsn durable_lsn) {
  ALPHEUS_RETURN_IF_ERROR(CheckDurable(lsn, durable_lsn));
  const MutexLock lock(mutex_);
  if (lsn < head_.lsn) return AlreadyCleaned(lsn);
  RecordCursor cursor = HeaderCursor(index_->Nearest(lsn, head_));
  while (cursor.position().lsn <= lsn) {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return Unreadable(cursor.position());
    }
    index_->NoteWalked(cursor.position());
  }
  const RecordView& record = cursor.record();
  if (record.cleaned) return AlreadyCleaned(lsn);
  std::byte* header = ring_.At(record.offset);
  auto* word =
      reinterpret_cast<uint64_t*>(header + offsetof(RecordHeader, cleaned));
  // RCL5. The sanitizer of threads takes a fabric's reads for those of a
  // thread.
  ABSL_ANNOTATE_BENIGN_RACE_SIZED(word, sizeof(*word), "RCL5");
  pmem_.Store8(word, CleanedWord(record.seed));
  // No fence: a hint that is lost only makes the record come back (P-L9).
  pmem_.FlushHint(word, sizeof(*word));
  ALPHEUS_RETURN_IF_ERROR(AdvanceOverCleaned(durable_lsn));
  return PublishLazily();
}

template <Persistence P>
absl::Status Reclaimer<P>::CleanThrough(Lsn lsn, Lsn durable_lsn) {
  ALPHEUS_RETURN_IF_ERROR(CheckDurable(lsn, durable_lsn));
  const MutexLock lock(mutex_);
  if (lsn < head_.lsn) return absl::OkStatus();
  RecordCursor cursor = HeaderCursor(index_->Nearest(lsn + 1, head_));
  while (cursor.position().lsn <= lsn) {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return Unreadable(cursor.position());
    }
    index_->NoteWalked(cursor.position());
  }
  SetHead(cursor.position());
  ALPHEUS_RETURN_IF_ERROR(AdvanceOverCleaned(durable_lsn));
  return PublishLazily();
}

template <Persistence P>
absl::StatusOr<bool> Reclaimer<P>::Publish(Lsn durable_lsn, RingOffset wanted) {
  const MutexLock lock(mutex_);
  const absl::Status advanced = AdvanceOverCleaned(durable_lsn);
  if (is_held_) return false;
  // Another thread may have raised the ceiling meanwhile.
  const bool is_room_wanted =
      wanted > ceiling_ && NextCeiling(wanted) > ceiling_;
  // A record that can't be read stops the head, but no append that the ring has
  // room for.
  if (!is_room_wanted && (!advanced.ok() || head_ == published_)) {
    ALPHEUS_RETURN_IF_ERROR(advanced);
    return true;
  }
  ALPHEUS_RETURN_IF_ERROR(PublishLocked(wanted));
  return true;
}

template <Persistence P>
void Reclaimer<P>::HoldHead() {
  const MutexLock lock(mutex_);
  is_held_ = true;
}

template <Persistence P>
void Reclaimer<P>::Continue(EpochTable table, const Superline& superline) {
  const MutexLock lock(mutex_);
  ALPHEUS_CHECK(is_held_, "the head is held (RCL6)");
  ALPHEUS_CHECK(superline.head_lsn >= published_.lsn,
                "no head goes back that is on media (RCL1)");
  ALPHEUS_CHECK(superline.ceiling >= ceiling_, "CLG3 (ceiling.h)");
  tables_.push_back(std::make_unique<const EpochTable>(std::move(table)));
  // Release: a thread that sees the new table sees its entries.
  table_.store(tables_.back().get(), std::memory_order_release);
  published_ = {superline.head_lsn, superline.head_offset,
                superline.head_chain};
  if (head_.lsn < published_.lsn) SetHead(published_);
  ceiling_ = superline.ceiling;
  // Release: as in PublishLocked.
  reuse_limit_.store(ceiling_.value, std::memory_order_release);
  is_held_ = false;
}

template <Persistence P>
void Reclaimer<P>::UnholdHead() {
  const MutexLock lock(mutex_);
  is_held_ = false;
}

template <Persistence P>
absl::Status Reclaimer<P>::RaiseAhead(RingOffset end) {
  const uint64_t limit = reuse_limit_.load(std::memory_order_relaxed);
  // Each step of replication comes here: no lock, unless little room is left.
  if (end.value + raise_room_ <= limit) [[likely]]
    return absl::OkStatus();
  const MutexLock lock(mutex_);
  // Heads go by PublishLazily: a short step at the end of a lap is none.
  if (is_held_ || NextCeiling(end) - ceiling_ < raise_room_) {
    return absl::OkStatus();
  }
  return PublishLocked(end);
}

template <Persistence P>
absl::StatusOr<bool> Reclaimer<P>::CopyNext(TailPlace& place,
                                            Lsn durable_lsn) const {
  while (place.lsn <= durable_lsn) {
    const TailPlace before = {place.lsn, place.offset, {}, {}, {}, {}};
    ALPHEUS_ASSIGN_OR_RETURN(const RecordView record, CopyAt(place));
    if (record.aborted()) continue;
    // Verifies the copy, which no thread changes any more.
    if (!PayloadIsValid(record.seed, record.header, place.payload)) {
      place.lsn = before.lsn;
      place.offset = before.offset;
      return Unreadable({record.lsn(), record.offset});
    }
    place.copied_lsn = record.lsn();
    place.epoch = record.epoch();
    place.copied_offset = record.offset + kRecordHeaderBytes;
    return true;
  }
  return false;
}

template <Persistence P>
absl::StatusOr<RecordView> Reclaimer<P>::CopyAt(TailPlace& place) const {
  const MutexLock lock(mutex_);
  if (place.lsn < head_.lsn) {
    return absl::OutOfRangeError(absl::StrCat(
        name_, ": LSN ", place.lsn.value, " was cleaned before it was read; ",
        "the log begins at LSN ", head_.lsn.value, " now. Go on there"));
  }
  RecordCursor cursor = HeaderCursor(Locate(place));
  do {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return Unreadable(cursor.position());
    }
  } while (cursor.position().lsn <= place.lsn);
  const RecordView& record = cursor.record();
  place.payload.assign(record.payload.begin(), record.payload.end());
  place.lsn = cursor.position().lsn;
  place.offset = cursor.position().offset;
  return record;
}

template <Persistence P>
LogPosition Reclaimer<P>::Locate(const TailPlace& place) const {
  if (place.offset == RecordCursor::kNoOffset) {
    return index_->Nearest(place.lsn, head_);
  }
  return {place.lsn, place.offset, 0};
}

template <Persistence P>
absl::Status Reclaimer<P>::CheckDurable(Lsn lsn, Lsn durable_lsn) const {
  if (lsn <= durable_lsn) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      name_, ": LSN ", lsn.value, " is not durable yet (durable up to ",
      durable_lsn.value, "); force it before cleaning it, or abort it"));
}

template <Persistence P>
absl::Status Reclaimer<P>::AlreadyCleaned(Lsn lsn) const {
  return absl::NotFoundError(absl::StrCat(
      name_, ": LSN ", lsn.value, " is already cleaned; nothing to do"));
}

template <Persistence P>
absl::Status Reclaimer<P>::AdvanceOverCleaned(Lsn durable_lsn) {
  RecordCursor cursor = HeaderCursor(head_);
  LogPosition head = head_;
  while (cursor.position().lsn <= durable_lsn) {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return Unreadable(cursor.position());
    }
    if (!cursor.record().cleaned && !cursor.record().aborted()) break;
    head = cursor.position();
  }
  SetHead(head);
  return absl::OkStatus();
}

// Publishes early for a process that is always killed. It would never publish
// the little that it cleaned, and the table would fill with epochs without a
// live record.
template <Persistence P>
bool Reclaimer<P>::LetsEpochsGo() const {
  const std::vector<EpochEntry>& entries = table().entries();
  if (entries.size() < kManyEpochs) return false;
  const Lsn end_of_oldest = entries[1].start_lsn;
  return published_.lsn < end_of_oldest && end_of_oldest <= head_.lsn;
}

template <Persistence P>
absl::Status Reclaimer<P>::PublishLazily() {
  const bool is_little =
      head_.offset - published_.offset < ring_.capacity() / kPublishFraction;
  if (is_held_ || (is_little && !LetsEpochsGo())) return absl::OkStatus();
  return PublishLocked(RingOffset(0));
}

// A `wanted` that is not 0 lies after the head, and so does the log's end.
template <Persistence P>
RingOffset Reclaimer<P>::NextCeiling(RingOffset wanted) const {
  const RingOffset end = std::max(wanted, head_.offset);
  return std::max(ceiling_, CeilingAfter(end, head_.offset, ring_.capacity(),
                                         ceiling_step_));
}

template <Persistence P>
absl::Status Reclaimer<P>::PublishLocked(RingOffset wanted) {
  const LogPosition head = head_;
  const RingOffset ceiling = NextCeiling(wanted);
  ALPHEUS_RETURN_IF_ERROR(superline_.Update([&](Superline& superline) {
    superline.head_lsn = head.lsn;
    superline.head_offset = head.offset;
    superline.head_chain = head.chain;
    superline.ceiling = ceiling;
  }));
  published_ = head;
  ceiling_ = ceiling;
  // Release: a thread that may reuse the bytes knows that head and ceiling are
  // on media (RCL2).
  reuse_limit_.store(ceiling.value, std::memory_order_release);
  publications_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

template <Persistence P>
void Reclaimer<P>::SetHead(const LogPosition& head) {
  head_ = head;
  head_lsn_.store(head.lsn.value, std::memory_order_release);
}

template <Persistence P>
RecordCursor Reclaimer<P>::HeaderCursor(const LogPosition& from) const {
  return {ring_, table(), from, published_.offset + ring_.capacity(),
          RecordCursor::Payloads::kSkip};
}

template <Persistence P>
absl::Status Reclaimer<P>::Unreadable(const LogPosition& at) const {
  return absl::DataLossError(absl::StrCat(
      name_, ": the header of LSN ", at.lsn.value, " at offset ",
      ring_offset_ + ring_.Place(at.offset),
      " can't be read any more, though the record is durable. Copy what is "
      "left with `alpheus salvage`"));
}

ALPHEUS_INSTANTIATE_CLASS(Reclaimer);

}  // namespace alpheus
