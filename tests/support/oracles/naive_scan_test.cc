// SPDX-License-Identifier: Apache-2.0
// The naive reader against what the document says in figures, and against the
// golden region: a second opinion that is wrong would be worth nothing.
#include "tests/support/oracles/naive_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/oracles/naive_format.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// docs/formats/log.md#example.
constexpr naive::LogId kExampleLog = {0xe6984080bab12a02, 0x953aeb70673e29cb};
constexpr naive::EpochEntry kExampleEpoch = {2, 0x77cbc4a133c2d0f6, 7, 1088, 0};

TEST(NaiveFormatTest, CrcHasTheCheckValueOfCastagnoli) {
  EXPECT_EQ(naive::Crc(0xffffffff, AsBytes("123456789")) ^ 0xffffffff,
            0xe3069283);
}

TEST(NaiveFormatTest, SeedAndCrcAreThoseOfTheExample) {
  EXPECT_EQ(naive::RecordSeed(kExampleLog, kExampleEpoch, 7, 1152),
            0x9f92149e5c3af7a4);
  EXPECT_EQ(naive::Crc(0xffffffff, AsBytes(std::string(100, 'w'))), 0x98bb6169);
}

class NaiveScanTest : public ::testing::Test {
 protected:
  naive::Region Read() {
    return naive::ReadRegion(bytes_, naive::Mode::kExact);
  }
  // A replica that is marked as deleted, or removed.
  naive::Region ReadDeleted(const std::string& name) {
    bytes_ = ReadFile(ALPHEUS_GOLDEN_REGIONS + name + ".bin");
    naive::Region region = Read();
    EXPECT_EQ(region.outcome, naive::Outcome::kGood) << region.why;
    EXPECT_EQ(region.superline.node, 1u);
    EXPECT_EQ(region.superline.members.size(), 3u);
    EXPECT_EQ(region.superline.from_members.size(), 3u);
    EXPECT_EQ(region.superline.promised_epoch, 9u);
    EXPECT_THAT(region.bad_copies, IsEmpty());
    return region;
  }
  naive::ScanOutcome Scan() {
    return naive::Scan(naive::TaskOf(Read(), bytes_));
  }
  std::byte& At(uint64_t offset) { return bytes_[offset]; }

  std::vector<std::byte> bytes_ = ReadFile(ALPHEUS_GOLDEN_REGIONS "3.bin");
};

TEST_F(NaiveScanTest, GoldenRegionIsReadAsTheDocumentSays) {
  const naive::Region region = Read();
  ASSERT_EQ(region.outcome, naive::Outcome::kGood) << region.why;
  EXPECT_EQ(region.superline.log_id, kExampleLog);
  EXPECT_EQ(region.superline_seq, 4u);
  EXPECT_EQ(region.superline.region_bytes, 33'920u);
  EXPECT_EQ(region.superline.ring_offset, 32'768u);
  EXPECT_EQ(region.table.back().nonce, kExampleEpoch.nonce);
  EXPECT_TRUE(region.closed_cleanly);
  EXPECT_THAT(region.bad_copies, IsEmpty());
}

TEST_F(NaiveScanTest, GoldenRecordsAreScanned) {
  const naive::ScanOutcome scan = Scan();
  EXPECT_EQ(scan.verdict, "complete");
  EXPECT_EQ(scan.end.lsn, 9u);
  EXPECT_EQ(scan.data_records, 4u);
  EXPECT_EQ(scan.cleaned_records, 1u);
  EXPECT_EQ(scan.aborted_records, 1u);
  EXPECT_THAT(scan.damaged_pads, IsEmpty());
  std::vector<uint64_t> sizes;
  for (const auto& record : scan.records)
    sizes.push_back(record.payload.size());
  EXPECT_THAT(sizes, ElementsAre(528, 0, 7, 0, 100, 12));
}

TEST_F(NaiveScanTest, GoldenReplicasThatAreDeletedAreReadAsTheDocumentSays) {
  EXPECT_EQ(ReadDeleted("4").superline.deletion, 1u);
  EXPECT_EQ(Scan().verdict, "complete");
  EXPECT_EQ(Scan().end.lsn, 6u);
  EXPECT_EQ(Scan().data_records, 4u);
  const naive::Region removed = ReadDeleted("4_removed");
  EXPECT_EQ(removed.superline.deletion, 2u);
  EXPECT_EQ(removed.superline.table_capacity, 1u);
  EXPECT_EQ(removed.superline.ring_capacity, 4'096u);
  EXPECT_THAT(removed.table, IsEmpty());
  EXPECT_EQ(Scan().end.lsn, 1u);
}

TEST_F(NaiveScanTest, DamageIsSeen) {
  At(32'768) ^= std::byte{1};  // the LSN of record 7, which was acknowledged
  const naive::ScanOutcome scan = Scan();
  EXPECT_EQ(scan.verdict, "corrupt");
  EXPECT_EQ(scan.end.lsn, 7u);
  EXPECT_EQ(scan.cut_records, 1u);
  EXPECT_EQ(scan.cut_last_lsn, 8u);
}

TEST_F(NaiveScanTest, DamagedPadIsPassedOver) {
  At(32'768 + 1'088) ^= std::byte{1};
  const naive::ScanOutcome scan = Scan();
  EXPECT_EQ(scan.end.lsn, 9u);
  EXPECT_THAT(scan.damaged_pads, ElementsAre(::testing::Pair(7, 1'088)));
}

TEST_F(NaiveScanTest, BadCopiesAreNamed) {
  At(4'096) ^= std::byte{1};
  At(12'288) ^= std::byte{1};
  EXPECT_THAT(Read().bad_copies,
              ElementsAre("superline copy 1", "watermark line 1"));
}

}  // namespace
}  // namespace alpheus::testing
