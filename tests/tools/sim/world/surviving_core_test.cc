// SPDX-License-Identifier: Apache-2.0
// Is a core enough to open a log with, random, and no larger than it says?
#include "tools/sim/world/surviving_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace alpheus::sim {
namespace {

std::set<int> Bits(unsigned bits) {
  std::set<int> numbers;
  for (int i = 0; bits >> i != 0; ++i) {
    if ((bits >> i & 1) != 0) numbers.insert(i);
  }
  return numbers;
}

size_t CountKnowing(const std::set<int>& core, const std::set<int>& knowing) {
  return static_cast<size_t>(std::ranges::count_if(
      core, [&](int member) { return knowing.contains(member); }));
}

// All N up to 5, all W, and whoever knows (P-C8, P-H12).
TEST(SurvivingCoreTest, HasAQuorumOfWhichEnoughKnow) {
  Random random(1);
  for (uint32_t n = 1; n <= 5; ++n) {
    for (uint32_t w = 1; w <= n; ++w) {
      const quorum::QuorumSizes sizes = *quorum::MakeQuorumSizes(n, w);
      for (unsigned bits = 0; bits < 1u << n; ++bits) {
        const std::set<int> knowing = Bits(bits);
        const std::set<int> core =
            DrawSurvivingCore(sizes, Bits((1u << n) - 1), knowing, random);
        ASSERT_LT(*core.rbegin(), static_cast<int>(n));
        ASSERT_GE(core.size(), std::max(sizes.read_quorum, w));
        if (knowing.size() >= sizes.read_quorum) {
          ASSERT_GE(CountKnowing(core, knowing), sizes.read_quorum);
        } else {
          ASSERT_EQ(core.size(), n);
        }
      }
    }
  }
}

TEST(SurvivingCoreTest, WhoIsGoneIsInNoneUnlessAllAre) {
  Random random(1);
  const quorum::QuorumSizes sizes = *quorum::MakeQuorumSizes(4, 2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(
        DrawSurvivingCore(sizes, {0, 1, 3}, {0, 1, 3}, random).contains(2));
    EXPECT_EQ(DrawSurvivingCore(sizes, {0, 3}, {0, 3}, random).size(), 4u);
  }
}

TEST(SurvivingCoreTest, EverySetOfEnoughIsDrawn) {
  Random random(1);
  const quorum::QuorumSizes sizes = *quorum::MakeQuorumSizes(5, 3);
  const std::set<int> all = {0, 1, 2, 3, 4};
  std::set<std::set<int>> drawn;
  for (int i = 0; i < 2000; ++i) {
    drawn.insert(DrawSurvivingCore(sizes, all, all, random));
  }
  EXPECT_EQ(drawn.size(), 10u + 5u + 1u);
}

}  // namespace
}  // namespace alpheus::sim
