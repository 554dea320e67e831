// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/state_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "log/core/read/scan.h"
#include "recovery/opening/chooser.h"
#include "recovery/replica/state_report_scan.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LogHarness;
using ::testing::SizeIs;

class StateReportTest : public ::testing::Test {
 protected:
  StateReportTest() : harness_({.ring_capacity = 640}) {
    EXPECT_TRUE(harness_.Open().ok());
  }

  RegionState State() { return *ReadRegionState(harness_.region(), "model"); }
  StateReport Reported() {
    return ReportOfRegion(harness_.region(), State(), {});
  }
  // One letter for each LSN that is in a run.
  std::string Verdicts() {
    const StateReport report = Reported();
    std::string letters;
    VerdictReader reader(report);
    if (report.runs.empty()) return letters;
    for (Lsn lsn = report.head.lsn; lsn < report.runs.back().end;
         lsn = lsn + 1) {
      letters += VerdictName(reader.At(lsn).verdict)[0];
    }
    return letters;
  }
  ReservedRecord Reserve(size_t bytes) {
    auto record = harness_.log().Reserve(bytes, Deadline());
    EXPECT_TRUE(record.ok()) << record.status();
    return *record;
  }
  // Flips a bit of the record in line `line` of the ring, `byte` bytes behind
  // its start.
  void Damage(uint64_t line, size_t byte) {
    std::byte* const at = RingOf(harness_.region(), State().superline)
                              .At(RingOffset(line * kLineBytes)) +
                          byte;
    *at ^= std::byte{1};
  }

  static constexpr size_t kInHeader = 24;
  static constexpr size_t kInPayload = kRecordHeaderBytes;

  LogHarness harness_;
};

TEST_F(StateReportTest, WholeLogIsOneRun) {
  for (int i = 0; i < 5; ++i) harness_.Append("x");
  const StateReport report = Reported();
  EXPECT_THAT(report.runs,
              ElementsAre(VerdictRun{Lsn(1), Lsn(6), Verdict::kHave, 0}));
  EXPECT_THAT(report.records, SizeIs(5));
  EXPECT_EQ(report.log_epoch, Epoch(1));
  EXPECT_TRUE(report.knows());
}

TEST_F(StateReportTest, EmptyLogHasNoRun) {
  EXPECT_THAT(Reported().runs, IsEmpty());
}

// P-A4.3: threads complete in any order, so that a hole is no end.
TEST_F(StateReportTest, RecordBehindAHoleIsReported) {
  harness_.Append("a");
  const ReservedRecord open = Reserve(1);
  ReservedRecord later = Reserve(1);
  ASSERT_TRUE(harness_.log().Complete(later).ok());
  EXPECT_EQ(Verdicts(), "hah");
  EXPECT_EQ(Reported().records[1].offset, RingOffset(2 * kLineBytes));
  harness_.log().Abort(open);
}

// P-H9, P-INV-9: by the durable LSN of a later record and by the watermark, and
// whether header or payload is what is damaged.
TEST_F(StateReportTest, BadRecordThatWasAcknowledgedIsCorrupt) {
  for (int i = 0; i < 4; ++i) harness_.Append("x");
  for (const size_t byte : {kInHeader, kInPayload}) {
    Damage(1, byte);
    EXPECT_EQ(Verdicts(), "hchh");
    Damage(0, byte);
    EXPECT_EQ(Verdicts(), "cchh");
    Damage(0, byte);
    Damage(1, byte);
  }
}

// All headers are gone: the watermark alone says what was there.
TEST_F(StateReportTest, WatermarkProvesWhatNoHeaderShows) {
  for (int i = 0; i < 4; ++i) harness_.Append("x");
  for (uint64_t line = 0; line < 4; ++line) Damage(line, kInHeader);
  EXPECT_THAT(Verdicts(), ::testing::StartsWith("ccc"));
}

TEST_F(StateReportTest, BadRecordThatNobodyWasToldOfIsTorn) {
  harness_.Append("a");
  ReservedRecord second = Reserve(1);
  ReservedRecord third = Reserve(1);
  ASSERT_TRUE(harness_.log().Complete(second).ok());
  ASSERT_TRUE(harness_.log().Complete(third).ok());
  Damage(1, kInPayload);
  EXPECT_EQ(Verdicts(), "hth");
  Damage(2, kInPayload);
  EXPECT_EQ(Verdicts(), "htt");
  Damage(2, kInHeader);
  EXPECT_EQ(Verdicts(), "htt");
}

