// SPDX-License-Identifier: Apache-2.0
// `alpheus append`: what comes back, in which order, how it is acknowledged,
// and input that can't be appended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "log/base/random.h"
#include "log/format/layout.h"
#include "nlohmann/json.hpp"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Goal: the rules of lines framing: an empty line is a record, the last line
// needs no newline, '\r' stays.
TEST_F(CliTest, LinesComeBackInOrder) {
  Format();
  EXPECT_EQ(RunWell({"append", "--file", region_}, "one\n\ntwo\r\n\n\nlast"),
            "6\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\n\ntwo\r\n\n\nlast\n");
}

TEST_F(CliTest, NoInputAppendsNothing) {
  Format();
  EXPECT_EQ(RunWell({"append", "--file", region_}), "0\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "");
}

// Method: every length up to three lines of the medium, then the 16-byte and
// 64-byte boundaries further up, with all byte values.
TEST_F(CliTest, BinaryRecordsOfAllLengthsComeBack) {
  Random random(1);
  std::vector<std::string> records;
  for (size_t bytes = 0; bytes <= 192; ++bytes) {
    records.push_back(DrawBytes(&random, bytes));
  }
  for (const size_t boundary : {256, 1024, 4096, 16384}) {
    for (const size_t bytes :
         {boundary - 16, boundary - 1, boundary, boundary + 1, boundary + 16}) {
      records.push_back(DrawBytes(&random, bytes));
    }
  }
  Format("1MiB");
  RunWell({"append", "--file", region_, "--framing", "len32"},
          FrameLen32(records));
  EXPECT_TRUE(CatLen32() == FrameLen32(records));
}

// The largest record fills half the ring (protocol P-A1).
TEST_F(CliTest, LargestRecordComesBack) {
  Format();
  const json region = Inspect();
  Random random(2);
  const std::string record = DrawBytes(
      &random, PayloadBytesMax(region["ring_capacity"].get<uint64_t>()));
  RunWell({"append", "--file", region_, "--framing", "len32"},
          FrameLen32({record}));
  EXPECT_TRUE(CatLen32() == FrameLen32({record}));
}

TEST_F(CliTest, AppendsGoOnWhereTheLastOneEnded) {
  Format();
  EXPECT_EQ(RunWell({"append", "--file", region_}, "a\nb\n"), "2\n");
  EXPECT_EQ(RunWell({"append", "--file", region_}, "c\n"), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "a\nb\nc\n");
}

// Records i with the same i mod threads stand in their order; all are there.
void ExpectOrderPerThread(const std::vector<std::string>& records, int count,
                          int threads) {
  EXPECT_EQ(records.size(), static_cast<size_t>(count));
  std::vector<int> next(threads);
  for (int t = 0; t < threads; ++t) next[t] = t;
  for (const std::string& record : records) {
    const int i = std::stoi(record);
    EXPECT_EQ(i, next[i % threads]);
    next[i % threads] = i + threads;
  }
}

TEST_F(CliTest, EachThreadKeepsItsOrder) {
  Format("1MiB");
  constexpr int kCount = 3000;
  for (const int threads : {2, 4, 7}) {
    RunWell({"append", "--file", region_, "--threads", absl::StrCat(threads)},
            JoinLines(CountTo(kCount)));
    ExpectOrderPerThread(SplitLines(RunWell({"cat", "--file", region_})),
                         kCount, threads);
    RunWell({"cleanup", "--file", region_, "--all"});
  }
}

// Records that came together are forced together; one that comes alone waits
// for no other.
TEST_F(CliTest, RecordThatComesAloneIsAcknowledgedAlone) {
  Format("1MiB");
  auto append = demo::ChildProcess::Start(
      AlpheusProgram({"append", "--file", region_, "--ack"}));
  ASSERT_TRUE(append.ok()) << append.status();
  std::string acks;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(write(append->input().get(), "x\n", 2), 2);
    while (std::ranges::count(acks, '\n') <= i) {
      ASSERT_TRUE(demo::ReadSome(append->output().get(), &acks)) << acks;
    }
  }
  append->input().Close();
  EXPECT_EQ(append->Wait().exit_status, kGood);
}

