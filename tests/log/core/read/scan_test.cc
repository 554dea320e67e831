// SPDX-License-Identifier: Apache-2.0
#include "log/core/read/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/core/ring/region_state.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LogHarness;

class ScanTest : public ::testing::Test {
 protected:
  ScanTest() : harness_({.ring_capacity = 640}) {
    EXPECT_TRUE(harness_.Open().ok());
  }

  ScanResult Scan() {
    const auto state = ReadRegionState(harness_.region(), "model");
    EXPECT_TRUE(state.ok()) << state.status();
    return ScanLog(ScanInputOf(harness_.region(), *state));
  }
  // The header of `lsn`, found by walking.
  RecordHeader* HeaderOf(Lsn lsn) {
    const auto state = ReadRegionState(harness_.region(), "model");
    RecordHeader* found = nullptr;
    ScanLog(
        ScanInputOf(harness_.region(), *state),
        [&](const LogPosition&, const RecordView& record) {
          if (record.lsn() != lsn) return;
          found = reinterpret_cast<RecordHeader*>(
              RingOf(harness_.region(), state->superline).At(record.offset));
        });
    EXPECT_NE(found, nullptr) << lsn;
    return found;
  }
  ReservedRecord Reserve(size_t bytes) {
    auto record = harness_.log().Reserve(bytes, Deadline());
    EXPECT_TRUE(record.ok()) << record.status();
    return *record;
  }

  LogHarness harness_;
};

TEST_F(ScanTest, EmptyLogIsCompleteAndEmpty) {
  const ScanResult scan = Scan();
  EXPECT_EQ(scan.verdict, TailVerdict::kComplete);
  EXPECT_EQ(scan.end.lsn, Lsn(1));
}

TEST_F(ScanTest, RecordsAreCountedByKind) {
  harness_.Append("a");
  harness_.Append("bb");
  harness_.log().Abort(Reserve(5));
  harness_.Append("ccc");
  ASSERT_TRUE(harness_.log().Cleanup(Lsn(2)).ok());
  const ScanResult scan = Scan();
  EXPECT_EQ(scan.verdict, TailVerdict::kComplete);
  EXPECT_EQ(scan.end.lsn, Lsn(5));
  EXPECT_EQ(scan.data_records, 2u);
  EXPECT_EQ(scan.cleaned_records, 1u);
  EXPECT_EQ(scan.aborted_records, 1u);
  EXPECT_EQ(scan.payload_bytes, 4u);
}

// P-H9: damage below the evidence is corruption, whichever record it is.
TEST_F(ScanTest, DamagedAcknowledgedRecordIsCorrupt) {
  for (int i = 0; i < 4; ++i) harness_.Append("payload");
  ASSERT_TRUE(harness_.log().Close().ok());
  for (uint64_t lsn = 1; lsn <= 4; ++lsn) {
    RecordHeader* header = HeaderOf(Lsn(lsn));
    header->epoch ^= 1;
    const ScanResult scan = Scan();
    EXPECT_EQ(scan.verdict, TailVerdict::kCorrupt) << lsn;
    EXPECT_EQ(scan.end.lsn, Lsn(lsn));
    EXPECT_FALSE(scan.bad_payload);
    header->epoch ^= 1;
  }
}

TEST_F(ScanTest, DamagedPayloadIsToldFromDamagedHeader) {
  harness_.Append("payload");
  ASSERT_TRUE(harness_.log().Close().ok());
  reinterpret_cast<char*>(HeaderOf(Lsn(1)) + 1)[0] ^= 1;
  const ScanResult scan = Scan();
  EXPECT_EQ(scan.verdict, TailVerdict::kCorrupt);
  EXPECT_TRUE(scan.bad_payload);
  EXPECT_EQ(scan.bad_bytes, kLineBytes);
}

