// SPDX-License-Identifier: Apache-2.0
// Does the checker of owners see each place that belongs to another epoch?
#include "tools/sim/checkers/owner_checker.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/tools/sim/world/checked_world.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

// Epoch 3 owns all from LSN 1 on, epoch 5 from LSN 4.
class OwnerCheckerTest : public CheckedWorldTest {
 protected:
  OwnerCheckerTest() {
    owners().Activated(Epoch(5), At(4, 40));
    owners().Activated(Epoch(3), At(1, 0));
  }

  OwnerChecker& owners() { return checkers().owners; }
  static LogPosition At(uint64_t lsn, uint64_t chain) {
    return {Lsn(lsn), RingOffset(0), chain};
  }
};

TEST_F(OwnerCheckerTest, RecordsOfTheirOwnersViolateNothing) {
  owners().Shown(Epoch(7), Lsn(3), Epoch(3));
  owners().Shown(Epoch(7), Lsn(4), Epoch(5));
  // Epoch 5 does not itself own the records that it opened with.
  owners().Shown(Epoch(5), Lsn(3), Epoch(3));
  // One that is told late, and knows nothing of epoch 5.
  owners().Shown(Epoch(4), Lsn(4), Epoch(3));
  owners().ChainKnown(At(3, 30));
  owners().ChainKnown(At(3, 30));
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(world_.counters().owners_checked, 4u);
}

TEST_F(OwnerCheckerTest, ARecordOfAnEpochThatLostItsPlaceViolatesInv13) {
  owners().Shown(Epoch(7), Lsn(4), Epoch(3));
  EXPECT_EQ(violated(), "P-INV-13");
}

TEST_F(OwnerCheckerTest, ARecordOfAnEpochThatBeganLaterViolatesInv13) {
  owners().Shown(Epoch(7), Lsn(3), Epoch(5));
  EXPECT_EQ(violated(), "P-INV-13");
}

TEST_F(OwnerCheckerTest, ARecordThatNoEpochOwnsViolatesInv13) {
  owners().Shown(Epoch(3), Lsn(1), Epoch(2));
  EXPECT_EQ(violated(), "P-INV-13");
}

TEST_F(OwnerCheckerTest, AnotherChainThanBeforeViolatesInv8) {
  owners().ChainKnown(At(3, 30));
  owners().ChainKnown(At(3, 31));
  EXPECT_EQ(violated(), "P-INV-8");
}

TEST_F(OwnerCheckerTest, OnlyTheLatestEpochAnswersForAll) {
  EXPECT_EQ(owners().EndOf(Epoch(3)), Lsn(4));
  EXPECT_EQ(owners().EndOf(Epoch(5)), std::nullopt);
  owners().ChainKnown(At(3, 30));
  EXPECT_EQ(owners().ChainBefore(Lsn(3)), 30u);
  EXPECT_EQ(owners().ChainBefore(Lsn(2)), std::nullopt);
}

}  // namespace
}  // namespace alpheus::sim
