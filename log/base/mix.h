// SPDX-License-Identifier: Apache-2.0
// mix: the 64-bit mixing function behind seeds, cleaned words and chains.
//
// Part of the format on media (docs/formats/log.md#seeds): never change it.
#ifndef ALPHEUS_LOG_BASE_MIX_H_
#define ALPHEUS_LOG_BASE_MIX_H_

#include <cstdint>

namespace alpheus {

// The SplitMix64 finaliser: a bijection in which every input bit reaches every
// output bit.
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Folds b into a; not commutative.
constexpr uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ b); }

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_MIX_H_
