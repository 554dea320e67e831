// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/zipfian.h"

#include <algorithm>
#include <cmath>

#include "log/base/mix.h"

namespace alpheus::bench::ordered_store {
namespace {

double Zeta(uint64_t count, double skew) {
  double sum = 0;
  for (uint64_t i = 1; i <= count; ++i) {
    sum += std::pow(1.0 / static_cast<double>(i), skew);
  }
  return sum;
}

// 0 to 1, without 1.
double NextUnit(Random& random) {
  return static_cast<double>(random.Next() >> 11) * 0x1p-53;
}

}  // namespace

Zipfian::Zipfian(uint64_t count, double skew)
    : count_(count),
      skew_(skew),
      zeta_(Zeta(count, skew)),
      alpha_(1 / (1 - skew)),
      eta_((1 - std::pow(2.0 / static_cast<double>(count), 1 - skew)) /
           (1 - Zeta(2, skew) / zeta_)) {}

uint64_t Zipfian::NextRank(Random& random) const {
  const double unit = NextUnit(random);
  const double scaled = unit * zeta_;
  if (scaled < 1) return 0;
  if (scaled < 1 + std::pow(0.5, skew_)) return 1;
  const double rank =
      static_cast<double>(count_) * std::pow(eta_ * unit - eta_ + 1, alpha_);
  return std::min(static_cast<uint64_t>(rank), count_ - 1);
}

std::vector<uint64_t> DrawKeys(uint64_t seed, uint64_t count, double skew,
                               uint64_t length) {
  Random random(seed);
  std::vector<uint64_t> keys(length);
  if (skew == 0) {
    for (uint64_t& key : keys) key = random.Below(count);
    return keys;
  }
  const Zipfian zipfian(count, skew);
  // Scrambled: the frequent ones are not neighbours.
  for (uint64_t& key : keys) key = Mix(zipfian.NextRank(random)) % count;
  return keys;
}

}  // namespace alpheus::bench::ordered_store
