// SPDX-License-Identifier: Apache-2.0
// Do the checkers that look at media see what is said and is not there? LSN 1
// is durable on machines 0 and 1; each test says one thing that is not true.
#include <gtest/gtest.h>

#include <functional>

#include "tests/tools/sim/world/checked_world.h"
#include "tests/tools/sim/world/medium.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

using recovery::StateReport;

namespace {

constexpr quorum::Promise kMediumPromise{Epoch(5), {NodeId(1), 11}};
const EpochEntry kMediumEntry{Epoch(5), /*nonce=*/500, Lsn(1), RingOffset(0),
                              /*start_chain=*/0};

class MediaCheckersTest : public CheckedWorldTest {
 protected:
  MediaCheckersTest() {
    for (int machine = 0; machine < 2; ++machine) {
      MediumOf(machine).Promise(kMediumPromise);
      checkers().epochs.Check(machine);
    }
    for (int machine = 0; machine < 2; ++machine) {
      Medium medium = MediumOf(machine);
      medium.Install(kMediumEntry);
      medium.WriteFirstRecord(kMediumEntry, std::byte{1});
      medium.Mark(0, Epoch(5), Lsn(1));
      checkers().epochs.Check(machine);
    }
    Learn(Epoch(5));
  }

  Medium MediumOf(int machine) { return Medium(world_.machine(machine)); }
  // The checker learns the record from a primary of that log epoch.
  void Learn(Epoch log_epoch) {
    const Medium medium = MediumOf(0);
    const RecordView record = medium.FirstRecord();
    checkers().durability.Learn(record, medium.BytesOf(record), log_epoch);
  }
  // Machine 0 answers what is true, but for what `change` makes of it.
  std::string Reports(const std::function<void(StateReport&)>& change) {
    const Medium medium = MediumOf(0);
    const RegionState state = medium.State();
    const RecordView record = medium.FirstRecord();
    StateReport report;
    report.log_epoch = state.superline.log_epoch;
    report.table = state.table;
    report.head = state.head();
    report.proven_lsn = state.ProvenLsn();
    report.repairing = state.superline.repairing;
    recovery::AddRecord(&report,
                        {.epoch = record.epoch(),
                         .offset = record.offset,
                         .header_checksum = record.header.header_crc(),
                         .lines = static_cast<uint32_t>(record.bytes / 64)});
    change(report);
    checkers().reports.Reported(0, report);
    return violated();
  }
  void SetRepairing() {
    MediumOf(0).Promise({Epoch(6), {NodeId(1), 11}});
    checkers().epochs.Check(0);
    MediumOf(0).Change(
        [](Superline& superline) { superline.repairing = true; });
    checkers().epochs.Check(0);
  }
};

TEST_F(MediaCheckersTest, WhatIsTrueViolatesNothing) {
  EXPECT_EQ(Reports([](StateReport&) {}), "");
  checkers().reports.Installed(0, Epoch(5));
  checkers().reports.Promised(0, kMediumPromise);
  checkers().durability.Check();
  SetRepairing();
  checkers().reports.RepairBegan(0);
  EXPECT_EQ(Reports([](StateReport&) {}), "");
  EXPECT_EQ(world_.counters().records_still_durable, 1u);
  EXPECT_EQ(world_.counters().reports_checked, 1u);
}

TEST_F(MediaCheckersTest, APromiseThatIsNotOnTheMediumIsSeen) {
  checkers().reports.Promised(0, {Epoch(6), {NodeId(1), 11}});
  EXPECT_EQ(violated(), "P-A4.2");
}

TEST_F(MediaCheckersTest, ARepairThatIsNotOnTheMediumIsSeen) {
  checkers().reports.RepairBegan(0);
  EXPECT_EQ(violated(), "P-INV-12");
}

TEST_F(MediaCheckersTest, ARepairThatAReportHidesViolatesInv12) {
  SetRepairing();
  EXPECT_EQ(Reports([](StateReport& report) { report.repairing = false; }),
            "P-INV-12");
}

TEST_F(MediaCheckersTest, AnInstallationThatIsNotOnTheMediumIsSeen) {
  checkers().reports.Installed(0, Epoch(6));
  EXPECT_EQ(violated(), "P-INV-3");
}

TEST_F(MediaCheckersTest, AReportOfAnotherLogEpochIsSeen) {
  EXPECT_EQ(Reports([](StateReport& report) { report.log_epoch = Epoch(4); }),
            "P-A4.3");
}

TEST_F(MediaCheckersTest, AReportWithAnotherTableIsSeen) {
  EXPECT_EQ(Reports([](StateReport& report) {
              report.table = EpochTable::Empty(kLogId);
            }),
            "P-A4.3");
}

TEST_F(MediaCheckersTest, AReportWithAnotherHeadIsSeen) {
  EXPECT_EQ(Reports([](StateReport& report) { report.head.chain = 1; }),
            "P-A4.3");
}

TEST_F(MediaCheckersTest, AReportThatProvesTooLittleViolatesInv9) {
  EXPECT_EQ(Reports([](StateReport& report) { report.proven_lsn = Lsn(0); }),
            "P-INV-9");
}

TEST_F(MediaCheckersTest, AReportThatHasAnotherRecordViolatesInv7) {
  EXPECT_EQ(
      Reports([](StateReport& report) { ++report.records[0].header_checksum; }),
      "P-INV-7");
}

TEST_F(MediaCheckersTest, AReportThatHasWhatAPowerCutTakesViolatesInv7) {
  EXPECT_EQ(Reports([&](StateReport&) {
              World::Model& pmem = *world_.machine(0).pmem;
              const std::byte other{7};  // that nobody flushes
              pmem.Copy(pmem.region().data() + world_.layout().ring_offset +
                            kRecordHeaderBytes,
                        &other, 1);
            }),
            "P-INV-7");
}

TEST_F(MediaCheckersTest, ANackOfWhatIsDurableAndOnTheMediumViolatesInv9) {
  EXPECT_EQ(Reports([](StateReport& report) {
              report.runs.clear();
              report.records.clear();
            }),
            "P-INV-9");
}

TEST_F(MediaCheckersTest, AReplicaThatKnowsNothingNacksNothing) {
  EXPECT_EQ(Reports([](StateReport& report) {
              report.suspect = true;
              report.runs.clear();
              report.records.clear();
            }),
            "");
}

TEST_F(MediaCheckersTest, ARecordThatOneOfWMediaLosesViolatesInv22) {
  MediumOf(1).Damage(world_.layout().ring_offset + kRecordHeaderBytes, 1);
  checkers().durability.Check();
  EXPECT_EQ(violated(), "P-INV-22");
}

TEST_F(MediaCheckersTest, OnlyMediaOfTheLogEpochCount) {
  Learn(Epoch(6));
  checkers().durability.Check();
  EXPECT_EQ(violated(), "P-INV-22");
}

}  // namespace
}  // namespace alpheus::sim
