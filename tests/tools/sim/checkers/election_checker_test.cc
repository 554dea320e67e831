// SPDX-License-Identifier: Apache-2.0
// The checker of elections sees a log that changes hands for nothing.
#include "tools/sim/checkers/election_checker.h"

#include <gtest/gtest.h>

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

TEST_F(ElectionCheckerTest, WhereThingsFailTheLogChangesHands) {
  other_.Opened(0, 1);
  other_.Opened(1, 1 + kLater);
  EXPECT_EQ(violated(), "");
}

}  // namespace
}  // namespace alpheus::sim
