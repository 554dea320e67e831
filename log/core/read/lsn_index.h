// SPDX-License-Identifier: Apache-2.0
// lsn_index: finds the place of a live record by its LSN, in little memory.
//
// Idea: the index notes the position (offset and chain) of every 64th LSN, when
// the record before it is recovered or becomes durable. The rest is a short
// walk over headers. One entry per 64 records costs at most 1/256 of the ring's
// capacity.
//
// An opening that does not read the log from its head on leaves a gap: from the
// head to where it began, positions are not known. Whoever walks there notes
// what it finds, so that a part of the gap is walked through once.
//
// Invariants:
//   LIX1. Between the head and the last position that NoteWalked was given, and
//         from the end of the gap on, every stride is noted. No other entry is
//         read, so that entries need no first value.
// Thread safety: Note by the one thread that may move the durable LSN
// (forcer.h); Nearest by any thread that saw the preceding LSN durable.
// BeginAt before any of these. NoteWalked, and Nearest where there is a gap,
// under one lock (reclaimer.h).
#ifndef ALPHEUS_LOG_CORE_READ_LSN_INDEX_H_
#define ALPHEUS_LOG_CORE_READ_LSN_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"

namespace alpheus {

class LsnIndex {
 public:
  explicit LsnIndex(uint64_t ring_capacity)
      // Every record takes a line at least, so this many strides can be live,
      // and one more at each end.
      : size_(ring_capacity / kLineBytes / kStride + 2),
        // Not cleared: that would touch a page for each MiB of the ring.
        entries_(std::make_unique_for_overwrite<Entry[]>(size_)) {}

  // Leaves a gap before `position`.
  void BeginAt(const LogPosition& position) { gap_end_ = position; }

  // Notes `position`, the place before its LSN, with the right chain.
  void Note(const LogPosition& position) {
    if (position.lsn.value % kStride != 0) [[likely]]
      return;
    Entry& entry = EntryOf(position.lsn);
    std::atomic_ref(entry.offset)
        .store(position.offset.value, std::memory_order_relaxed);
    std::atomic_ref(entry.chain)
        .store(position.chain, std::memory_order_relaxed);
  }

  // Notes a position that a walk has reached which began at the head, or where
  // Nearest said.
  void NoteWalked(const LogPosition& position) {
    if (position.lsn >= gap_end_.lsn || position.lsn <= walked_.lsn) return;
    Note(position);
    walked_ = position;
  }

  // Returns the nearest known position at or before `lsn`.
  // Requires: head, the oldest live position, <= lsn <= durable LSN + 1.
  LogPosition Nearest(Lsn lsn, const LogPosition& head) const {
    const Lsn stride(lsn.value - lsn.value % kStride);
    const bool is_in_gap = lsn < gap_end_.lsn;
    if (is_in_gap && lsn > walked_.lsn) return Later(head, walked_);
    const LogPosition first = is_in_gap ? head : Later(head, gap_end_);
    if (stride <= first.lsn) return first;
    Entry& entry = EntryOf(stride);
    LogPosition position;
    position.lsn = stride;
    position.offset = RingOffset(
        std::atomic_ref(entry.offset).load(std::memory_order_relaxed));
    position.chain =
        std::atomic_ref(entry.chain).load(std::memory_order_relaxed);
    return position;
  }

 private:
  static constexpr uint64_t kStride = 64;

  // Accessed through std::atomic_ref.
  struct Entry {
    uint64_t offset;
    uint64_t chain;
  };

  static const LogPosition& Later(const LogPosition& a, const LogPosition& b) {
    return a.lsn < b.lsn ? b : a;
  }

  Entry& EntryOf(Lsn lsn) const {
    return entries_[lsn.value / kStride % size_];
  }

  const uint64_t size_;
  std::unique_ptr<Entry[]> entries_;
  LogPosition gap_end_{Lsn(0), RingOffset(0), 0};
  LogPosition walked_{Lsn(0), RingOffset(0), 0};
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_READ_LSN_INDEX_H_
