// SPDX-License-Identifier: Apache-2.0
// key_sequence: keys that are never issued twice and that nobody can
// predict, without a list of old keys.
//
// Idea: the keys are counted, and the count is encrypted under a secret. A
// block cipher is a permutation: no two counts give one key. A process that
// knows some keys but not the secret knows nothing of the others.
//
// Thread safety: none.
// References: Beaulieu et al., The Simon and Speck Families of Lightweight
// Block Ciphers, 2013 (Speck64/128: 64-bit blocks, 27 rounds).
#ifndef ALPHEUS_REPLICATION_FABRIC_KEY_SEQUENCE_H_
#define ALPHEUS_REPLICATION_FABRIC_KEY_SEQUENCE_H_

#include <array>
#include <cstdint>

#include "log/base/random.h"
#include "replication/fabric/fabric.h"

namespace alpheus::fabric {

// A permutation of 64-bit numbers for each secret. The secret's words are in
// the order in which the schedule takes them.
class Speck64 {
 public:
  explicit Speck64(std::array<uint32_t, 4> secret);
  uint64_t Encrypt(uint64_t block) const;

 private:
  std::array<uint32_t, 27> rounds_;  // keys, one for each round
};

class KeySequence {
 public:
  // Draws the secret, once.
  explicit KeySequence(RandomSource& random);

  // Returns a key that is not 0 and was never returned before, 2^64 - 1 times.
  RegionKey Next();

 private:
  Speck64 cipher_;
  uint64_t count_ = 0;
};

}  // namespace alpheus::fabric

#endif  // ALPHEUS_REPLICATION_FABRIC_KEY_SEQUENCE_H_
