// SPDX-License-Identifier: Apache-2.0
// zipfian: keys as YCSB draws them: few are asked for often, and these lie
// anywhere among the others; or all alike.
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

// YCSB's.
inline constexpr double kYcsbSkew = 0.99;

class Zipfian {
 public:
  // Ranks 0 to count - 1, the first the most frequent one. Takes as long as it
  // takes to sum so many numbers. Requires: count >= 2, 0 < skew < 1.
  Zipfian(uint64_t count, double skew);

  uint64_t NextRank(Random& random) const;

 private:
  const uint64_t count_;
  const double skew_;
  const double zeta_;
  const double alpha_;
  const double eta_;
};

// `length` keys below `count`. skew 0: uniform.
std::vector<uint64_t> DrawKeys(uint64_t seed, uint64_t count, double skew,
                               uint64_t length);

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_ZIPFIAN_H_