// P-H10: a damaged first record must not look like an empty log.
TEST_F(ScanTest, DamagedFirstRecordIsNotAnEmptyLog) {
  harness_.Append("a");
  harness_.Append("b");
  harness_.Drop();  // no close: the watermark is one batch behind
  HeaderOf(Lsn(1))->lsn = 77;
  EXPECT_EQ(Scan().verdict, TailVerdict::kCorrupt);
}

// The last batch before a crash can't be told from a torn one (P-A3.5).
TEST_F(ScanTest, DamagedLastRecordOfACrashIsTorn) {
  harness_.Append("a");
  harness_.Append("b");
  harness_.Drop();
  HeaderOf(Lsn(2))->durable_lsn ^= 1;
  const ScanResult scan = Scan();
  EXPECT_EQ(scan.verdict, TailVerdict::kTorn);
  EXPECT_EQ(scan.end.lsn, Lsn(2));
  EXPECT_EQ(scan.cut_records, 0u);
}

// The same where only its payload is torn: a header never proves its own
// record (P-A3.5).
TEST_F(ScanTest, TornPayloadOfTheLastRecordIsTorn) {
  harness_.Append("a");
  harness_.Append("b");
  harness_.Drop();
  reinterpret_cast<char*>(HeaderOf(Lsn(2)) + 1)[0] ^= 1;
  const ScanResult scan = Scan();
  EXPECT_EQ(scan.verdict, TailVerdict::kTorn);
  EXPECT_EQ(scan.end.lsn, Lsn(2));
  EXPECT_TRUE(scan.bad_payload);
}

// P-L1, RC1 (record_cursor.h): the checksum holds, the length can't be.
TEST_F(ScanTest, LengthThatLeavesTheRingIsNoRecord) {
  harness_.Append("a");
  const auto state = ReadRegionState(harness_.region(), "model");
  const Ring ring = RingOf(harness_.region(), state->superline);
  const uint64_t seed = state->table.KeyOf(&state->table.entries().front())
                            .Seed(Lsn(2), RingOffset(kLineBytes));
  for (const uint32_t bytes : {640u, 0xffffffffu}) {
    RecordHeader header{};
    header.lsn = 2;
    header.epoch = 1;
    header.payload_bytes = bytes;
    header.magic = kRecordMagic;
    header.type = static_cast<uint8_t>(RecordType::kData);
    header.header_crc = HeaderChecksum(seed, header);
    std::memcpy(ring.At(RingOffset(kLineBytes)), &header, sizeof(header));
    ASSERT_TRUE(
        HeaderIsValid(seed, LoadHeader(ring.At(RingOffset(kLineBytes)))));
    const ScanResult scan = Scan();
    EXPECT_EQ(scan.end.lsn, Lsn(2));
    ASSERT_FALSE(scan.bad_payload) << bytes;
  }
}

// P-H9 (ii): with both watermark lines naming an older LSN, the durable LSN in
// a later header is the proof.
TEST_F(ScanTest, LaterHeaderProvesAnEarlierRecord) {
  for (int i = 0; i < 4; ++i) harness_.Append("payload");
  harness_.Drop();
  const auto state = ReadRegionState(harness_.region(), "model");
  for (int line = 0; line < 2; ++line) {
    const WatermarkFormat old =
        EncodeWatermark(state->superline.log_id, line, {Epoch(1), Lsn(0)});
    std::memcpy(WatermarkLine(harness_.region(), line), &old, sizeof(old));
  }
  HeaderOf(Lsn(2))->epoch ^= 1;
  const ScanResult scan = Scan();
  EXPECT_EQ(scan.verdict, TailVerdict::kCorrupt);
  EXPECT_EQ(scan.proven_lsn, Lsn(3));
}

// A hole in completion order is an ordinary crash, not damage.
TEST_F(ScanTest, CompletedRecordBehindAnOpenOneIsCut) {
  harness_.Append("a");
  const ReservedRecord open = Reserve(1);
  ReservedRecord later = Reserve(1);
  ASSERT_TRUE(harness_.log().Complete(later).ok());
  const ScanResult scan = Scan();
  EXPECT_EQ(scan.verdict, TailVerdict::kTorn);
  EXPECT_EQ(scan.end.lsn, Lsn(2));
  EXPECT_EQ(scan.cut_records, 1u);
  EXPECT_EQ(scan.cut_last_lsn, Lsn(3));
  harness_.log().Abort(open);
}

