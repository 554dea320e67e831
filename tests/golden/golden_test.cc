// SPDX-License-Identifier: Apache-2.0
// The golden region: a file of format version 1 that must open for ever.
//
// It holds every structure of the format: two epochs, data, aborted and
// cleaned records, a PAD behind which a record wrapped, an empty and a largest
// record. It was written once by WriteGoldenRegion below (run this test with
// ALPHEUS_WRITE_GOLDEN=1 to write it anew, for a new format version only).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "tests/testing/log_harness.h"
#include "tests/testing/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using testing::LogHarness;

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

std::vector<std::string> ReadRecords(const std::string& path) {
  std::vector<std::string> records;
  const auto reader = LogReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)
                  ->ForEach([&](const ReaderRecord& record) {
                    std::string line = std::to_string(record.lsn.value) + " " +
                                       std::to_string(record.epoch.value) +
                                       " " + RecordStateName(record.state) +
                                       " ";
                    line += AsText(record.payload);
                    records.push_back(std::move(line));
                    return absl::OkStatus();
                  })
                  .ok());
  return records;
}

TEST(GoldenRegionTest, ReadsAsWritten) {
  if (std::getenv("ALPHEUS_WRITE_GOLDEN") != nullptr) {
    testing::WriteFile(ALPHEUS_GOLDEN_REGION, MakeGoldenRegion());
  }
  EXPECT_EQ(ReadRecords(ALPHEUS_GOLDEN_REGION), GoldenRecords());
  const auto reader = LogReader::Open(ALPHEUS_GOLDEN_REGION);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader)->Verify().status.ok());
}

TEST(GoldenRegionTest, OpensForWritingAndGoesOn) {
  testing::TempDirectory directory;
  const std::string path = directory.File("golden");
  testing::WriteFile(path, testing::ReadFile(ALPHEUS_GOLDEN_REGION));
  {
    const auto log = Log::Open({.path = path});
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ((*log)->report().epoch, Epoch(3));
    EXPECT_TRUE((*log)->Append("appended").ok());
  }
  std::vector<std::string> expected = GoldenRecords();
  expected.push_back("9 3 durable appended");
  EXPECT_EQ(ReadRecords(path), expected);
}

// A change of a single byte that the same calls write is a change of format:
// it needs a new version, or must not be.
TEST(GoldenRegionTest, SameCallsWriteTheSameBytes) {
  EXPECT_TRUE(MakeGoldenRegion() == testing::ReadFile(ALPHEUS_GOLDEN_REGION));
}

}  // namespace
}  // namespace alpheus
