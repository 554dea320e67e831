// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/key_sequence.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>

namespace alpheus::fabric {
namespace {

// The test vector of the paper, appendix C.
TEST(Speck64Test, BlockOfThePaperIsEncryptedAsThere) {
  const Speck64 cipher({0x03020100, 0x0b0a0908, 0x13121110, 0x1b1a1918});
  EXPECT_EQ(cipher.Encrypt(0x3b7265747475432d), 0x8c6fa548454e028bU);
}

TEST(KeySequenceTest, KeysDifferFromEachOtherAndFromZero) {
  Random random(1);
  KeySequence keys(random);
  std::set<RegionKey> given = {RegionKey()};
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(given.insert(keys.Next()).second);
  }
}

// About half of the bits change from one key to the next, and under another
// secret all keys are different. Else a peer with some keys could foresee the
// next.
TEST(KeySequenceTest, KeysTellNothingOfOthers) {
  Random random(1);
  KeySequence keys(random);
  KeySequence others(random);
  constexpr int kKeys = 1000;
  int changed = 0;
  int apart = 0;
  RegionKey last = keys.Next();
  for (int i = 0; i < kKeys; ++i) {
    const RegionKey key = keys.Next();
    changed += std::popcount(key.value ^ last.value);
    apart += std::popcount(key.value ^ others.Next().value);
    last = key;
  }
  EXPECT_NEAR(changed, 32 * kKeys, kKeys);
  EXPECT_NEAR(apart, 32 * kKeys, kKeys);
}

}  // namespace
}  // namespace alpheus::fabric
