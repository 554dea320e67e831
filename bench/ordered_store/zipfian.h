// SPDX-License-Identifier: Apache-2.0
// zipfian: draws keys like YCSB: few are used often, and these lie anywhere
// among the others; or uniformly.
//
// Thread safety: each generator by one thread.
// References: Gray and others, "Quickly generating billion-record synthetic
// databases" (SIGMOD 1994); Cooper and others, "Benchmarking cloud serving
// systems with YCSB" (SoCC 2010).
#ifndef ALPHEUS_BENCH_ORDERED_STORE_ZIPFIAN_H_
#define ALPHEUS_BENCH_ORDERED_STORE_ZIPFIAN_H_

#include <cstdint>
#include <vector>

#include "log/base/random.h"

namespace alpheus::bench::ordered_store {

// Skew of YCSB.
inline constexpr double kYcsbSkew = 0.99;

class Zipfian {
 public:
  // Draws ranks 0 to count - 1, the first the most frequent one. Construction
  // sums `count` numbers. Requires: count >= 2, 0 < skew < 1.
  Zipfian(uint64_t count, double skew);

  uint64_t NextRank(Random& random) const;

 private:
  const uint64_t count_;
  const double skew_;
  const double zeta_;
  const double alpha_;
  const double eta_;
};

// Returns `length` keys below `count`. skew 0: uniform.
std::vector<uint64_t> DrawKeys(uint64_t seed, uint64_t count, double skew,
                               uint64_t length);

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_ZIPFIAN_H_
