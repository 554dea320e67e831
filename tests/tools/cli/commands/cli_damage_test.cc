// SPDX-License-Identifier: Apache-2.0
// Damaged regions: what every command but salvage says of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "log/base/random.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/format/superline.h"
#include "nlohmann/json.hpp"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CliTest, FilesThatAreNoRegionAreRefused) {
  Random random(3);
  std::vector<std::byte> noise(256 << 10);
  for (std::byte& b : noise) b = static_cast<std::byte>(random.Next());
  for (const auto& bytes :
       {std::vector<std::byte>(256 << 10, std::byte{0}),
        std::vector<std::byte>(256 << 10, std::byte{0xff}), noise,
        std::vector<std::byte>(), std::vector<std::byte>(1),
        std::vector<std::byte>(4096, std::byte{0x55})}) {
    WriteFile(region_, bytes);
    ExpectRefusedByAll(kDataLoss, region_);
  }
}

TEST_F(CliTest, TruncatedRegionIsRefused) {
  FormatWith({"one", "two"});
  const auto whole = ReadFile(region_);
  for (const size_t bytes : {whole.size() - 1, whole.size() - 4096,
                             whole.size() / 2, size_t{8192}, size_t{100}}) {
    WriteFile(region_,
              {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes)});
    ExpectRefusedByOpening(kDataLoss, "truncated");
  }
}

// Both superline copies as a later version would write them: their checksums
// hold, so this is no damage.
void RaiseFormatVersion(std::vector<std::byte>* region) {
  const CellPlace place = SuperlinePlace(*region);
  for (int copy = 0; copy < 2; ++copy) {
    CellCopy found = ReadCellCopy(place, copy);
    ASSERT_TRUE(found.valid);
    SuperlineFormat superline;
    std::memcpy(&superline, found.content.data(), sizeof(superline));
    superline.format_version = kDeletionFormatVersion + 1;
    std::memcpy(found.content.data(), &superline, sizeof(superline));
    const auto bytes = EncodeCellCopy(place, copy, found.seq, found.content);
    std::copy(bytes.begin(), bytes.end(), place.copies[copy]);
  }
}

TEST_F(CliTest, LaterFormatVersionIsRefusedByName) {
  FormatWith({"record"});
  auto bytes = ReadFile(region_);
  ASSERT_NO_FATAL_FAILURE(RaiseFormatVersion(&bytes));
  WriteFile(region_, bytes);
  ExpectRefusedByAll(kFailed,
                     absl::StrCat("version ", kDeletionFormatVersion + 1));
}

// In a log that was closed cleanly every bit of every record counts: reading
// stops right before the damage, says 3, and opening is refused (P-C6).
TEST_F(CliTest, FlippedBitInAnyRecordIsDataLoss) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto offsets = FindOffsets();
  const auto whole = ReadFile(region_);
  Random random(5);
  for (size_t i = 0; i < records.size(); ++i) {
    std::vector<uint64_t> places = {0, 7, 8, 16, 24, 28, 30, 31, 32, 36, 39};
    for (size_t at = 0; at < records[i].size(); at += 13) {
      places.push_back(kRecordHeaderBytes + at);
    }
    if (!records[i].empty()) {
      places.push_back(kRecordHeaderBytes + records[i].size() - 1);
    }
    const std::string before = FrameLen32(
        {records.begin(), records.begin() + static_cast<ptrdiff_t>(i)});
    // Each place by `cat`; the other commands read by the same code, and have
    // one place, or all of them if there is time.
    const bool is_deep = std::getenv("ALPHEUS_ALL_SEEDS") != nullptr;
    const uint64_t for_all = places[random.Below(places.size())];
    for (const uint64_t place : places) {
      FlipBit(offsets[i] + place, static_cast<int>(random.Below(8)));
      SCOPED_TRACE(absl::StrCat("LSN ", i + 1, ", byte ", place));
      const ProgramResult cat =
          RunAlpheus({"cat", "--file", region_, "--framing", "len32"});
      EXPECT_EQ(cat.end.exit_status, kDataLoss);
      EXPECT_TRUE(cat.output == before);
      EXPECT_THAT(cat.error, HasSubstr(absl::StrCat("LSN ", i + 1, " ")));
      if (is_deep || place == for_all) {
        ExpectRefused({"verify", "--file", region_}, kDataLoss);
        ExpectRefused({"append", "--file", region_}, kDataLoss, "", "x\n");
      }
      WriteFile(region_, whole);
    }
  }
}