// P-L5, RC2 (record_cursor.h): in every phase of the ring, a PAD that can't be
// read changes nothing but its own count.
TEST_F(ScanTest, DamagedPadChangesNothing) {
  int pads = 0;
  for (int i = 0; i < 40; ++i) {
    const Lsn lsn = harness_.Append(std::string(60 + i % 3 * 50, 'x'));
    if (lsn == Lsn(1)) continue;
    ASSERT_TRUE(harness_.log().CleanupThrough(lsn - 1).ok());
    const auto state = ReadRegionState(harness_.region(), "model");
    const Ring ring = RingOf(harness_.region(), state->superline);
    const ScanResult before = Scan();
    EXPECT_THAT(before.damaged_pads, IsEmpty());
    // Break every PAD header in the ring.
    std::vector<std::byte> saved(ring.At(RingOffset(0)),
                                 ring.At(RingOffset(0)) + ring.capacity());
    for (uint64_t at = 0; at < ring.capacity(); at += kLineBytes) {
      auto* header = reinterpret_cast<RecordHeader*>(ring.At(RingOffset(at)));
      if (header->magic == kRecordMagic &&
          header->type == static_cast<uint8_t>(RecordType::kPad)) {
        header->header_crc ^= 1;
      }
    }
    const ScanResult after = Scan();
    EXPECT_EQ(after.end, before.end);
    EXPECT_EQ(after.verdict, before.verdict);
    EXPECT_EQ(after.data_records, before.data_records);
    pads += static_cast<int>(after.damaged_pads.size());
    std::memcpy(ring.At(RingOffset(0)), saved.data(), saved.size());
  }
  EXPECT_GT(pads, 0) << "the test met no PAD";
}

// REC3 (record.h), P-L8: neither another lap's cleaned word nor one flipped
// bit.
TEST_F(ScanTest, CleanedWordOfAnotherPlaceMeansNothing) {
  harness_.Append("a");
  harness_.Append("b");
  ASSERT_TRUE(harness_.log().Cleanup(Lsn(2)).ok());
  HeaderOf(Lsn(1))->cleaned = HeaderOf(Lsn(2))->cleaned;
  EXPECT_EQ(Scan().cleaned_records, 1u);
  HeaderOf(Lsn(2))->cleaned ^= 1;
  EXPECT_EQ(Scan().cleaned_records, 0u);
}

// P-L8: a cleaned record in the middle hides nothing behind it.
TEST_F(ScanTest, CleanedRecordInTheMiddleIsPassedOver) {
  harness_.Append("a");
  harness_.Append("b");
  harness_.Append("c");
  ASSERT_TRUE(harness_.log().Cleanup(Lsn(2)).ok());
  EXPECT_THAT(testing::LivePayloads(harness_.region()), ElementsAre("a", "c"));
}

TEST_F(ScanTest, SalvageFindsTheNextRecordBehindDamage) {
  for (int i = 0; i < 4; ++i) harness_.Append("payload");
  ASSERT_TRUE(harness_.log().Close().ok());
  RecordHeader* third = HeaderOf(Lsn(3));
  HeaderOf(Lsn(2))->epoch ^= 1;
  const ScanResult scan = Scan();
  const auto state = ReadRegionState(harness_.region(), "model");
  const ScanInput input = ScanInputOf(harness_.region(), *state);
  const LogPosition behind = FindRecordAfter(input, scan.end);
  EXPECT_EQ(behind.lsn, Lsn(3));
  EXPECT_EQ(input.ring.At(behind.offset), reinterpret_cast<std::byte*>(third));
  EXPECT_EQ(FindRecordAfter(input, {Lsn(4), scan.end.offset}).lsn, Lsn(0));
}

}  // namespace
}  // namespace alpheus
