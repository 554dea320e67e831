// SPDX-License-Identifier: Apache-2.0
#include "api/log/recovered_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"

namespace alpheus {
namespace {

RecoveredRecord Shown(const RecordView& view) {
  return {view.lsn(), view.epoch(), view.payload,
          view.offset + kRecordHeaderBytes};
}

}  // namespace

RecoveredSource::RecoveredSource(const Ring& ring, uint64_t ring_offset,
                                 const EpochTable& table,
                                 const LogPosition& head,
                                 const LogPosition& read_from, Lsn end_lsn,
                                 const std::atomic<bool>& is_released,
                                 std::string name)
    : read_from_(read_from.lsn < head.lsn ? head : read_from),
      unread_(ring, table, head, head.offset + ring.capacity(),
              RecordCursor::Payloads::kCheck),
      // Open has checked the payloads.
      cursor_(ring, table, read_from_, head.offset + ring.capacity(),
              RecordCursor::Payloads::kTrust),
      ring_(ring),
      ring_offset_(ring_offset),
      end_lsn_(end_lsn),
      is_released_(is_released),
      name_(std::move(name)) {}

// Reads each record when it is shown: bytes that were cleaned and overwritten
// since must not be taken for a record.
bool RecoveredSource::Next(RecoveredRecord* record) {
  while (status_.ok() && Current().position().lsn <= end_lsn_) {
    RecordCursor& cursor = Current();
    const LogPosition at = cursor.position();
    const RecordCursor::Step step = cursor.Next();
    if (IsReleased()) return false;
    if (step != RecordCursor::Step::kRecord) {
      status_ = Unreadable(at);
      return false;
    }
    if (unread_.position().lsn == read_from_.lsn && &cursor == &unread_) {
      status_ = CheckJoint();
      if (!status_.ok()) return false;
    }
    const RecordView& view = cursor.record();
    if (view.cleaned || view.aborted()) continue;
    *record = Shown(view);
    return true;
  }
  (void)IsReleased();
  return false;
}

// Checked after each read, and once more after the last record: before the
// region is given up no other process writes there.
bool RecoveredSource::IsReleased() {
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!is_released_.load(std::memory_order_acquire)) return false;
  if (status_.ok()) {
    status_ = absl::AbortedError(absl::StrCat(
        name_,
        ": the replica was released for another primary; the records shown "
        "last may belong to that primary's log. Open the log again"));
  }
  return true;
}

// Does what Next() does, in one loop where that is possible.
absl::Status RecoveredSource::ForEach(
    const std::function<absl::Status(const RecoveredRecord&)>& visit) {
  RecoveredRecord record;
  while (Next(&record)) {
    absl::Status visited = visit(record);
    // Next() reads the last unread record, and checks the joint after it.
    const bool is_read = &Current() == &cursor_;
    const Lsn last = is_read ? end_lsn_ : read_from_.lsn - 2;
    const auto show = [&](const LogPosition&, const RecordView& view) {
      if (!view.cleaned && !view.aborted()) {
        visited = visit(Shown(view));
      }
      return visited.ok() && view.lsn() < last;
    };
    if (visited.ok() && Current().position().lsn <= last) {
      if (is_read) {
        cursor_.WalkPlain<RecordCursor::Payloads::kTrust>(show);
      } else {
        unread_.WalkPlain(show);
      }
    }
    ALPHEUS_RETURN_IF_ERROR(visited);
  }
  return status_;
}

absl::Status RecoveredSource::CheckJoint() const {
  const LogPosition& at = unread_.position();
  if (at == read_from_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      name_, ": the records before LSN ", at.lsn.value, " end at offset ",
      ring_offset_ + ring_.Place(at.offset), " with chain ",
      absl::Hex(at.chain), ", expected offset ",
      ring_offset_ + ring_.Place(read_from_.offset), " and chain ",
      absl::Hex(read_from_.chain),
      ", as was noted when they were written: some of them are not those. "
      "Restore the region from a copy, or take what is left with `alpheus "
      "salvage`"));
}

absl::Status RecoveredSource::Unreadable(const LogPosition& at) const {
  return absl::DataLossError(absl::StrCat(
      name_, ": LSN ", at.lsn.value, " at offset ",
      ring_offset_ + ring_.Place(at.offset),
      " was recovered but can't be read any more; the recovered log ends with "
      "LSN ",
      end_lsn_.value, ". Take what is left with `alpheus salvage`"));
}

}  // namespace alpheus
