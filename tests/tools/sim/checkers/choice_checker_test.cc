// SPDX-License-Identifier: Apache-2.0
// Does the checker of choices see a log that ends before it may? With N 3 and
// W 2 it takes two nacks; epoch 7 is opened, of a log whose epoch 5 owns LSN 4.
#include "tools/sim/checkers/choice_checker.h"

#include <gtest/gtest.h>

#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {

using recovery::StateReport;
using recovery::Verdict;

namespace {

constexpr Epoch kOpened(7);
constexpr Epoch kPrevious(5);
constexpr Lsn kEnd(4);

class ChoiceCheckerTest : public CheckerTest {
 protected:
  static Configuration Found() {
    Configuration found;
    found.replica_count = 3;
    found.write_quorum = 2;
    found.members = {{NodeId(1), 7}, {NodeId(2), 7}, {NodeId(3), 7}};
    return found;
  }
  // LSN 1 to `last`.
  static StateReport Has(uint64_t last, Epoch log_epoch,
                         Epoch epoch = kPrevious) {
    StateReport report;
    report.node = NodeId(1);
    report.incarnation = 7;
    report.log_epoch = log_epoch;
    for (uint64_t lsn = 1; lsn <= last; ++lsn) {
      recovery::AddRecord(&report, {epoch, RingOffset(0), 0, 1});
    }
    return report;
  }
  static StateReport Says(Verdict verdict, Epoch log_epoch) {
    StateReport report = Has(3, log_epoch);
    recovery::AddVerdict(&report, verdict);
    return report;
  }
  // Machine 0 has nothing at the end; so it is enough if this is a nack.
  bool IsNack(const StateReport& other) {
    Oracle oracle(clock_);
    ChoiceChecker checker(oracle);
    checker.Reported(0, kOpened, Has(3, kPrevious));
    checker.Reported(1, kOpened, other);
    checker.Opened(kOpened, kPrevious, kEnd, Found(), 2);
    return ViolatedBy(oracle) != "P-INV-2";
  }

  ChoiceChecker checker_{oracle_};
};

TEST_F(ChoiceCheckerTest, WhoHasNothingThereNacks) {
  EXPECT_TRUE(IsNack(Has(3, kPrevious)));
  EXPECT_TRUE(IsNack(Has(0, Epoch(2))));
  EXPECT_TRUE(IsNack(Says(Verdict::kTorn, kPrevious)));
}

TEST_F(ChoiceCheckerTest, WhoHasItOrCannotTellDoesNot) {
  EXPECT_FALSE(IsNack(Has(4, kPrevious)));
  EXPECT_FALSE(IsNack(Says(Verdict::kCorrupt, kPrevious)));
  EXPECT_FALSE(IsNack(Says(Verdict::kUnknown, kPrevious)));
  StateReport report = Has(3, kPrevious);
  report.suspect = true;
  EXPECT_FALSE(IsNack(report));
  report = Has(3, kPrevious);
  report.blank = report.suspect = true;
  EXPECT_FALSE(IsNack(report));
  report = Has(3, kPrevious);
  report.repairing = true;
  EXPECT_FALSE(IsNack(report));
  // It has forgotten all before its head.
  report = Has(0, kPrevious);
  report.head.lsn = Lsn(5);
  EXPECT_FALSE(IsNack(report));
}

TEST_F(ChoiceCheckerTest, WhoNeverInstalledTheEpochNacksAllButItsRecords) {
  EXPECT_TRUE(IsNack(Has(4, Epoch(2), /*epoch=*/Epoch(2))));
  EXPECT_TRUE(IsNack(Says(Verdict::kCorrupt, Epoch(2))));
  StateReport report = Has(3, Epoch(2));
  report.repairing = true;
  EXPECT_TRUE(IsNack(report));
  // Its record 4 is left of an installation that was cut off.
  EXPECT_FALSE(IsNack(Has(4, Epoch(2))));
}

TEST_F(ChoiceCheckerTest, OnlyMembersOfWhatWasFoundNack) {
  StateReport report = Has(3, kPrevious);
  report.incarnation = 8;
  EXPECT_FALSE(IsNack(report));
  report = Has(3, kPrevious);
  report.node = NodeId(4);
  EXPECT_FALSE(IsNack(report));
}

// It is a member, and has never acknowledged anything as one.
TEST_F(ChoiceCheckerTest, BlankMemberNacks) {
  StateReport report = Has(0, Epoch());
  report.blank = true;
  EXPECT_TRUE(IsNack(report));
}

// One of them may have come too late.
TEST_F(ChoiceCheckerTest, WhereALaterEpochWasReportedNothingIsJudged) {
  checker_.Reported(0, kOpened, Has(3, kPrevious));
  checker_.Reported(1, kOpened, Has(4, kPrevious + 1, kPrevious + 1));
  checker_.Opened(kOpened, kPrevious, kEnd, Found(), 2);
  EXPECT_EQ(violated(), "");
}

TEST_F(ChoiceCheckerTest, TheLastReportOfEachMachineCounts) {
  checker_.Reported(0, kOpened, Has(3, kPrevious));
  checker_.Reported(0, kOpened, Has(3, kPrevious));
  checker_.Opened(kOpened, kPrevious, kEnd, Found(), 2);
  EXPECT_EQ(violated(), "P-INV-2");
}

TEST_F(ChoiceCheckerTest, AnOpeningThatIsShownLateHasItsReports) {
  for (const Epoch epoch : {kOpened, kOpened + 1}) {
    checker_.Reported(0, epoch, Has(3, kPrevious));
    checker_.Reported(1, epoch, Has(3, kPrevious));
  }
  checker_.Opened(kOpened + 1, kPrevious, kEnd, Found(), 2);
  checker_.Opened(kOpened, kPrevious, kEnd, Found(), 2);
  EXPECT_EQ(violated(), "");
}

TEST_F(ChoiceCheckerTest, ReportsForAnotherEpochDoNotCount) {
  checker_.Reported(0, kOpened, Has(3, kPrevious));
  checker_.Reported(1, Epoch(6), Has(3, kPrevious));
  checker_.Opened(kOpened, kPrevious, kEnd, Found(), 2);
  EXPECT_EQ(violated(), "P-INV-2");
}

}  // namespace
}  // namespace alpheus::sim
