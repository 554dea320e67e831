// SPDX-License-Identifier: Apache-2.0
// latency_histogram: counts times so that quantiles of millions of them can be
// told, in a few kilobytes.
//
// Idea: values below 64 have a bucket each; above, every power of two is split
// into 32 buckets of equal width, so that a bucket is never wider than 1/32 of
// what it holds. Smallest and largest value are kept exactly.
//
// Invariants:
//   LH1. Quantile(q) is at least the true quantile and exceeds it by less than
//        1/32 of it.
//   LH2. smallest() <= Quantile(q) <= largest().
// Thread safety: one thread; threads keep one each and Add them up.
#ifndef ALPHEUS_TOOLS_CLI_BENCH_LATENCY_HISTOGRAM_H_
#define ALPHEUS_TOOLS_CLI_BENCH_LATENCY_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace alpheus::cli {

class LatencyHistogram {
 public:
  void Add(uint64_t value);
  void Add(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  // 0 if nothing was added.
  uint64_t smallest() const { return count_ == 0 ? 0 : smallest_; }
  uint64_t largest() const { return largest_; }
  double Mean() const;

  // The smallest value such that a share of at least `q` of all is not above
  // it, rounded up as LH1 says; 0 if nothing was added. Requires: 0 <= q <= 1.
  uint64_t Quantile(double q) const;

 private:
  static constexpr int kSplitBits = 5;  // a power of two has 2^5 buckets
  static constexpr uint64_t kSplit = uint64_t{1} << kSplitBits;
  static constexpr size_t kBuckets = (65 - kSplitBits) * kSplit;

  static size_t BucketOf(uint64_t value);
  static uint64_t LastOf(size_t bucket);

  std::array<uint64_t, kBuckets> counts_ = {};
  uint64_t count_ = 0;
  uint64_t smallest_ = std::numeric_limits<uint64_t>::max();
  uint64_t largest_ = 0;
  double sum_ = 0;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_BENCH_LATENCY_HISTOGRAM_H_