// STR2 (state_report.h): whatever lies in the ring.
TEST_F(StateReportTest, ReplicaThatCannotKnowReportsUnknown) {
  harness_.Append("a");
  RegionState repairing = State();
  repairing.superline.repairing = true;
  RegionState blank = State();
  blank.superline.configuration.members[0].incarnation ^= 1;
  for (const StateReport& report :
       {ReportOfRegion(harness_.region(), repairing, {}),
        ReportOfRegion(harness_.region(), blank, {}),
        ReportOfRegion(harness_.region(), State(), {.suspect = true})}) {
    EXPECT_FALSE(report.knows());
    EXPECT_EQ(VerdictReader(report).At(Lsn(1)).verdict, Verdict::kUnknown);
    EXPECT_EQ(VerdictReader(report).At(Lsn(9)).verdict, Verdict::kUnknown);
  }
}

// STR3 (state_report.h): also of a report that says otherwise.
TEST_F(StateReportTest, ProvenLsnIsNeverNacked) {
  StateReport report;
  report.proven_lsn = Lsn(3);
  AddVerdict(&report, Verdict::kTorn, 2);
  VerdictReader reader(report);
  EXPECT_EQ(reader.At(Lsn(1)).verdict, Verdict::kCorrupt);
  EXPECT_EQ(reader.At(Lsn(3)).verdict, Verdict::kCorrupt);
  EXPECT_EQ(reader.At(Lsn(4)).verdict, Verdict::kAbsent);
}

// With one replica the chooser comes to what the scan finds, chain included,
// in every phase of the ring, with PADs, epochs, and a torn end.
TEST_F(StateReportTest, ChoiceFromOneReportIsTheScan) {
  for (int i = 0; i < 40; ++i) {
    const Lsn lsn = harness_.Append(std::string(10 + i % 3 * 50, 'x'));
    if (i % 7 == 3) {
      ASSERT_TRUE(harness_.Open().ok());
    }
    if (i > 0) {
      ASSERT_TRUE(harness_.log().CleanupThrough(lsn - 1).ok());
    }
    const ReservedRecord open = Reserve(1);
    const RegionState state = State();
    const ScanResult scan = ScanLog(ScanInputOf(harness_.region(), state));
    const std::vector<StateReport> reports = {Reported()};
    const auto decision = Choose({1, 1, 1}, reports);
    ASSERT_TRUE(decision.ok()) << decision.status();
    EXPECT_EQ(decision->outcome, Outcome::kChosen);
    EXPECT_EQ(decision->head, state.head());
    EXPECT_EQ(decision->end, scan.end);
    harness_.log().Abort(open);
  }
}

// SSC1 (state_report_scan.h), for a log with a torn place, one that can't be
// read, and records behind it.
TEST_F(StateReportTest, SlicesChangeNoReport) {
  for (int i = 0; i < 3; ++i) harness_.Append(std::string(70, 'x'));
  for (int i = 0; i < 3; ++i) harness_.Append("y");
  for (const bool in_header : {false, true}) {
    for (uint64_t line = 0; line < 10; ++line) {
      Damage(line, in_header ? kInHeader : 0);
      const StateReport whole = Reported();
      for (const uint64_t slice : {uint64_t{1}, kLineBytes, 3 * kLineBytes}) {
        StateReportScan scan(harness_.region(), State(), {});
        int slices = 1;
        while (!scan.Continue(slice)) ++slices;
        const StateReport sliced = scan.Take();
        EXPECT_EQ(sliced.runs, whole.runs) << line << " " << slice;
        EXPECT_EQ(sliced.records, whole.records) << line << " " << slice;
        EXPECT_EQ(sliced.proven_lsn, whole.proven_lsn);
        EXPECT_GE(slices, 2);
        EXPECT_LE(slices, 11);
      }
      Damage(line, in_header ? kInHeader : 0);
    }
  }
}

}  // namespace
}  // namespace alpheus::recovery
