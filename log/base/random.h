// SPDX-License-Identifier: Apache-2.0
// random: the only door to randomness.
//
// `Random` is a seeded generator, for everything that must be repeatable.
// `EntropyRandom` draws from the kernel, for values that an outsider must not
// guess (nonces, identities). Both are injected by interface.
//
// Thread safety: Random: one thread. EntropyRandom: any.
#ifndef ALPHEUS_LOG_BASE_RANDOM_H_
#define ALPHEUS_LOG_BASE_RANDOM_H_

#include <cstdint>

namespace alpheus {

class RandomSource {
 public:
  virtual ~RandomSource() = default;
  // 64 uniformly distributed bits.
  virtual uint64_t Next() = 0;
  // Uniform in [0, bound). Requires: bound > 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
};

// SplitMix64 (Steele, Lea, Flood 2014): the same seed gives the same sequence
// on every machine.
class Random final : public RandomSource {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() override;

 private:
  uint64_t state_;
};

// getrandom(2). Aborts the process if the kernel refuses: identities and nonces
// must not be guessable.
class EntropyRandom final : public RandomSource {
 public:
  uint64_t Next() override;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_RANDOM_H_
