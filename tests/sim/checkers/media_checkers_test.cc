// SPDX-License-Identifier: Apache-2.0
// Do the checkers that look at media see what is said and is not there? LSN 1
// is durable on machines 0 and 1; each test says one thing that is not true.
#include <gtest/gtest.h>

#include <functional>

#include "tests/sim/world/checked_world.h"
#include "tests/sim/world/medium.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

constexpr Promise kFive{Epoch(5), {NodeId(1), 11}};
const EpochEntry kEntry{Epoch(5), /*nonce=*/500, Lsn(1), RingOffset(0),
                        /*start_chain=*/0};

class MediaCheckersTest : public CheckedWorldTest {
 protected:
  MediaCheckersTest() {
    for (int machine = 0; machine < 2; ++machine) {
      MediumOf(machine).Promise(kFive);
      checkers().epochs.Look(machine);
    }
    for (int machine = 0; machine < 2; ++machine) {
      Medium medium = MediumOf(machine);
      medium.Install(kEntry);
      medium.WriteFirstRecord(kEntry, std::byte{1});
      medium.Mark(0, Epoch(5), Lsn(1));
      checkers().epochs.Look(machine);
    }
    Learn(Epoch(5));
  }

  Medium MediumOf(int machine) { return Medium(world_.machine(machine)); }
  // Of a primary of that log epoch.
  void Learn(Epoch log_epoch) {
    const Medium medium = MediumOf(0);
    const RecordView record = medium.FirstRecord();
    checkers().holders.Learn(record, medium.BytesOf(record), log_epoch);
  }
  // Machine 0 answers what is true, but for what `change` makes of it.
  std::string Answers(const std::function<void(Answer&)>& change) {
    const Medium medium = MediumOf(0);
    const RegionState state = medium.State();
    const RecordView record = medium.FirstRecord();
    Answer answer;
    answer.log_epoch = state.superline.log_epoch;
    answer.table = state.table;
    answer.head = state.head();
    answer.proven_lsn = state.ProvenLsn();
    answer.repairing = state.superline.repairing;
    AddHeld(&answer, {.epoch = record.epoch(),
                      .offset = record.offset,
                      .header_checksum = record.header.header_crc(),
                      .lines = static_cast<uint32_t>(record.bytes / 64)});
    change(answer);
    checkers().answers.Answered(0, answer);
    return violated();
  }
  void SetRepairing() {
    MediumOf(0).Promise({Epoch(6), {NodeId(1), 11}});
    checkers().epochs.Look(0);
    MediumOf(0).Change(
        [](Superline& superline) { superline.repairing = true; });
    checkers().epochs.Look(0);
  }
};

TEST_F(MediaCheckersTest, WhatIsTrueViolatesNothing) {
  EXPECT_EQ(Answers([](Answer&) {}), "");
  checkers().answers.Installed(0, Epoch(5));
  checkers().answers.Promised(0, kFive);
  checkers().holders.Look();
  SetRepairing();
  checkers().answers.RepairBegan(0);
  EXPECT_EQ(Answers([](Answer&) {}), "");
  EXPECT_EQ(world_.counters().records_still_held, 1u);
  EXPECT_EQ(world_.counters().answers_checked, 1u);
}

TEST_F(MediaCheckersTest, APromiseThatIsNotOnTheMediumIsSeen) {
  checkers().answers.Promised(0, {Epoch(6), {NodeId(1), 11}});
  EXPECT_EQ(violated(), "P-A4.2");
}

TEST_F(MediaCheckersTest, ARepairThatIsNotOnTheMediumIsSeen) {
  checkers().answers.RepairBegan(0);
  EXPECT_EQ(violated(), "P-INV-12");
}

TEST_F(MediaCheckersTest, ARepairThatAnAnswerHidesViolatesInv12) {
  SetRepairing();
  EXPECT_EQ(Answers([](Answer& answer) { answer.repairing = false; }),
            "P-INV-12");
}

TEST_F(MediaCheckersTest, AnInstallationThatIsNotOnTheMediumIsSeen) {
  checkers().answers.Installed(0, Epoch(6));
  EXPECT_EQ(violated(), "P-INV-3");
}

TEST_F(MediaCheckersTest, AnAnswerOfAnotherLogEpochIsSeen) {
  EXPECT_EQ(Answers([](Answer& answer) { answer.log_epoch = Epoch(4); }),
            "P-A4.3");
}

TEST_F(MediaCheckersTest, AnAnswerWithAnotherTableIsSeen) {
  EXPECT_EQ(
      Answers([](Answer& answer) { answer.table = EpochTable::Empty(kLogId); }),
      "P-A4.3");
}

TEST_F(MediaCheckersTest, AnAnswerWithAnotherHeadIsSeen) {
  EXPECT_EQ(Answers([](Answer& answer) { answer.head.chain = 1; }), "P-A4.3");
}

TEST_F(MediaCheckersTest, AnAnswerThatProvesTooLittleViolatesInv9) {
  EXPECT_EQ(Answers([](Answer& answer) { answer.proven_lsn = Lsn(0); }),
            "P-INV-9");
}

TEST_F(MediaCheckersTest, AnAnswerThatHasAnotherRecordViolatesInv7) {
  EXPECT_EQ(Answers([](Answer& answer) { ++answer.held[0].header_checksum; }),
            "P-INV-7");
}

TEST_F(MediaCheckersTest, AnAnswerThatHasWhatAPowerCutTakesViolatesInv7) {
  EXPECT_EQ(Answers([&](Answer&) {
              World::Model& pmem = *world_.machine(0).pmem;
              const std::byte other{7};  // that nobody flushes
              pmem.Copy(pmem.region().data() + world_.layout().ring_offset +
                            kRecordHeaderBytes,
                        &other, 1);
            }),
            "P-INV-7");
}

TEST_F(MediaCheckersTest, ANackOfWhatIsDurableAndOnTheMediumViolatesInv9) {
  EXPECT_EQ(Answers([](Answer& answer) {
              answer.runs.clear();
              answer.held.clear();
            }),
            "P-INV-9");
}

TEST_F(MediaCheckersTest, AReplicaThatKnowsNothingNacksNothing) {
  EXPECT_EQ(Answers([](Answer& answer) {
              answer.suspect = true;
              answer.runs.clear();
              answer.held.clear();
            }),
            "");
}

TEST_F(MediaCheckersTest, ARecordThatOneOfWMediaLosesViolatesInv22) {
  MediumOf(1).Damage(world_.layout().ring_offset + kRecordHeaderBytes, 1);
  checkers().holders.Look();
  EXPECT_EQ(violated(), "P-INV-22");
}

TEST_F(MediaCheckersTest, OnlyMediaOfTheLogEpochCount) {
  Learn(Epoch(6));
  checkers().holders.Look();
  EXPECT_EQ(violated(), "P-INV-22");
}

}  // namespace
}  // namespace alpheus::sim