// The word that marks a record as cleaned lies outside the header's checksum:
// a flipped bit in it is no mark (REC3, record.h).
TEST_F(CliTest, FlippedBitInTheCleanedWordCleansNothing) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto offsets = FindOffsets();
  for (int bit = 0; bit < 64; bit += 9) {
    FlipBit(offsets[2] + offsetof(RecordHeader, cleaned) + bit / 8, bit % 8);
    EXPECT_TRUE(CatLen32() == FrameLen32(records));
  }
}

// One copy of superline, epoch table or watermark: all records are read, but
// after a clean close it is damage all the same; opening for writing heals it.
TEST_F(CliTest, DamagedCopyIsReportedAndHealedByOpening) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto whole = ReadFile(region_);
  const json region = Inspect();
  const uint64_t second_table =
      (kTableOffset + region["ring_offset"].get<uint64_t>()) / 2;
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{30}, uint64_t{200}, kSuperlineCopyBytes + 8,
        kWatermarkOffset + 9, kWatermarkOffset + 4096 + 60, kTableOffset + 24,
        second_table + 30}) {
    SCOPED_TRACE(offset);
    FlipBit(offset, 3);
    const ProgramResult cat =
        RunAlpheus({"cat", "--file", region_, "--framing", "len32"});
    EXPECT_EQ(cat.end.exit_status, kDataLoss);
    EXPECT_TRUE(cat.output == FrameLen32(records));
    ExpectRefused({"verify", "--file", region_}, kDataLoss);
    const ProgramResult opened = RunAlpheus({"append", "--file", region_});
    EXPECT_EQ(opened.end.exit_status, kGood) << opened.error;
    EXPECT_NE(opened.error, "") << "a repair must be told";
    RunWell({"verify", "--file", region_});
    EXPECT_TRUE(CatLen32() == FrameLen32(records));
    WriteFile(region_, whole);
  }
}

TEST_F(CliTest, BothCopiesDamagedAreRefused) {
  FormatWith({"record"});
  const auto whole = ReadFile(region_);
  const json region = Inspect();
  const uint64_t second_table =
      (kTableOffset + region["ring_offset"].get<uint64_t>()) / 2;
  for (const auto& [first, second] : std::vector<std::pair<uint64_t, uint64_t>>{
           {30, kSuperlineCopyBytes + 30},
           {kWatermarkOffset, kWatermarkOffset + 4096},
           {kTableOffset + 30, second_table + 30}}) {
    FlipBit(first, 0);
    FlipBit(second, 0);
    ExpectRefusedByOpening(kDataLoss, region_);
    WriteFile(region_, whole);
  }
}

TEST_F(CliTest, VerifyGivesJsonForWhatItCannotRead) {
  WriteFile(region_, std::vector<std::byte>(256 << 10));
  const ProgramResult result =
      RunAlpheus({"verify", "--file", region_, "--json"});
  EXPECT_EQ(result.end.exit_status, kDataLoss);
  const auto objects = ParseLines(result.output);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0]["verdict"], "unreadable");
  EXPECT_EQ(objects[0]["status"], "DATA_LOSS");
}

TEST_F(CliTest, InspectShowsADamagedLogAndSaysDataLoss) {
  FormatWith({"one", "two"});
  FlipBit(FindOffsets()[0] + kRecordHeaderBytes, 0);
  const ProgramResult result =
      RunAlpheus({"inspect", "--file", region_, "--json"});
  EXPECT_EQ(result.end.exit_status, kDataLoss);
  const auto objects = ParseLines(result.output);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0]["records"]["verdict"], "corrupt");
  EXPECT_EQ(objects[0]["log_epoch"], 1);
}

// Only an opening cuts: what is behind damage is there, and salvage takes it.
TEST_F(CliTest, RecordsBehindDamageAreNotSaidToBeCut) {
  FormatWith({"one", "two", "three"});
  FlipBit(FindOffsets()[0] + kRecordHeaderBytes, 0);
  const ProgramResult verified = RunAlpheus({"verify", "--file", region_});
  EXPECT_EQ(verified.end.exit_status, kDataLoss);
  EXPECT_THAT(verified.output, HasSubstr("2 after the damage, not counted"));
  const ProgramResult inspected = RunAlpheus({"inspect", "--file", region_});
  EXPECT_THAT(inspected.output, HasSubstr("2 after the damage, not counted"));
  for (const ProgramResult& result : {verified, inspected}) {
    EXPECT_THAT(result.output, Not(HasSubstr("cut")));
  }
}

TEST_F(CliTest, RegionSaysWhetherItWasClosedCleanly) {
  FormatWith({"one"});
  EXPECT_THAT(RunWell({"inspect", "--file", region_}),
              HasSubstr("closed cleanly    yes\n"));
  const auto log = Log::Open({.path = region_});
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(RunWell({"inspect", "--file", region_}),
              HasSubstr("closed cleanly    no\n"));
}

}  // namespace
}  // namespace alpheus::testing
