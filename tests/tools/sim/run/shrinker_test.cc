// SPDX-License-Identifier: Apache-2.0
// Does the shrinker find the shortest schedule, and only ones that fail?
#include "tools/sim/run/shrinker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tools/sim/run/sim_case.h"

namespace alpheus::sim {
namespace {

using Numbers = std::set<uint32_t>;

ShrinkCase Whole(uint32_t faults) {
  ShrinkCase whole{.faults = {},
                   .clients = 4,
                   .payload_bytes_max = 256,
                   .breaks = true,
                   .yields = true};
  for (uint32_t i = 0; i < faults; ++i) whole.faults.insert(i);
  return whole;
}

bool Includes(const Numbers& all, const Numbers& some) {
  return std::ranges::includes(all, some);
}

TEST(ShrinkerTest, WhatAlwaysFailsNeedsNothing) {
  const Shrunk shrunk = Shrink(Whole(50), {.payload_bytes_min = 8},
                               [](const ShrinkCase&) { return true; });
  EXPECT_EQ(shrunk.shortest,
            (ShrinkCase{.faults = {}, .clients = 1, .payload_bytes_max = 8}));
  EXPECT_LT(shrunk.tries, 20);
}

TEST(ShrinkerTest, WhatFailsOnlyAsAWholeStaysWhole) {
  const ShrinkCase whole = Whole(20);
  const Shrunk shrunk = Shrink(
      whole, {}, [&](const ShrinkCase& smaller) { return smaller == whole; });
  EXPECT_EQ(shrunk.shortest, whole);
}

TEST(ShrinkerTest, AnyPairThatFailsTogetherIsFound) {
  constexpr uint32_t kFaults = 13;
  for (uint32_t a = 0; a < kFaults; ++a) {
    for (uint32_t b = a; b < kFaults; ++b) {
      const Numbers needed = {a, b};
      const Shrunk shrunk =
          Shrink(Whole(kFaults), {}, [&](const ShrinkCase& smaller) {
            return Includes(smaller.faults, needed);
          });
      EXPECT_EQ(shrunk.shortest.faults, needed);
    }
  }
}

// Some of several ways to fail, but a shortest of its kind: each part matters.
TEST(ShrinkerTest, InTheEndNoFaultCanBeLeftOut) {
  const auto fails = [](const ShrinkCase& smaller) {
    return Includes(smaller.faults, {1, 2, 30}) ||
           Includes(smaller.faults, {7, 11}) ||
           (smaller.faults.size() > 9 && smaller.clients > 2);
  };
  const Shrunk shrunk = Shrink(Whole(40), {}, fails);
  ASSERT_TRUE(fails(shrunk.shortest));
  for (const uint32_t fault : shrunk.shortest.faults) {
    ShrinkCase smaller = shrunk.shortest;
    smaller.faults.erase(fault);
    EXPECT_FALSE(fails(smaller)) << fault;
  }
}

TEST(ShrinkerTest, SizesGoAsFarAsTheyMay) {
  const Shrunk shrunk = Shrink(Whole(3), {}, [](const ShrinkCase& smaller) {
    return smaller.clients >= 2 && smaller.payload_bytes_max >= 60 &&
           smaller.yields;
  });
  EXPECT_EQ(shrunk.shortest, (ShrinkCase{.faults = {},
                                         .clients = 2,
                                         .payload_bytes_max = 64,
                                         .breaks = false,
                                         .yields = true}));
}

TEST(ShrinkerTest, WhatIsReturnedWasSeenToFail) {
  ShrinkCase last = Whole(30);
  const Shrunk shrunk = Shrink(last, {}, [&](const ShrinkCase& smaller) {
    const bool fails = smaller.faults.size() * 7 % 5 < 3;
    if (fails) last = smaller;
    return fails;
  });
  EXPECT_EQ(shrunk.shortest, last);
}

TEST(ShrinkerTest, NoMoreIsTriedThanAllowed) {
  int tries = 0;
  const Shrunk shrunk =
      Shrink(Whole(100), {.tries_max = 10}, [&](const ShrinkCase& smaller) {
        ++tries;
        return smaller.faults.contains(50);
      });
  EXPECT_EQ(tries, 10);
  EXPECT_EQ(shrunk.tries, 10);
  EXPECT_TRUE(shrunk.shortest.faults.contains(50));
}

TEST(SimCaseTest, NumbersOfFaultsGoBothWays) {
  for (const Numbers& numbers : {Numbers{}, Numbers{0}, Numbers{0, 1, 2},
                                 Numbers{1, 3, 4, 5, 9}, Numbers{7, 8}}) {
    EXPECT_EQ(ParseNumbers(NumbersText(numbers)), numbers);
  }
  EXPECT_EQ(NumbersText({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(ParseNumbers("3,1,2-3"), (Numbers{1, 2, 3}));
}

TEST(SimCaseTest, WhatIsNoListOfNumbersIsRefused) {
  for (const char* text : {"x", "1,", ",1", "-", "1-", "-1", "3-2", "1-2-3",
                           "1 2", " 1", "1-4294967295", "99999999999"}) {
    EXPECT_EQ(ParseNumbers(text), std::nullopt) << text;
  }
}

TEST(SimCaseTest, TheCommandLineSaysAllThatIsFixed) {
  EXPECT_EQ(CommandLine(12, {}), "alpheus-sim --seed 12");
  Fixed fixed;
  fixed.nodes = 3;
  fixed.write_quorum = 2;
  fixed.clients = 1;
  fixed.payload_bytes_max = 8;
  fixed.faults.emplace();
  fixed.left_out = {0, 1, 4};
  fixed.without_breaks = true;
  fixed.without_yields = true;
  fixed.canary = Canary::kLostFences;
  EXPECT_EQ(
      CommandLine(1, fixed),
      "alpheus-sim --seed 1 --nodes 3 --write-quorum 2 --clients 1 --payload 8 "
      "--faults none --without 0-1,4 --no-breaks --no-yields --canary "
      "lost-fences");
  fixed = {};
  fixed.faults = {FaultKind::kKillPrimary, FaultKind::kRival};
  EXPECT_EQ(CommandLine(2, fixed),
            "alpheus-sim --seed 2 --faults kill-primary,rival");
  for (const bool tail : {false, true}) {
    for (const bool unauthenticated : {false, true}) {
      fixed = {};
      fixed.background_actors = {.tail = tail,
                                 .unauthenticated = unauthenticated};
      const char* const names = tail && unauthenticated ? "tail,unauthenticated"
                                : tail                  ? "tail"
                                : unauthenticated       ? "unauthenticated"
                                                        : "none";
      EXPECT_EQ(CommandLine(3, fixed),
                std::string("alpheus-sim --seed 3 --actors ") + names);
    }
  }
}

TEST(SimCaseTest, ACaseIsMadeIntoOptionsAndBack) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    ShrinkCase smaller = CaseOf(DrawOptions(seed, {}));
    EXPECT_EQ(CommandLine(seed, WithCase(seed, {}, smaller)),
              CommandLine(seed, {}));
    smaller.faults.erase(3);
    smaller.faults.erase(17);
    smaller.clients = 1;
    smaller.payload_bytes_max = 8;
    smaller.breaks = false;
    smaller.yields = false;
    EXPECT_EQ(CaseOf(DrawOptions(seed, WithCase(seed, {}, smaller))), smaller);
  }
}

TEST(SimCaseTest, OnlyTheSameViolationIsTheSame) {
  const Violation lost = {"P-C1", "LSN 3"};
  EXPECT_TRUE(IsSameViolation(lost, Violation{"P-C1", "LSN 4"}));
  EXPECT_FALSE(IsSameViolation(lost, Violation{"P-C2", "LSN 3"}));
  EXPECT_FALSE(IsSameViolation(lost, std::nullopt));
  const Violation check = {kCheckFailed, "RL1"};
  EXPECT_TRUE(IsSameViolation(check, check));
  EXPECT_FALSE(IsSameViolation(check, Violation{kCheckFailed, "RL2"}));
}

}  // namespace
}  // namespace alpheus::sim
