// SPDX-License-Identifier: Apache-2.0
// What an opening reads of a large log: from the proven place to the ceiling
// (P-A3.7).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "log/format/watermark.h"
#include "recovery/replica/local_opening.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::recovery {
namespace {

using ::testing::HasSubstr;
using testing::LogHarness;
using ::testing::SizeIs;

using Code = absl::StatusCode;

constexpr uint64_t kCapacity = 8192;
constexpr uint64_t kStep = 1024;
constexpr size_t kPayloadBytes = kLineBytes - kRecordHeaderBytes;

class LocalOpeningReadsTest : public ::testing::Test {
 protected:
  LocalOpeningReadsTest()
      : harness_({.ring_capacity = kCapacity,
                  .table_capacity = 102,
                  .read_whole_bytes_max = 0,
                  .ceiling_step_bytes = kStep}) {
    EXPECT_TRUE(harness_.Open().ok());
  }

  // Appends records of one line each.
  void Append(int count) {
    for (int i = 0; i < count; ++i) {
      harness_.Append(std::string(kPayloadBytes, 'x'));
    }
  }

  RegionState State() { return *ReadRegionState(harness_.region(), "model"); }
  Superline ReadSuperline() { return State().superline; }

  // Spoils the payload of a record that lies at this line of the ring.
  void SpoilLine(uint64_t line) {
    std::byte* const place =
        RingOf(harness_.region(), ReadSuperline()).data() + line * kLineBytes;
    place[kRecordHeaderBytes] ^= std::byte{1};
  }

  void WriteMark(int line, const Watermark& mark) {
    const WatermarkFormat format =
        EncodeWatermark(ReadSuperline().log_id, line, mark);
    harness_.pmem().CopyLinesNt(WatermarkLine(harness_.region(), line), &format,
                                1);
    ASSERT_TRUE(harness_.pmem().Fence());
  }

  // Makes both lines those of the epoch before.
  void ForgetMarks() {
    for (const int line : {0, 1}) WriteMark(line, {Epoch(0), Lsn(0), {}});
  }

  LogHarness harness_;
};

// The fence of the last record carried a watermark of the one before.
TEST_F(LocalOpeningReadsTest, ScanBeginsAtTheWatermark) {
  Append(20);
  harness_.PowerCut();
  ASSERT_TRUE(harness_.Open().ok());
  const OpenedEpoch& opened = harness_.opened();
  EXPECT_EQ(opened.start.read_from.lsn, Lsn(20));
  EXPECT_EQ(opened.start.read_from.offset, RingOffset(19 * kLineBytes));
  EXPECT_EQ(opened.scan.data_records, 1u);
  EXPECT_EQ(opened.head.lsn, Lsn(1));
  EXPECT_EQ(opened.start.end.lsn, Lsn(21));
  EXPECT_THAT(harness_.Recovered(), SizeIs(20));
}

// The chain at the place is that of a scan from the head on.
TEST_F(LocalOpeningReadsTest, ChainGoesOnFromTheWatermark) {
  Append(20);
  harness_.PowerCut();
  const ScanResult whole = ScanLog(ScanInputOf(harness_.region(), State()));
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().start.end, whole.end);
}

TEST_F(LocalOpeningReadsTest, SmallLogIsReadAsAWhole) {
  LogHarness harness(
      {.ring_capacity = kCapacity, .read_whole_bytes_max = 19 * kLineBytes});
  ASSERT_TRUE(harness.Open().ok());
  for (int i = 0; i < 20; ++i) harness.Append(std::string(kPayloadBytes, 'x'));
  harness.PowerCut();
  ASSERT_TRUE(harness.Open().ok());
  EXPECT_EQ(harness.opened().start.read_from.lsn, Lsn(1));
  EXPECT_EQ(harness.opened().scan.data_records, 20u);
  for (int i = 0; i < 2; ++i) harness.Append(std::string(kPayloadBytes, 'x'));
  harness.PowerCut();
  ASSERT_TRUE(harness.Open().ok());
  EXPECT_EQ(harness.opened().start.read_from.lsn, Lsn(22));
}

