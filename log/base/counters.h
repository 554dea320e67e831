// SPDX-License-Identifier: Apache-2.0
// counters: numbers that only grow, counted by many threads and read rarely.
//
// Idea: a thread counts in one of a few shards, each on cache lines of its own,
// so that threads do not take lines from each other. A reader sums the shards.
// Counting is one addition to a line that the core most likely has; it takes no
// lock and waits for nobody.
//
// Invariants:
//   CNT1. A later reading by the same thread is never smaller.
//   CNT2. A reading has everything that was added before it began, as far as
//         the reader is ordered after it.
// Thread safety: all members by many threads.
#ifndef ALPHEUS_LOG_BASE_COUNTERS_H_
#define ALPHEUS_LOG_BASE_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "log/base/thread_token.h"

namespace alpheus {

// `kCount` numbers, which a thread mostly adds to together.
template <size_t kCount>
class Counters {
 public:
  Counters() = default;
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  // Requires, here and below: index < kCount.
  void Add(size_t index, uint64_t number = 1) {
    Shard& shard = shards_[ThreadToken() % kShards];
    // Relaxed: a number orders nothing.
    shard.numbers[index].fetch_add(number, std::memory_order_relaxed);
  }
  // Returns the sum over all threads.
  uint64_t Sum(size_t index) const {
    uint64_t sum = 0;
    for (const Shard& shard : shards_) {
      sum += shard.numbers[index].load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  // As many as threads count at a time on a machine of some size: gRPC has
  // about one for each core.
  static constexpr size_t kShards = 8;
  static constexpr size_t kCacheLineBytes = 64;

  struct alignas(kCacheLineBytes) Shard {
    std::array<std::atomic<uint64_t>, kCount> numbers{};
  };

  std::array<Shard, kShards> shards_{};
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_COUNTERS_H_
