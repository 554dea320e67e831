// SPDX-License-Identifier: Apache-2.0
// numbered_queue: a queue of entries in flight, each with a number.
//
// Idea: entries get ever-growing numbers and leave in that order. So a number
// is a place in a ring, which doubles when it is full. Each record goes through
// several such queues. A std::deque would multiply for its size, and allocate
// every few entries.
//
// Thread safety: none.
#ifndef ALPHEUS_LOG_BASE_NUMBERED_QUEUE_H_
#define ALPHEUS_LOG_BASE_NUMBERED_QUEUE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace alpheus {

template <class Entry>
class NumberedQueue {
 public:
  // Has room for `room` entries, 1 or more, before it allocates again.
  explicit NumberedQueue(size_t room)
      : ring_(std::bit_ceil(room)), mask_(ring_.size() - 1) {}

  // Return the numbers of the oldest entry and of the next one to come.
  uint64_t first() const { return first_; }
  uint64_t next() const { return next_; }
  size_t size() const { return static_cast<size_t>(next_ - first_); }
  bool empty() const { return first_ == next_; }
  // Returns the number of entries that fit before it grows.
  size_t room() const { return ring_.size(); }

  // Returns the entry. Requires: it is in the queue.
  const Entry& At(uint64_t number) const { return ring_[number & mask_]; }
  // Requires: not empty.
  const Entry& back() const { return At(next_ - 1); }

  void Push(const Entry& entry) {
    if (size() > mask_) [[unlikely]]
      Grow();
    ring_[next_++ & mask_] = entry;
  }
  // Removes the oldest entry. The result is valid until the next Push.
  // Requires: not empty.
  const Entry& Pop() { return ring_[first_++ & mask_]; }

 private:
  void Grow() {
    std::vector<Entry> larger(2 * ring_.size());
    const uint64_t mask = larger.size() - 1;
    for (uint64_t number = first_; number != next_; ++number) {
      larger[number & mask] = std::move(ring_[number & mask_]);
    }
    ring_ = std::move(larger);
    mask_ = mask;
  }

  std::vector<Entry> ring_;
  uint64_t mask_;
  uint64_t first_ = 0;
  uint64_t next_ = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_NUMBERED_QUEUE_H_
