// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/key_sequence.h"

#include <bit>
#include <cstddef>

namespace alpheus::fabric {
namespace {

// One round, and one step of the schedule of round keys.
void Round(uint32_t* x, uint32_t* y, uint32_t key) {
  *x = (std::rotr(*x, 8) + *y) ^ key;
  *y = std::rotl(*y, 3) ^ *x;
}

std::array<uint32_t, 4> Draw(RandomSource& random) {
  const uint64_t low = random.Next();
  const uint64_t high = random.Next();
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
          static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
}

}  // namespace

Speck64::Speck64(std::array<uint32_t, 4> secret) {
  uint32_t key = secret[0];
  for (uint32_t i = 0; i < rounds_.size(); ++i) {
    rounds_[i] = key;
    Round(&secret[1 + i % 3], &key, i);
  }
}

uint64_t Speck64::Encrypt(uint64_t block) const {
  auto x = static_cast<uint32_t>(block >> 32);
  auto y = static_cast<uint32_t>(block);
  for (const uint32_t key : rounds_) Round(&x, &y, key);
  return uint64_t{x} << 32 | y;
}

KeySequence::KeySequence(RandomSource& random) : cipher_(Draw(random)) {}

RegionKey KeySequence::Next() {
  // The mask maps count 0 to key 0, so that no other count does.
  const uint64_t mask = cipher_.Encrypt(0);
  ++count_;
  return RegionKey(cipher_.Encrypt(count_) ^ mask);
}

}  // namespace alpheus::fabric
