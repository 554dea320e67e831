// SPDX-License-Identifier: Apache-2.0
// The golden regions: files of each format version that must open for ever.
// Replicas that are marked as deleted have a test of their own
// (golden_deletion_test.cc).
//
// Each holds every structure of the format: two epochs, data, aborted and
// cleaned records, a PAD behind which a record wrapped, an empty and a largest
// record. The newest was written once by MakeGoldenRegion below (run this
// test with ALPHEUS_WRITE_GOLDEN=1 to write it again, for a new format version
// only), the others by what was there at that time.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/format/superline.h"
#include "tests/golden/golden_region.h"
#include "tests/support/fixtures/log_harness.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using testing::ExpectGoldenBytes;
using testing::GoldenPath;
using testing::LogHarness;
using testing::ReadGoldenRecords;

// The records that the golden region holds, as "lsn epoch state payload".
const std::vector<std::string>& GoldenRecords() {
  static const std::vector<std::string> records = {
      "3 1 durable " + std::string(528, 'L'),
      "4 1 aborted ",
      "5 1 cleaned cleaned",
      "6 1 durable ",
      "7 2 durable " + std::string(100, 'w'),
      "8 2 durable second epoch",
  };
  return records;
}

std::vector<std::byte> MakeGoldenRegion() {
  LogHarness harness({.ring_capacity = 1152, .table_capacity = 102, .seed = 7});
  EXPECT_TRUE(harness.Open().ok());
  harness.Append("first");
  harness.Append(std::string(200, 's'));
  EXPECT_TRUE(harness.log().CleanupThrough(Lsn(2)).ok());
  harness.Append(std::string(528, 'L'));  // the largest
  harness.log().Abort(*harness.log().Reserve(5, Deadline()));
  harness.Append("cleaned");
  harness.Append("");
  EXPECT_TRUE(harness.log().Cleanup(Lsn(5)).ok());
  EXPECT_TRUE(harness.log().Close().ok());
  EXPECT_TRUE(harness.Open().ok());
  harness.Append(std::string(100, 'w'));  // wraps behind a PAD
  harness.Append("second epoch");
  EXPECT_TRUE(harness.log().Close().ok());
  harness.Drop();
  return harness.pmem().CutKeepingNone();
}

class GoldenRegionTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  static uint32_t VersionAt(const std::string& path) {
    const auto reader = LogReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? (*reader)->info().format_version : 0;
  }

  const std::string golden_ = GoldenPath(std::to_string(GetParam()));
};

TEST_P(GoldenRegionTest, ReadsAsWritten) {
  EXPECT_EQ(ReadGoldenRecords(golden_), GoldenRecords());
  EXPECT_EQ(VersionAt(golden_), GetParam());
  const auto reader = LogReader::Open(golden_);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader)->Verify().status.ok());
}

// Then it is of the newest version.
TEST_P(GoldenRegionTest, OpensForWritingAndGoesOn) {
  testing::TempDirectory directory;
  const std::string path = directory.File("golden");
  testing::WriteFile(path, testing::ReadFile(golden_));
  {
    const auto log = Log::Open({.path = path});
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ((*log)->report().epoch, Epoch(3));
    EXPECT_TRUE((*log)->Append("appended").ok());
  }
  std::vector<std::string> expected = GoldenRecords();
  expected.push_back("9 3 durable appended");
  EXPECT_EQ(ReadGoldenRecords(path), expected);
  EXPECT_EQ(VersionAt(path), kFormatVersion);
}

INSTANTIATE_TEST_SUITE_P(Versions, GoldenRegionTest,
                         ::testing::Range(uint32_t{1}, kFormatVersion + 1));

// A change of a single byte that the same calls write is a change of format:
// it needs a new version, or must not be.
TEST(NewestGoldenRegionTest, SameCallsWriteTheSameBytes) {
  ExpectGoldenBytes(GoldenPath(std::to_string(kFormatVersion)),
                    MakeGoldenRegion());
}

}  // namespace
}  // namespace alpheus
