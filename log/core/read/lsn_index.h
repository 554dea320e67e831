// SPDX-License-Identifier: Apache-2.0
// lsn_index: finds the place of a live record by its LSN, in little memory.
//
// Idea: the index notes the position (offset and chain) of every 64th LSN, when
// the record before it is recovered or becomes durable. The rest is a short
// walk over headers. One entry per 64 records costs at most 1/256 of the ring's
// capacity.
//
// Thread safety: Note by the one thread that may move the durable LSN
// (forcer.h); Nearest by any thread that saw the preceding LSN durable.
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
        entries_(std::make_unique<Entry[]>(size_)) {}

  // Notes `position`, the place before its LSN, with the right chain.
  void Note(const LogPosition& position) {
    if (position.lsn.value % kStride != 0) [[likely]]
      return;
    Entry& entry = EntryOf(position.lsn);
    entry.offset.store(position.offset.value, std::memory_order_relaxed);
    entry.chain.store(position.chain, std::memory_order_relaxed);
  }

  // Returns the nearest known position at or before `lsn`.
  // Requires: head, the oldest live position, <= lsn <= durable LSN + 1.
  LogPosition Nearest(Lsn lsn, const LogPosition& head) const {
    const Lsn stride(lsn.value - lsn.value % kStride);
    if (stride <= head.lsn) return head;
    const Entry& entry = EntryOf(stride);
    LogPosition position;
    position.lsn = stride;
    position.offset = RingOffset(entry.offset.load(std::memory_order_relaxed));
    position.chain = entry.chain.load(std::memory_order_relaxed);
    return position;
  }

 private:
  static constexpr uint64_t kStride = 64;

  struct Entry {
    std::atomic<uint64_t> offset{0};
    std::atomic<uint64_t> chain{0};
  };

  Entry& EntryOf(Lsn lsn) const {
    return entries_[lsn.value / kStride % size_];
  }

  const uint64_t size_;
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_READ_LSN_INDEX_H_
