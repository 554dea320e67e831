// SPDX-License-Identifier: Apache-2.0
// Does the checker of logs at rest see replicas that are not equal?
#include "tools/sim/checkers/end_checker.h"

#include <gtest/gtest.h>

#include "tests/tools/sim/world/idle_log.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

class EndCheckerTest : public IdleLogTest {
 protected:
  int CompareMedia(uint32_t in_sync = 3) {
    return checker_.CompareMedia(primary().epoch(), primary().next_lsn(),
                                 in_sync);
  }

  EndChecker checker_{world_};
};

TEST_F(EndCheckerTest, EqualReplicasViolateNothing) {
  ASSERT_EQ(primary().in_sync(), 3u);
  EXPECT_EQ(CompareMedia(), 3);
  checker_.CheckWhenIdle(primary().epoch());
  EXPECT_EQ(violated(), "");
  EXPECT_GT(world_.counters().records_compared, 0u);
  EXPECT_EQ(world_.counters().idle_checks, 3u);
}

TEST_F(EndCheckerTest, OneReplicaShortViolatesInv15) {
  const RecordView last = LastRecord();
  MediumOf(1).Damage(PayloadOf(last), last.payload.size());
  EXPECT_EQ(CompareMedia(/*in_sync=*/2), 2);
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(CompareMedia(), 2);
  EXPECT_EQ(violated(), "P-INV-15");
}

TEST_F(EndCheckerTest, AReplicaOfAnotherEpochIsNotWhole) {
  MediumOf(2).Promise({primary().epoch() + 1, {NodeId(1), 1}});
  MediumOf(2).Install({primary().epoch() + 1, 1, primary().next_lsn(),
                       RingOffset(0), /*start_chain=*/0});
  EXPECT_EQ(CompareMedia(), 2);
  EXPECT_EQ(violated(), "P-INV-15");
}

// Its epoch, place and checksums are right.
TEST_F(EndCheckerTest, OtherBytesOfOneRecordAreSeen) {
  const RecordView last = LastRecord();
  const EpochTable table = MediumOf(2).State().table;
  MediumOf(2).WriteRecord(*table.Owner(last.lsn()), {last.lsn(), last.offset},
                          last.payload.size(), std::byte{1});
  EXPECT_EQ(CompareMedia(), 3);
  EXPECT_EQ(violated(), "byte-equality");
}

// Somebody has cleaned it, and not everybody knows.
TEST_F(EndCheckerTest, OtherCleanedWordsViolateNothing) {
  const RecordView last = LastRecord();
  MediumOf(2).Damage(
      PayloadOf(last) - kRecordHeaderBytes + offsetof(RecordHeader, cleaned),
      8);
  EXPECT_EQ(CompareMedia(), 3);
  EXPECT_EQ(violated(), "");
}

TEST_F(EndCheckerTest, ALogThatWasClosedAndEndsElsewhereViolatesC4) {
  checker_.CompareEnds(Lsn(7), Lsn(7));
  EXPECT_EQ(violated(), "");
  checker_.CompareEnds(Lsn(7), Lsn(8));
  EXPECT_EQ(violated(), "P-C4");
}

TEST_F(EndCheckerTest, CopiesThatDifferViolateInvS2) {
  Superline next = MediumOf(1).superline();
  next.unsafe_shutdown_count = 1;
  MediumOf(1).WriteOneCopy(1, next, MediumOf(1).seq() + 1);
  checker_.CheckWhenIdle(primary().epoch() + 1);  // it has another one
  EXPECT_EQ(violated(), "");
  checker_.CheckWhenIdle(primary().epoch());
  EXPECT_EQ(violated(), "P-INV-S2");
}

}  // namespace
}  // namespace alpheus::sim
