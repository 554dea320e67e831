// SPDX-License-Identifier: Apache-2.0
// The checker of elections sees a log that changes hands for nothing.
#include "tools/sim/checkers/election_checker.h"

#include <gtest/gtest.h>

#include <optional>

#include "recovery/protocol/messages.h"
#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {
namespace {

class ElectionCheckerTest : public CheckerTest {
 protected:
  static constexpr int64_t kLater = ElectionChecker::kSettledNanos;

  static RunOptions Broken() {
    RunOptions options;
    options.break_probability = 0.1;
    return options;
  }

  using Word = std::optional<recovery::PrimaryWord>;
  static constexpr auto kGone = recovery::PrimaryWord::kGone;
  static constexpr auto kHeard = recovery::PrimaryWord::kHeard;
  static constexpr auto kSilent = recovery::PrimaryWord::kSilent;
  static constexpr auto kClaimed = recovery::PrimaryWord::kClaimed;
  static ToldWord Own(Word word, bool is_current = true) {
    return {true, word, is_current};
  }
  static ToldWord Other(Word word, bool is_current = true) {
    return {false, word, is_current};
  }

  ElectionChecker calm_{oracle_, RunOptions{}};
  ElectionChecker other_{oracle_, Broken()};
};

TEST_F(ElectionCheckerTest, FirstElectionsViolateNothing) {
  calm_.Opened(0, 1);
  calm_.Opened(1, kLater);
  EXPECT_EQ(violated(), "");
}

TEST_F(ElectionCheckerTest, DeposedPrimaryViolatesEle2) {
  calm_.Opened(0, 1);
  calm_.Opened(1, 1 + kLater);
  EXPECT_EQ(violated(), "ELE2");
}

TEST_F(ElectionCheckerTest, LogThatWasHandedOverChangesHands) {
  calm_.Opened(0, 1);
  calm_.Leaves(0);
  calm_.Opened(1, 1 + kLater);
  EXPECT_EQ(violated(), "");
  calm_.Leaves(0);  // it has not got the log
  calm_.Opened(2, 1 + 2 * kLater);
  EXPECT_EQ(violated(), "ELE2");
}

// Three members, OQ 2: the own node and another one say yes, or may have.
TEST_F(ElectionCheckerTest, OpeningByTheWordsOfAQuorumViolatesNothing) {
  for (const auto& own : {Own(kGone), Own(kSilent), Own(std::nullopt)}) {
    other_.Opens(0, 2, {own, Other(kHeard), Other(kGone)});
    other_.Opens(0, 2, {own, Other(kSilent), Other(kClaimed)});
    // It may have said yes before it was lost.
    other_.Opens(0, 2, {own, Other(kHeard), Other(std::nullopt)});
  }
  EXPECT_EQ(violated(), "");
}

TEST_F(ElectionCheckerTest, OpeningThatOthersDenyViolatesEle2) {
  other_.Opens(0, 2, {Own(kGone), Other(kHeard), Other(kClaimed)});
  EXPECT_EQ(violated(), "ELE2");
}

TEST_F(ElectionCheckerTest, OpeningThatTheOwnNodeDeniesViolatesEle2) {
  other_.Opens(0, 2, {Own(kHeard), Other(kGone), Other(kGone)});
  EXPECT_EQ(violated(), "ELE2");
}

TEST_F(ElectionCheckerTest, WordOfBeforeAPromiseProvesNothing) {
  other_.Opens(0, 2, {Own(kHeard, false), Other(kHeard, false), Other(kHeard)});
  EXPECT_EQ(violated(), "");
}

TEST_F(ElectionCheckerTest, WhereThingsFailTheLogChangesHands) {
  other_.Opened(0, 1);
  other_.Opened(1, 1 + kLater);
  EXPECT_EQ(violated(), "");
}

}  // namespace
}  // namespace alpheus::sim
