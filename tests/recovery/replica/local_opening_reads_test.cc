// SPDX-License-Identifier: Apache-2.0
// The part of a large log that an opening reads: from the proven place to the
// ceiling (P-A3.7).
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

  // Spoils the payload of the record at this line of the ring.
  void SpoilPayload(uint64_t line) { SpoilByte(line, kRecordHeaderBytes); }
  void SpoilHeader(uint64_t line) { SpoilByte(line, 0); }
  void SpoilByte(uint64_t line, uint64_t byte) {
    std::byte* const place =
        RingOf(harness_.region(), ReadSuperline()).data() + line * kLineBytes;
    place[byte] ^= std::byte{1};
  }

  void WriteMark(int line, const Watermark& mark) {
    const WatermarkFormat format =
        EncodeWatermark(ReadSuperline().log_id, line, mark);
    harness_.pmem().CopyLinesNt(WatermarkLine(harness_.region(), line), &format,
                                1);
    ASSERT_TRUE(harness_.pmem().Fence());
  }

  LogHarness harness_;
};

// The fence of the last record carried a watermark of the one before.
TEST_F(LocalOpeningReadsTest, ScanBeginsWithTheRecordOfTheWatermark) {
  Append(20);
  harness_.PowerCut();
  ASSERT_TRUE(harness_.Open().ok());
  const OpenedEpoch& opened = harness_.opened();
  EXPECT_EQ(opened.start.read_from.lsn, Lsn(19));
  EXPECT_EQ(opened.start.read_from.offset, RingOffset(18 * kLineBytes));
  EXPECT_EQ(opened.scan.data_records, 2u);
  EXPECT_EQ(opened.head.lsn, Lsn(1));
  EXPECT_EQ(opened.start.end.lsn, Lsn(21));
  EXPECT_THAT(harness_.Recovered(), SizeIs(20));
}

// Then the opening's own watermark names the last record, and so does that of a
// close after which nothing was appended.
TEST_F(LocalOpeningReadsTest, ScanBeginsWithTheLastRecordOfTheOpening) {
  Append(20);
  for (const bool closes : {false, false, true, true}) {
    ASSERT_TRUE(harness_.Open().ok());
    if (closes) {
      ASSERT_TRUE(harness_.log().Close().ok());
    }
    harness_.Drop();
    ASSERT_TRUE(harness_.Open().ok());
    EXPECT_EQ(harness_.opened().start.read_from.lsn, Lsn(20));
    EXPECT_EQ(harness_.opened().scan.data_records, 1u);
  }
}

// The PAD before the record is read with it.
TEST_F(LocalOpeningReadsTest, PlaceIsThatOfThePad) {
  Append(127);
  ASSERT_TRUE(harness_.log().CleanupThrough(Lsn(100)).ok());
  harness_.Append(std::string(2 * kPayloadBytes, 'x'));
  Append(1);
  harness_.PowerCut();
  ASSERT_TRUE(harness_.Open().ok());
  const LogPosition& from = harness_.opened().start.read_from;
  EXPECT_EQ(from.lsn, Lsn(128));
  EXPECT_EQ(from.offset, RingOffset(127 * kLineBytes));
  EXPECT_EQ(harness_.opened().scan.data_records, 2u);
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
      {.ring_capacity = kCapacity, .read_whole_bytes_max = 18 * kLineBytes});
  ASSERT_TRUE(harness.Open().ok());
  for (int i = 0; i < 20; ++i) harness.Append(std::string(kPayloadBytes, 'x'));
  harness.PowerCut();
  ASSERT_TRUE(harness.Open().ok());
  EXPECT_EQ(harness.opened().start.read_from.lsn, Lsn(1));
  EXPECT_EQ(harness.opened().scan.data_records, 20u);
  for (int i = 0; i < 2; ++i) harness.Append(std::string(kPayloadBytes, 'x'));
  harness.PowerCut();
  ASSERT_TRUE(harness.Open().ok());
  EXPECT_EQ(harness.opened().start.read_from.lsn, Lsn(21));
}

// LO4: found when it is read, and the log is not shorter.
TEST_F(LocalOpeningReadsTest, DamageBeforeTheWatermarkShortensNothing) {
  Append(20);
  harness_.PowerCut();
  SpoilPayload(4);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().start.end.lsn, Lsn(21));
  EXPECT_EQ(harness_.opened().scan.verdict, TailVerdict::kComplete);
  const ScanResult whole = ScanLog(ScanInputOf(harness_.region(), State()));
  EXPECT_EQ(whole.verdict, TailVerdict::kCorrupt);
  EXPECT_EQ(whole.end.lsn, Lsn(5));
}

// It stops the head, and appends only once the ring is full.
TEST_F(LocalOpeningReadsTest, DamageAfterTheHeadStopsNoAppend) {
  Append(20);
  harness_.PowerCut();
  SpoilHeader(1);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.log().Cleanup(Lsn(1)).code(), Code::kDataLoss);
  Append(108);
  const std::string payload(kPayloadBytes, 'x');
  const std::span<const std::byte> part = AsBytes(payload);
  const absl::Status full =
      harness_.log().Append({&part, 1}, 1, Deadline()).status();
  EXPECT_EQ(full.code(), Code::kDataLoss);
  EXPECT_THAT(full.message(), HasSubstr("LSN 2"));
}

