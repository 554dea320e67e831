// SPDX-License-Identifier: Apache-2.0
#include "log/base/duration_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace alpheus {
namespace {

constexpr auto& kBounds = DurationHistogram::kBoundsNs;

// A bound belongs to its own bucket, and what is above it to the next one.
TEST(DurationHistogramTest, BoundsAreInclusive) {
  for (size_t i = 0; i < kBounds.size(); ++i) {
    DurationHistogram histogram;
    histogram.Count(kBounds[i]);
    histogram.Count(kBounds[i] + 1);
    const DurationHistogram::Reading reading = histogram.Read();
    EXPECT_EQ(reading.counts[i], 1U) << kBounds[i];
    EXPECT_EQ(reading.counts[i + 1], 1U) << kBounds[i];
    EXPECT_EQ(reading.sum_ns, static_cast<uint64_t>(2 * kBounds[i] + 1));
  }
}

TEST(DurationHistogramTest, NothingIsTooShortOrTooLong) {
  DurationHistogram histogram;
  histogram.Count(0);
  histogram.Count(-5);  // a clock of two cores
  histogram.Count(int64_t{3'600} * 1'000'000'000);
  const DurationHistogram::Reading reading = histogram.Read();
  EXPECT_EQ(reading.counts.front(), 2U);
  EXPECT_EQ(reading.counts.back(), 1U);
  EXPECT_EQ(std::accumulate(reading.counts.begin(), reading.counts.end(),
                            uint64_t{0}),
            3U);
  EXPECT_EQ(reading.sum_ns, uint64_t{3'600} * 1'000'000'000);
}

TEST(DurationHistogramTest, BoundsRise) {
  EXPECT_TRUE(std::ranges::is_sorted(kBounds));
  EXPECT_EQ(std::ranges::adjacent_find(kBounds), kBounds.end());
}

}  // namespace
}  // namespace alpheus
