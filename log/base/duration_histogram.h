// SPDX-License-Identifier: Apache-2.0
// duration_histogram: how long something took, counted in fixed buckets.
//
// Idea: the bounds are those of a log's times, from one write into memory to a
// fail-over. They are the same everywhere, so histograms of several logs and
// nodes can be summed. Counting is a search among constants and two additions
// (counters.h), without a lock.
//
// Thread safety: all members by many threads. A reading while others count may
// have a duration in one of bucket and sum, and not yet in the other one.
#ifndef ALPHEUS_LOG_BASE_DURATION_HISTOGRAM_H_
#define ALPHEUS_LOG_BASE_DURATION_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "log/base/counters.h"

namespace alpheus {

class DurationHistogram {
 public:
  // Upper bounds of the buckets, in nanoseconds, inclusive: 5 us to 10 s. One
  // more bucket has what is longer.
  static constexpr std::array<int64_t, 20> kBoundsNs = {
      5'000,       10'000,        25'000,        50'000,        100'000,
      250'000,     500'000,       1'000'000,     2'500'000,     5'000'000,
      10'000'000,  25'000'000,    50'000'000,    100'000'000,   250'000'000,
      500'000'000, 1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000};
  static constexpr size_t kBuckets = kBoundsNs.size() + 1;

  struct Reading {
    std::array<uint64_t, kBuckets> counts{};  // of each bucket alone
    uint64_t sum_ns = 0;
  };

  // Counts a duration in nanoseconds. A negative one counts as 0.
  void Count(int64_t duration_ns) {
    const int64_t duration = std::max<int64_t>(duration_ns, 0);
    const auto* const bound = std::ranges::lower_bound(kBoundsNs, duration);
    numbers_.Add(static_cast<size_t>(bound - kBoundsNs.begin()));
    numbers_.Add(kBuckets, static_cast<uint64_t>(duration));
  }

  Reading Read() const {
    Reading reading;
    for (size_t i = 0; i < kBuckets; ++i) reading.counts[i] = numbers_.Sum(i);
    reading.sum_ns = numbers_.Sum(kBuckets);
    return reading;
  }

 private:
  Counters<kBuckets + 1> numbers_;  // the buckets, and behind them the sum
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_DURATION_HISTOGRAM_H_