// LO4: found when it is read, and the log is not shorter.
TEST_F(LocalOpeningReadsTest, DamageBeforeTheWatermarkShortensNothing) {
  Append(20);
  harness_.PowerCut();
  SpoilLine(4);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().start.end.lsn, Lsn(21));
  EXPECT_EQ(harness_.opened().scan.verdict, TailVerdict::kComplete);
  const ScanResult whole = ScanLog(ScanInputOf(harness_.region(), State()));
  EXPECT_EQ(whole.verdict, TailVerdict::kCorrupt);
  EXPECT_EQ(whole.end.lsn, Lsn(5));
}

// P-A4.5: what an epoch recovered was persisted before it opened.
TEST_F(LocalOpeningReadsTest, StartOfTheEpochIsAPlaceToo) {
  Append(20);
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Drop();
  ForgetMarks();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().start.read_from.lsn, Lsn(21));
  EXPECT_THAT(harness_.Recovered(), SizeIs(20));
}

// As a log of format version 2 has them.
TEST_F(LocalOpeningReadsTest, LinesWithoutAPlaceAreReadFromTheEpochOn) {
  Append(20);
  harness_.PowerCut();
  for (const int line : {0, 1}) WriteMark(line, {Epoch(1), Lsn(19)});
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().start.read_from.lsn, Lsn(1));
  EXPECT_EQ(harness_.opened().scan.proven_lsn, Lsn(19));
}

TEST_F(LocalOpeningReadsTest, ImpossiblePlaceIsNotTaken) {
  Append(20);
  harness_.PowerCut();
  const RingOffset ceiling = ReadSuperline().ceiling;
  const std::vector<Watermark> marks = {
      {Epoch(1), Lsn(20), WatermarkPlace{ceiling + kLineBytes, 0}},
      {Epoch(1), Lsn(20), WatermarkPlace{RingOffset(20 * kLineBytes + 8), 0}},
      {Epoch(1), Lsn(20), WatermarkPlace{RingOffset(19 * kLineBytes), 0}},
      {Epoch(1), Lsn(20), WatermarkPlace{RingOffset(0), 0}},
      {Epoch(2), Lsn(20), WatermarkPlace{RingOffset(20 * kLineBytes), 0}}};
  for (const Watermark& mark : marks) {
    for (const int line : {0, 1}) WriteMark(line, mark);
    EXPECT_EQ(State().proven_place(), State().head())
        << mark.epoch << " " << mark.place->offset;
  }
}

// The log's end is looked for in the ceiling's few lines only. A record that a
// thread completed behind an open one lies there, in any lap.
TEST_F(LocalOpeningReadsTest, RecordsBehindAHoleAreFoundBelowTheCeiling) {
  for (int lap = 0; lap < 3; ++lap) {
    Append(20);
    auto open = harness_.log().Reserve(1, Deadline());
    auto cut = harness_.log().Reserve(3, Deadline());
    ASSERT_TRUE(harness_.log().Complete(*cut).ok());
    const std::vector<std::byte> image(harness_.region().begin(),
                                       harness_.region().end());
    harness_.log().Abort(*open);
    harness_.Drop();
    harness_.pmem().Reset(image);  // the crash, before the abort
    ASSERT_TRUE(harness_.Open().ok());
    EXPECT_EQ(harness_.opened().scan.verdict, TailVerdict::kTorn);
    EXPECT_EQ(harness_.opened().scan.cut_records, 1u);
    Append(90);
    ASSERT_TRUE(harness_.log().CleanupAll().ok());
  }
  EXPECT_GT(ReadSuperline().ceiling.value, 2 * kCapacity);
}

