// SPDX-License-Identifier: Apache-2.0
// `alpheus salvage`.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/tools/cli/cli_fixture.h"

namespace alpheus::testing {
namespace {

class SalvageTest : public CliTest {
 protected:
  std::string CatSalvaged() {
    return RunWell({"cat", "--file", out_, "--framing", "len32"});
  }

  const std::string out_ = File("salvaged");
};

TEST_F(SalvageTest, UndamagedRegionIsCopiedWhole) {
  const auto records = MakeShapes();
  FormatWith(records);
  EXPECT_EQ(RunWell({"salvage", region_, out_}),
            absl::StrCat(records.size(), "\n"));
  EXPECT_TRUE(CatSalvaged() == FrameLen32(records));
  EXPECT_EQ(std::filesystem::file_size(out_),
            std::filesystem::file_size(region_));
  RunWell({"verify", "--file", out_});
}

// Method: each record in turn, damaged in its header and in its payload.
TEST_F(SalvageTest, AllButTheDamagedRecordAreSaved) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto offsets = FindOffsets();
  const auto whole = ReadFile(region_);
  for (size_t i = 0; i < records.size(); ++i) {
    for (const uint64_t place : {uint64_t{0}, kRecordHeaderBytes}) {
      if (place == kRecordHeaderBytes && records[i].empty()) continue;
      SCOPED_TRACE(absl::StrCat("LSN ", i + 1, ", byte ", place));
      FlipBit(offsets[i] + place, 1);
      ExpectRefused({"salvage", region_, out_}, kDataLoss,
                    absl::StrCat("lost: LSN ", i + 1));
      auto rest = records;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
      EXPECT_TRUE(CatSalvaged() == FrameLen32(rest));
      std::filesystem::remove(out_);
      WriteFile(region_, whole);
    }
  }
}

// Where both watermarks are bad, or the file is cut short, nothing says where
// the log ended: what is there is saved, and the status tells of the doubt.
TEST_F(SalvageTest, RegionWithoutKnownEndIsSavedWithDoubt) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto whole = ReadFile(region_);
  FlipBit(kWatermarkOffset, 0);
  FlipBit(kWatermarkOffset + kPageBytes, 0);
  ExpectRefused({"salvage", region_, out_}, kDataLoss, "may be missing");
  EXPECT_TRUE(CatSalvaged() == FrameLen32(records));
  std::filesystem::remove(out_);

  WriteFile(region_, {whole.begin(), whole.end() - 1});
  ExpectRefused({"salvage", region_, out_}, kDataLoss, "truncated");
  EXPECT_TRUE(CatSalvaged() == FrameLen32(records));
  EXPECT_EQ(std::filesystem::file_size(out_), whole.size());
}

// Method: the file ends in the middle of record 6.
TEST_F(SalvageTest, RecordsBeforeTheCutAreSaved) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto whole = ReadFile(region_);
  const auto cut = static_cast<ptrdiff_t>(FindOffsets()[5] + 100);
  WriteFile(region_, {whole.begin(), whole.begin() + cut});
  ExpectRefused({"salvage", region_, out_}, kDataLoss, "lost: LSN 6");
  EXPECT_TRUE(CatSalvaged() ==
              FrameLen32({records.begin(), records.begin() + 5}));
}

TEST_F(SalvageTest, RegionWithoutSuperlineOrEpochTableIsRefused) {
  FormatWith({"record"});
  const auto whole = ReadFile(region_);
  for (const size_t bytes :
       {size_t{100}, size_t{5000}, size_t{kTableOffset + 10}}) {
    WriteFile(region_,
              {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes)});
    ExpectRefused({"salvage", region_, out_}, kDataLoss);
    EXPECT_FALSE(std::filesystem::exists(out_)) << bytes;
  }
}

TEST_F(SalvageTest, CleanedRecordsAreLeftOut) {
  FormatWith({"one", "two", "three"});
  RunWell({"cleanup", "--file", region_, "--lsn", "2"});
  RunWell({"salvage", region_, out_});
  EXPECT_TRUE(CatSalvaged() == FrameLen32({"one", "three"}));
}

// A ring that is full to the brim and wraps fits the new one, too.
TEST_F(SalvageTest, FullRingFits) {
  Format();
  const std::string line(500, 'x');
  const std::string many = JoinLines(std::vector<std::string>(100, line));
  RunWell({"append", "--file", region_},
          JoinLines(std::vector<std::string>(20, line)));
  RunWell({"cleanup", "--file", region_, "--all"});
  EXPECT_EQ(RunAlpheus({"append", "--file", region_}, many).end.exit_status,
            kFailed);
  RunWell({"salvage", region_, out_});
  EXPECT_EQ(RunWell({"cat", "--file", out_}),
            RunWell({"cat", "--file", region_}));
}

TEST_F(SalvageTest, SameFileIsRefusedUnderAnyName) {
  FormatWith({"record"});
  std::filesystem::create_symlink(region_, File("symlink"));
  std::filesystem::create_hard_link(region_, File("hardlink"));
  const std::string directory = directory_.path();
  const std::string roundabout =
      absl::StrCat("..", directory.substr(directory.rfind('/')), "/region");
  for (const std::string& name : {std::string("region"), std::string("symlink"),
                                  std::string("hardlink"), roundabout}) {
    ExpectRefused({"salvage", region_, File(name)}, kUsage, "in place");
  }
}

TEST_F(SalvageTest, ExistingOutputIsRefused) {
  FormatWith({"record"});
  WriteFile(out_, std::vector<std::byte>(10));
  ExpectRefused({"salvage", region_, out_}, kFailed, "exists");
  EXPECT_EQ(std::filesystem::file_size(out_), 10u);
  std::filesystem::create_symlink(File("nowhere"), File("dangling"));
  ExpectRefused({"salvage", region_, File("dangling")}, kFailed, "exists");
  EXPECT_FALSE(std::filesystem::exists(File("nowhere")));
}

}  // namespace
}  // namespace alpheus::testing
