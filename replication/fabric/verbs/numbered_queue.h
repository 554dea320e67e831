// SPDX-License-Identifier: Apache-2.0
// numbered_queue: what is posted and not completed, by its number.
//
// Idea: entries are numbered as they come, for ever, and leave in that order;
// there is a limit to how many there are at once, so that a ring of that size
// has room for all, and a number is a place. Each record is one entry in and
// one out: that is why it is no std::deque, which multiplies for its size.
//
// Thread safety: none.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_NUMBERED_QUEUE_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_NUMBERED_QUEUE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "log/base/check.h"

namespace alpheus::verbs {

template <class Entry>
class NumberedQueue {
 public:
  // Of up to `capacity` entries at once, 1 or more.
  explicit NumberedQueue(uint32_t capacity)
      : ring_(std::bit_ceil(size_t{capacity})), mask_(ring_.size() - 1) {}

  // The number of the oldest one that is there, and of the next one to come.
  uint64_t first() const { return first_; }
  uint64_t next() const { return next_; }
  size_t size() const { return static_cast<size_t>(next_ - first_); }
  bool empty() const { return first_ == next_; }

  void Push(const Entry& entry) {
    ALPHEUS_CHECK(size() <= mask_, "more is posted than there may be");
    ring_[next_++ & mask_] = entry;
  }
  // Requires: not empty.
  Entry Pop() { return ring_[first_++ & mask_]; }

 private:
  std::vector<Entry> ring_;
  uint64_t mask_;
  uint64_t first_ = 0;
  uint64_t next_ = 0;
};

}  // namespace alpheus::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_NUMBERED_QUEUE_H_
