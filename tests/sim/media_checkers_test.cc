// SPDX-License-Identifier: Apache-2.0
// Do the checkers that look at media see what is said and is not there? Each
// test says one thing of freshly formatted replicas that is not true.
#include <gtest/gtest.h>

#include <array>

#include "tests/sim/checked_world.h"
#include "tools/sim/checkers.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kPlace = 128;  // of a record, in the ring

class MediaCheckersTest : public CheckedWorldTest {
 protected:
  // A record as it lies in a ring that was never written, for a checker that
  // compares bytes.
  static RecordView RecordOfZeros() {
    RecordView record;
    record.offset = RingOffset(kPlace);
    return record;
  }
  void LearnZeros(Epoch log_epoch) {
    checkers().holders.Learn(RecordOfZeros(), zeros_.data(), log_epoch);
  }
  static Answer Empty() {
    Answer answer;
    answer.head.lsn = Lsn(0);
    return answer;
  }

  const std::array<std::byte, 64> zeros_ = {};
};

TEST_F(MediaCheckersTest, WhatIsTrueViolatesNothing) {
  checkers().answers.Answered(0, Empty());
  checkers().answers.Installed(0, Epoch(0));
  checkers().answers.Promised(0, Promise{});
  LearnZeros(Epoch(0));
  checkers().holders.Look();
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(world_.counters().records_still_held, 1u);
}

TEST_F(MediaCheckersTest, APromiseThatIsNotOnTheMediumIsSeen) {
  checkers().answers.Promised(0, {Epoch(5), {NodeId(1), 1}});
  EXPECT_EQ(violated(), "A4.2");
}

TEST_F(MediaCheckersTest, ARepairThatIsNotOnTheMediumIsSeen) {
  checkers().answers.RepairBegan(0);
  EXPECT_EQ(violated(), "INV-12");
}

TEST_F(MediaCheckersTest, AnInstallationThatIsNotOnTheMediumIsSeen) {
  checkers().answers.Installed(0, Epoch(5));
  EXPECT_EQ(violated(), "INV-3");
}

TEST_F(MediaCheckersTest, AnAnswerOfAnotherLogEpochIsSeen) {
  Answer answer = Empty();
  answer.log_epoch = Epoch(5);
  checkers().answers.Answered(0, answer);
  EXPECT_EQ(violated(), "A4.3");
}

TEST_F(MediaCheckersTest, AnAnswerThatHasWhatIsNotOnTheMediumViolatesInv7) {
  Answer answer = Empty();
  AddHeld(&answer, {.epoch = Epoch(1), .offset = RingOffset(0), .lines = 1});
  checkers().answers.Answered(0, answer);
  EXPECT_EQ(violated(), "INV-7");
}

TEST_F(MediaCheckersTest, ANackOfWhatIsDurableAndOnTheMediumViolatesInv9) {
  LearnZeros(Epoch(0));
  checkers().answers.Answered(0, Empty());
  EXPECT_EQ(violated(), "INV-9");
}

TEST_F(MediaCheckersTest, AReplicaThatKnowsNothingNacksNothing) {
  LearnZeros(Epoch(0));
  Answer answer = Empty();
  answer.suspect = true;
  checkers().answers.Answered(0, answer);
  EXPECT_EQ(violated(), "");
}

TEST_F(MediaCheckersTest, OnlyMediaOfTheLogEpochCount) {
  LearnZeros(Epoch(5));
  checkers().holders.Look();
  EXPECT_EQ(violated(), "INV-22");
}

}  // namespace
}  // namespace alpheus::sim
