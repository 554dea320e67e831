// SPDX-License-Identifier: Apache-2.0
// Does the checker of calm runs see what must not happen in them, and let pass
// what may happen in all others?
#include "tools/sim/checkers/calm_checker.h"

#include <gtest/gtest.h>

#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {
namespace {

class CalmCheckerTest : public CheckerTest {
 protected:
  static RunOptions Broken() {
    RunOptions options;
    options.break_probability = 0.1;
    return options;
  }

  CalmChecker calm_{oracle_, RunOptions{}};
  CalmChecker other_{oracle_, Broken()};
};

TEST_F(CalmCheckerTest, ReplicasThatComeAndStayViolateNothing) {
  calm_.InSync(2, false);
  calm_.InSync(3, false);
  calm_.InSync(3, false);
  calm_.WithoutCredit(0);
  EXPECT_EQ(violated(), "");
}

TEST_F(CalmCheckerTest, AReplicaThatIsDroppedViolatesA33) {
  calm_.InSync(3, false);
  calm_.InSync(2, false);
  EXPECT_EQ(violated(), "P-A3.3");
}

TEST_F(CalmCheckerTest, WhoHasARivalMayLoseAll) {
  calm_.InSync(3, false);
  calm_.InSync(0, true);
  EXPECT_EQ(violated(), "");
}

TEST_F(CalmCheckerTest, AMessageWithoutACreditViolatesInvR1) {
  calm_.WithoutCredit(1);
  EXPECT_EQ(violated(), "P-INV-R1");
}

TEST_F(CalmCheckerTest, WhereConnectionsBreakBothMayHappen) {
  other_.InSync(3, false);
  other_.InSync(0, false);
  other_.WithoutCredit(7);
  EXPECT_EQ(violated(), "");
}

}  // namespace
}  // namespace alpheus::sim
