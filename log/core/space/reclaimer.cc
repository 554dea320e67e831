// SPDX-License-Identifier: Apache-2.0
#include "log/core/space/reclaimer.h"

#include <utility>

#include "absl/base/dynamic_annotations.h"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
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
Reclaimer<P>::Reclaimer(P& pmem, std::string name, uint64_t ring_offset,
                        Ring ring, EpochTable table, const LogPosition& head,
                        std::shared_ptr<LsnIndex> index,
                        SuperlineStore<P>& superline)
    : pmem_(pmem),
      name_(std::move(name)),
      ring_offset_(ring_offset),
      ring_(ring),
      table_(std::move(table)),
      index_(std::move(index)),
      superline_(superline),
      head_(head),
      published_(head),
      head_lsn_(head.lsn.value),
      reuse_limit_(head.offset.value + ring.capacity()) {}

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
  }
  SetHead(cursor.position());
  ALPHEUS_RETURN_IF_ERROR(AdvanceOverCleaned(durable_lsn));
  return PublishLazily();
}

template <Persistence P>
absl::Status Reclaimer<P>::Publish(Lsn durable_lsn) {
  const MutexLock lock(mutex_);
  ALPHEUS_RETURN_IF_ERROR(AdvanceOverCleaned(durable_lsn));
  return head_ == published_ ? absl::OkStatus() : PublishLocked();
}

template <Persistence P>
absl::StatusOr<bool> Reclaimer<P>::CopyNext(TailPlace& place,
                                            Lsn durable_lsn) const {
  while (place.lsn <= durable_lsn) {
    const TailPlace before = {place.lsn, place.offset, {}, {}, {}};
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
  const std::vector<EpochEntry>& entries = table_.entries();
  if (entries.size() < kManyEpochs) return false;
  const Lsn end_of_oldest = entries[1].start_lsn;
  return published_.lsn < end_of_oldest && end_of_oldest <= head_.lsn;
}

template <Persistence P>
absl::Status Reclaimer<P>::PublishLazily() {
  const bool is_little =
      head_.offset - published_.offset < ring_.capacity() / kPublishFraction;
  if (is_little && !LetsEpochsGo()) return absl::OkStatus();
  return PublishLocked();
}

template <Persistence P>
absl::Status Reclaimer<P>::PublishLocked() {
  const LogPosition head = head_;
  ALPHEUS_RETURN_IF_ERROR(superline_.Update([&head](Superline& superline) {
    superline.head_lsn = head.lsn;
    superline.head_offset = head.offset;
    superline.head_chain = head.chain;
  }));
  published_ = head;
  // Release: a thread that may reuse the bytes knows that the head is on media
  // (RCL2).
  reuse_limit_.store(head.offset.value + ring_.capacity(),
                     std::memory_order_release);
  return absl::OkStatus();
}

template <Persistence P>
void Reclaimer<P>::SetHead(const LogPosition& head) {
  head_ = head;
  head_lsn_.store(head.lsn.value, std::memory_order_release);
}

template <Persistence P>
RecordCursor Reclaimer<P>::HeaderCursor(const LogPosition& from) const {
  return {ring_, table_, from, published_.offset + ring_.capacity(),
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