// P-A3.7: no fence more but where the ceiling is raised, which is two.
TEST_F(LocalOpeningReadsTest, AppendsFenceOnceUnlessTheCeilingIsRaised) {
  uint64_t fences = harness_.pmem().fence_count();
  RingOffset ceiling = ReadSuperline().ceiling;
  EXPECT_EQ(ceiling, RingOffset(kStep));
  int raised = 0;
  for (int i = 0; i < 100; ++i) {
    Append(1);
    const RingOffset now = ReadSuperline().ceiling;
    const RingOffset tail = harness_.log().tail();
    EXPECT_LE(tail, now);
    EXPECT_EQ(harness_.pmem().fence_count() - fences, now == ceiling ? 1 : 3);
    if (now != ceiling) {
      EXPECT_EQ(now, tail + kStep);
      ++raised;
    }
    ceiling = now;
    fences = harness_.pmem().fence_count();
  }
  EXPECT_EQ(raised, 5);  // every 17th record
}

TEST_F(LocalOpeningReadsTest, CeilingIsNeverMoreThanALapAfterTheHead) {
  Append(128);
  EXPECT_EQ(ReadSuperline().ceiling, RingOffset(kCapacity));
  ASSERT_TRUE(harness_.log().CleanupThrough(Lsn(64)).ok());
  Append(1);
  EXPECT_LE(ReadSuperline().ceiling, RingOffset(64 * kLineBytes + kCapacity));
}

TEST_F(LocalOpeningReadsTest, FullRingUpdatesNoSuperline) {
  Append(128);
  const uint64_t fences = harness_.pmem().fence_count();
  const std::string payload(kPayloadBytes, 'x');
  const std::span<const std::byte> part = AsBytes(payload);
  EXPECT_EQ(harness_.log().Append({&part, 1}, 1, Deadline()).status().code(),
            Code::kResourceExhausted);
  EXPECT_EQ(harness_.pmem().fence_count(), fences);
}

// The gap of the index (lsn_index.h) is walked.
TEST_F(LocalOpeningReadsTest, UnreadRecordsAreCleaned) {
  Append(100);
  harness_.PowerCut();
  ASSERT_TRUE(harness_.Open().ok());
  ASSERT_EQ(harness_.opened().start.read_from.lsn, Lsn(100));
  ASSERT_TRUE(harness_.log().Cleanup(Lsn(70)).ok());
  ASSERT_TRUE(harness_.log().CleanupThrough(Lsn(66)).ok());
  EXPECT_EQ(harness_.log().head_lsn(), Lsn(67));
  ASSERT_TRUE(harness_.log().CleanupThrough(Lsn(69)).ok());
  EXPECT_EQ(harness_.log().head_lsn(), Lsn(71));
  ASSERT_TRUE(harness_.log().Close().ok());
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(harness_.Recovered(), SizeIs(30));
}

TEST_F(LocalOpeningReadsTest, OpeningCleansUnreadRecords) {
  Append(100);
  harness_.PowerCut();
  ASSERT_TRUE(harness_.Open(Lsn(40)).ok());
  EXPECT_EQ(harness_.opened().head.lsn, Lsn(41));
  EXPECT_EQ(harness_.opened().start.read_from.lsn, Lsn(100));
  EXPECT_THAT(harness_.Recovered(), SizeIs(60));
  ASSERT_TRUE(harness_.Open(Lsn(100)).ok());
  EXPECT_EQ(harness_.opened().head.lsn, Lsn(101));
  EXPECT_EQ(harness_.opened().start.read_from.lsn, Lsn(101));
}

// What is to be cleaned must be walked over; an error changes no byte (LO1).
TEST_F(LocalOpeningReadsTest, DamagedHeaderAmongWhatIsToBeCleanedIsAnError) {
  Append(100);
  harness_.PowerCut();
  RingOf(harness_.region(), ReadSuperline()).data()[9 * kLineBytes] ^=
      std::byte{1};
  const std::vector<std::byte> before(harness_.region().begin(),
                                      harness_.region().end());
  const absl::Status refused = harness_.Open(Lsn(40));
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_THAT(refused.message(), HasSubstr("LSN 10"));
  EXPECT_TRUE(std::ranges::equal(harness_.region(), before));
  // Behind where the reading begins, no header before it is needed.
  ASSERT_TRUE(harness_.Open(Lsn(100)).ok());
  EXPECT_EQ(harness_.opened().head.lsn, Lsn(101));
}

}  // namespace
}  // namespace alpheus::recovery
