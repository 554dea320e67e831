// SPDX-License-Identifier: Apache-2.0
// Does the checker of choices see a log that ends before it may? With N 3 and
// W 2 it takes two nacks; epoch 7 is opened, of a log whose epoch 5 owns LSN 4.
#include "tools/sim/checkers/choice_checker.h"

#include <gtest/gtest.h>

#include "tests/sim/world/checked_world.h"

namespace alpheus::sim {
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
  static Answer Has(uint64_t last, Epoch log_epoch, Epoch epoch = kPrevious) {
    Answer answer;
    answer.node = NodeId(1);
    answer.incarnation = 7;
    answer.log_epoch = log_epoch;
    for (uint64_t lsn = 1; lsn <= last; ++lsn) {
      AddHeld(&answer, {epoch, RingOffset(0), 0, 1});
    }
    return answer;
  }
  static Answer Says(Verdict verdict, Epoch log_epoch) {
    Answer answer = Has(3, log_epoch);
    AddVerdict(&answer, verdict);
    return answer;
  }
  // Machine 0 has nothing at the end; so it is enough if this is a nack.
  bool IsNack(const Answer& other) {
    Referee referee(clock_);
    ChoiceChecker checker(referee);
    checker.Answered(0, kOpened, Has(3, kPrevious));
    checker.Answered(1, kOpened, other);
    checker.Opened(kOpened, kPrevious, kEnd, Found(), 2);
    return ViolatedBy(referee) != "P-INV-2";
  }

  ChoiceChecker checker_{referee_};
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
  Answer answer = Has(3, kPrevious);
  answer.suspect = true;
  EXPECT_FALSE(IsNack(answer));
  answer = Has(3, kPrevious);
  answer.blank = answer.suspect = true;
  EXPECT_FALSE(IsNack(answer));
  answer = Has(3, kPrevious);
  answer.repairing = true;
  EXPECT_FALSE(IsNack(answer));
  // It has forgotten all before its head.
  answer = Has(0, kPrevious);
  answer.head.lsn = Lsn(5);
  EXPECT_FALSE(IsNack(answer));
}

TEST_F(ChoiceCheckerTest, WhoNeverInstalledTheEpochNacksAllButItsRecords) {
  EXPECT_TRUE(IsNack(Has(4, Epoch(2), /*epoch=*/Epoch(2))));
  EXPECT_TRUE(IsNack(Says(Verdict::kCorrupt, Epoch(2))));
  Answer answer = Has(3, Epoch(2));
  answer.repairing = true;
  EXPECT_TRUE(IsNack(answer));
  // Of an installation that was cut off.
  EXPECT_FALSE(IsNack(Has(4, Epoch(2))));
}

TEST_F(ChoiceCheckerTest, OnlyMembersOfWhatWasFoundNack) {
  Answer answer = Has(3, kPrevious);
  answer.incarnation = 8;
  EXPECT_FALSE(IsNack(answer));
  answer = Has(3, kPrevious);
  answer.node = NodeId(4);
  EXPECT_FALSE(IsNack(answer));
}

// It is a member, and has never acknowledged anything as one.
TEST_F(ChoiceCheckerTest, BlankMemberNacks) {
  Answer answer = Has(0, Epoch());
  answer.blank = true;
  EXPECT_TRUE(IsNack(answer));
}

// One of them may have come too late.
TEST_F(ChoiceCheckerTest, WhereALaterEpochWasAnsweredNothingIsJudged) {
  checker_.Answered(0, kOpened, Has(3, kPrevious));
  checker_.Answered(1, kOpened, Has(4, kPrevious + 1, kPrevious + 1));
  checker_.Opened(kOpened, kPrevious, kEnd, Found(), 2);
  EXPECT_EQ(violated(), "");
}

TEST_F(ChoiceCheckerTest, TheLastAnswerOfEachMachineCounts) {
  checker_.Answered(0, kOpened, Has(3, kPrevious));
  checker_.Answered(0, kOpened, Has(3, kPrevious));
  checker_.Opened(kOpened, kPrevious, kEnd, Found(), 2);
  EXPECT_EQ(violated(), "P-INV-2");
}

TEST_F(ChoiceCheckerTest, AnOpeningThatIsShownLateHasItsAnswers) {
  for (const Epoch epoch : {kOpened, kOpened + 1}) {
    checker_.Answered(0, epoch, Has(3, kPrevious));
    checker_.Answered(1, epoch, Has(3, kPrevious));
  }
  checker_.Opened(kOpened + 1, kPrevious, kEnd, Found(), 2);
  checker_.Opened(kOpened, kPrevious, kEnd, Found(), 2);
  EXPECT_EQ(violated(), "");
}

TEST_F(ChoiceCheckerTest, AnswersForAnotherEpochDoNotCount) {
  checker_.Answered(0, kOpened, Has(3, kPrevious));
  checker_.Answered(1, Epoch(6), Has(3, kPrevious));
  checker_.Opened(kOpened, kPrevious, kEnd, Found(), 2);
  EXPECT_EQ(violated(), "P-INV-2");
}

}  // namespace
}  // namespace alpheus::sim
