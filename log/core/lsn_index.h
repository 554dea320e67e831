// SPDX-License-Identifier: Apache-2.0
// lsn_index: where a live record lies, by LSN, in little memory.
//
// Idea: the offset of every 64th LSN; the rest is a short walk over headers.
// One entry per 64 records costs at most 1/512 of the ring's capacity.
//
// Thread safety: Note by the thread that reserved the LSN; Nearest by any that
// saw that record durable (the entry was stored before the record finished).
#ifndef ALPHEUS_LOG_CORE_LSN_INDEX_H_
#define ALPHEUS_LOG_CORE_LSN_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/core/record_cursor.h"

namespace alpheus {

class LsnIndex {
 public:
  explicit LsnIndex(uint64_t ring_capacity)
      // Every record takes a line at least, so this many strides can be live,
      // and one more at each end.
      : size_(ring_capacity / kLineBytes / kStride + 2),
        offsets_(std::make_unique<std::atomic<uint64_t>[]>(size_)) {}

  // `offset` is of the record's header.
  void Note(Lsn lsn, RingOffset offset) {
    if (lsn.value % kStride != 0) return;
    Entry(lsn).store(offset.value, std::memory_order_relaxed);
  }

  // A position at or before `lsn` to walk from; its chain is not set.
  // Requires: lsn is live, head is the oldest live position.
  LogPosition Nearest(Lsn lsn, const LogPosition& head) const {
    const Lsn stride(lsn.value - lsn.value % kStride);
    LogPosition position = head;
    position.chain = 0;
    if (stride > head.lsn) {
      position.lsn = stride;
      position.offset =
          RingOffset(Entry(stride).load(std::memory_order_relaxed));
    }
    return position;
  }

 private:
  static constexpr uint64_t kStride = 64;

  std::atomic<uint64_t>& Entry(Lsn lsn) const {
    return offsets_[lsn.value / kStride % size_];
  }

  const uint64_t size_;
  std::unique_ptr<std::atomic<uint64_t>[]> offsets_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_LSN_INDEX_H_
