// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bench/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace alpheus::cli {

void LatencyHistogram::Add(uint64_t value) {
  ++counts_[BucketOf(value)];
  ++count_;
  smallest_ = std::min(smallest_, value);
  largest_ = std::max(largest_, value);
  sum_ += static_cast<double>(value);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  smallest_ = std::min(smallest_, other.smallest_);
  largest_ = std::max(largest_, other.largest_);
  sum_ += other.sum_;
}

double LatencyHistogram::Mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

uint64_t LatencyHistogram::Quantile(double q) const {
  if (count_ == 0) return 0;
  const auto needed = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(q * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= needed) return std::clamp(LastOf(i), smallest_, largest_);
  }
  return largest_;
}

// Values below 2 * kSplit are their own bucket; above, the highest set bit
// chooses the group and the kSplitBits bits behind it the bucket in it.
size_t LatencyHistogram::BucketOf(uint64_t value) {
  if (value < 2 * kSplit) return value;
  const int shift = std::bit_width(value) - 1 - kSplitBits;
  return static_cast<size_t>(shift) * kSplit + (value >> shift);
}

uint64_t LatencyHistogram::LastOf(size_t bucket) {
  if (bucket < 2 * kSplit) return bucket;
  const size_t shift = bucket / kSplit - 1;
  const uint64_t first = (bucket - shift * kSplit) << shift;
  return first + ((uint64_t{1} << shift) - 1);
}

}  // namespace alpheus::cli