// Each acknowledgement names the LSN under which the record is found; with a
// force frequency they come later, but all come.
TEST_F(CliTest, AcknowledgementsNameRecordsAndLsns) {
  constexpr int kCount = 500;
  for (const std::string frequency : {"1", "7"}) {
    Format("1MiB");
    auto acks = SplitLines(RunWell({"append", "--file", region_, "--threads",
                                    "3", "--ack", "--frequency", frequency},
                                   JoinLines(CountTo(kCount))));
    EXPECT_EQ(acks.back(), absl::StrCat("durable ", kCount));
    acks.pop_back();
    const auto records = SplitLines(RunWell({"cat", "--file", region_}));
    ASSERT_EQ(acks.size(), records.size());
    for (const std::string& ack : acks) {
      const std::vector<std::string> parts = absl::StrSplit(ack, ' ');
      ASSERT_EQ(parts.size(), 3u);
      EXPECT_EQ(records[std::stoul(parts[0]) - 1], parts[1]);
      EXPECT_EQ(std::stoul(parts[1]) % 3, std::stoul(parts[2]));
    }
    std::filesystem::remove(region_);
  }
}

// Everything before the cut is appended and durable; the message gives the
// position at which the input ends.
TEST_F(CliTest, Len32InputThatIsCutOffIsReported) {
  const std::string whole = FrameLen32({"first", "second"});
  const std::string next = FrameLen32({"third"});
  for (size_t cut = 1; cut < next.size(); ++cut) {
    Format();
    const ProgramResult result =
        RunAlpheus({"append", "--file", region_, "--framing", "len32"},
                   whole + next.substr(0, cut));
    EXPECT_EQ(result.end.exit_status, kFailed);
    EXPECT_THAT(result.error,
                HasSubstr(absl::StrCat("ends at byte ", whole.size() + cut)));
    EXPECT_THAT(result.error, HasSubstr("record 2, counted from 0"));
    EXPECT_THAT(result.error,
                HasSubstr("or is not framed as len32. 2 records of this input "
                          "are in the log"));
    EXPECT_EQ(result.output, "2\n");
    EXPECT_EQ(CatLen32(), whole);
    std::filesystem::remove(region_);
  }
}

// A record that can never fit is refused before any of it is stored (lines
// that never end included); what came before stays.
TEST_F(CliTest, RecordLargerThanHalfTheRingIsRefused) {
  const std::string large(64 << 10, 'x');
  Format();
  const ProgramResult lines = RunAlpheus({"append", "--file", region_},
                                         "before\n" + large + "\nafter\n");
  EXPECT_EQ(lines.end.exit_status, kFailed);
  EXPECT_THAT(lines.error, HasSubstr("record 1, counted from 0, at byte 7"));
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "before\n");

  const ProgramResult len32 =
      RunAlpheus({"append", "--file", region_, "--framing", "len32"},
                 FrameLen32({"second"}) + "\xff\xff\xff\xff");
  EXPECT_EQ(len32.end.exit_status, kFailed);
  EXPECT_THAT(len32.error, HasSubstr("4294967295"));
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "before\nsecond\n");
}

// A full ring is an error that names the remedy; nothing that was
// acknowledged is given up for it.
TEST_F(CliTest, FullRingIsReportedAndLosesNothing) {
  Format();
  const std::string line(1000, 'x');
  const ProgramResult full =
      RunAlpheus({"append", "--file", region_, "--ack"},
                 JoinLines(std::vector<std::string>(50, line)));
  EXPECT_EQ(full.end.exit_status, kFailed);
  EXPECT_THAT(full.error, AllOf(HasSubstr("no room"), Not(HasSubstr("reserve")),
                                HasSubstr("`alpheus cleanup --file " + region_ +
                                          " --through LSN` frees space"),
                                HasSubstr(" of the input, counted from 0: ")));
  const auto acks = SplitLines(full.output);
  EXPECT_GT(acks.size(), 10u);
  EXPECT_LT(acks.size(), 50u);
  EXPECT_EQ(SplitLines(RunWell({"cat", "--file", region_})).size(),
            acks.size() - 1);  // the last line is the durable LSN
  RunWell({"cleanup", "--file", region_, "--all"});
  RunWell({"append", "--file", region_}, line);
}

}  // namespace
}  // namespace alpheus::testing
