// SPDX-License-Identifier: Apache-2.0
// samples: figures of merit of a few numbers.
#ifndef ALPHEUS_BENCH_HARNESS_SAMPLES_H_
#define ALPHEUS_BENCH_HARNESS_SAMPLES_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace alpheus::bench {

// Requires: not empty.
inline double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Mean of the middle half: as steady as the median, finer than the clock whose
// ticks the values are. Requires: not empty.
inline double MiddleMean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto quarter = static_cast<std::ptrdiff_t>(values.size() / 4);
  const auto begin = values.begin() + quarter;
  const auto end = values.end() - quarter;
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_SAMPLES_H_