// The head stands before it. Everything is durable, and nothing is cleaned that
// the application still needs.
TEST_F(LocalOpeningReadsTest, DamageAfterTheHeadKeepsNoLogOpen) {
  Append(20);
  harness_.PowerCut();
  SpoilHeader(1);
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.log().Cleanup(Lsn(1)).code(), Code::kDataLoss);
  const absl::Status closed = harness_.log().Close();
  EXPECT_TRUE(closed.ok()) << closed;
  harness_.Drop();
  EXPECT_TRUE(State().closed_cleanly);
  EXPECT_EQ(State().head().lsn, Lsn(1));
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().start.end.lsn, Lsn(21));
}

// P-L14: a bad page has the last proven record and all after it.
TEST_F(LocalOpeningReadsTest, FaultOverTheWatermarksRecordIsRefused) {
  Append(20);
  harness_.PowerCut();
  for (const uint64_t line : {18, 19}) SpoilPayload(line);
  const absl::Status refused = harness_.Open();
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_THAT(refused.message(), HasSubstr("LSN 19"));
}

// SC5, the other way round the ring: it is full, and the page has the log's end
// and the head.
TEST_F(LocalOpeningReadsTest, FaultFromTheEndToTheHeadIsRefused) {
  Append(20);
  ASSERT_TRUE(harness_.log().CleanupAll().ok());
  Append(128);
  harness_.PowerCut();
  ASSERT_EQ(State().head().offset, RingOffset(20 * kLineBytes));
  ASSERT_EQ(State().proven_place().lsn, Lsn(147));
  SpoilPayload(19);
  SpoilHeader(20);
  const absl::Status refused = harness_.Open();
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_THAT(refused.message(), HasSubstr("LSN 21"));
}

// A crash between superline and watermarks leaves it so.
TEST_F(LocalOpeningReadsTest, EpochWithoutAWatermarkIsReadFromTheHeadOn) {
  Append(20);
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Drop();
  for (const int line : {0, 1}) WriteMark(line, {Epoch(1), Lsn(19)});
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().start.read_from.lsn, Lsn(1));
  EXPECT_EQ(harness_.opened().scan.proven_lsn, Lsn(20));
}

// As a log of format version 2 has them.
TEST_F(LocalOpeningReadsTest, LinesWithoutAPlaceAreReadFromTheHeadOn) {
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
      {Epoch(1), Lsn(20), {ceiling, 0}},
      {Epoch(1), Lsn(20), {RingOffset(19 * kLineBytes + 8), 0}},
      {Epoch(1), Lsn(20), {RingOffset(18 * kLineBytes), 0}},
      {Epoch(1), Lsn(20), {RingOffset(0), 0}},
      {Epoch(1), Lsn(1), {RingOffset(kLineBytes), 0}},
      {Epoch(2), Lsn(20), {RingOffset(19 * kLineBytes), 0}}};
  for (const Watermark& mark : marks) {
    for (const int line : {0, 1}) WriteMark(line, mark);
    EXPECT_EQ(State().proven_place(), State().head())
        << mark.epoch << " " << mark.lsn << " " << mark.place.offset;
  }
  for (const int line : {0, 1}) {
    WriteMark(line, {Epoch(1), Lsn(20), {RingOffset(19 * kLineBytes), 0}});
  }
  EXPECT_EQ(State().proven_place().lsn, Lsn(20));
}

// Later records are looked for in the few lines below the ceiling only. One
// that a thread completed after an open one lies there, in any lap.
TEST_F(LocalOpeningReadsTest, RecordsAfterAHoleAreFoundBelowTheCeiling) {
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

// P-A3.7: raising the ceiling takes two fences more, all else none.
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
  ASSERT_EQ(harness_.opened().start.read_from.lsn, Lsn(99));
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
  EXPECT_EQ(harness_.opened().start.read_from.lsn, Lsn(99));
  EXPECT_THAT(harness_.Recovered(), SizeIs(60));
  ASSERT_TRUE(harness_.Open(Lsn(100)).ok());
  EXPECT_EQ(harness_.opened().head.lsn, Lsn(101));
  EXPECT_EQ(harness_.opened().start.read_from.lsn, Lsn(101));
}

// Records to be cleaned must be walked over; an error changes no byte (LO1).
TEST_F(LocalOpeningReadsTest, DamagedHeaderAmongWhatIsToBeCleanedIsAnError) {
  Append(100);
  harness_.PowerCut();
  SpoilHeader(9);
  const std::vector<std::byte> before(harness_.region().begin(),
                                      harness_.region().end());
  const absl::Status refused = harness_.Open(Lsn(40));
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_THAT(refused.message(), HasSubstr("LSN 10"));
  EXPECT_TRUE(std::ranges::equal(harness_.region(), before));
  // To clean all of it only headers from the place on are needed.
  ASSERT_TRUE(harness_.Open(Lsn(100)).ok());
  EXPECT_EQ(harness_.opened().head.lsn, Lsn(101));
}

}  // namespace
}  // namespace alpheus::recovery
