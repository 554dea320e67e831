// SPDX-License-Identifier: Apache-2.0
// Method: the histogram beside all values themselves, sorted.
#include "tools/cli/bench/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "log/base/random.h"

namespace alpheus::cli {
namespace {

uint64_t TrueQuantile(const std::vector<uint64_t>& sorted, double q) {
  const auto needed =
      static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(needed, 1) - 1];
}

// LH1, LH2.
void ExpectQuantiles(std::vector<uint64_t> values) {
  LatencyHistogram histogram;
  for (const uint64_t value : values) histogram.Add(value);
  std::sort(values.begin(), values.end());
  for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const uint64_t expected = TrueQuantile(values, q);
    const uint64_t found = histogram.Quantile(q);
    EXPECT_GE(found, expected) << "q " << q;
    EXPECT_LE(found - expected, expected / 32) << "q " << q;
    EXPECT_GE(found, histogram.smallest());
    EXPECT_LE(found, histogram.largest());
  }
}

TEST(LatencyHistogramTest, IsAllZeroWhenEmpty) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.smallest(), 0u);
  EXPECT_EQ(histogram.largest(), 0u);
  EXPECT_EQ(histogram.Mean(), 0);
  EXPECT_EQ(histogram.Quantile(0.5), 0u);
}

// Each power of two and its neighbours are where buckets begin and end.
TEST(LatencyHistogramTest, KeepsEveryBoundaryWithinItsBucket) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const int64_t step : {-1, 0, 1}) {
      ExpectQuantiles({(uint64_t{1} << bit) + static_cast<uint64_t>(step)});
    }
  }
}

TEST(LatencyHistogramTest, SmallValuesAreExact) {
  for (uint64_t value = 0; value < 64; ++value) {
    LatencyHistogram histogram;
    histogram.Add(value);
    histogram.Add(1000);
    EXPECT_EQ(histogram.Quantile(0.5), value);
  }
}

TEST(LatencyHistogramTest, QuantilesOfManyMagnitudesAreClose) {
  Random random(1);
  std::vector<uint64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(random.Next() >> random.Below(64));
  }
  ExpectQuantiles(values);
}

TEST(LatencyHistogramTest, LargestValueOfAllFits) {
  LatencyHistogram histogram;
  histogram.Add(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(histogram.Quantile(1), std::numeric_limits<uint64_t>::max());
}

// Method: the same values in one histogram and over three that are added up.
TEST(LatencyHistogramTest, SumOfPartsIsTheWhole) {
  Random random(2);
  LatencyHistogram whole;
  LatencyHistogram sum;
  for (int part = 0; part < 3; ++part) {
    LatencyHistogram one;
    for (int i = 0; i < 1000; ++i) {
      const uint64_t value = random.Below(1'000'000);
      whole.Add(value);
      one.Add(value);
    }
    sum.Add(one);
  }
  sum.Add(LatencyHistogram());
  EXPECT_EQ(sum.count(), whole.count());
  EXPECT_EQ(sum.smallest(), whole.smallest());
  EXPECT_EQ(sum.largest(), whole.largest());
  EXPECT_DOUBLE_EQ(sum.Mean(), whole.Mean());
  for (const double q : {0.1, 0.5, 0.99}) {
    EXPECT_EQ(sum.Quantile(q), whole.Quantile(q));
  }
}

}  // namespace
}  // namespace alpheus::cli
