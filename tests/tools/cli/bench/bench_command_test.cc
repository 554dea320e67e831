// SPDX-License-Identifier: Apache-2.0
// Runs the real `alpheus bench`. No figure is judged: only that all are there,
// make sense together, and that nothing of the user's is touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "alpheus/log.h"
#include "nlohmann/json.hpp"
#include "tests/support/fixtures/temp_directory.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::cli {
namespace {

using ::alpheus::demo::Program;
using ::alpheus::demo::ProgramResult;
using ::alpheus::testing::ReadFile;
using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

using Arguments = std::vector<std::string>;

// tools/cli/io/exit_status.h, written out.
constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

class BenchCommandTest : public ::testing::Test {
 protected:
  static ProgramResult RunBench(const Arguments& arguments) {
    Program program;
    program.argv = {ALPHEUS_BINARY, "bench"};
    program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
    absl::StatusOr<ProgramResult> result = demo::RunProgram(program, "");
    if (result.ok()) return *std::move(result);
    ADD_FAILURE() << result.status();
    return {};
  }

  // Runs it as short as it may be, on the smallest region.
  ProgramResult RunShort(const Arguments& arguments) {
    Arguments all = {directory_.path(), "--seconds", "0.05", "--size",
                     "256KiB"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunBench(all);
  }

  json RunForJson(const Arguments& arguments) {
    Arguments all = arguments;
    all.emplace_back("--json");
    const ProgramResult result = RunShort(all);
    EXPECT_EQ(result.end.exit_status, kGood) << result.error;
    return json::parse(result.output, nullptr, false);
  }

  void ExpectRefused(const Arguments& arguments, int exit_status,
                     const std::string& message) {
    const ProgramResult result = RunBench(arguments);
    EXPECT_EQ(result.end.exit_status, exit_status)
        << result.end.ToString() << result.error;
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(Files(), IsEmpty());
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const testing::TempDirectory directory_;
};

TEST_F(BenchCommandTest, TellsEveryFigure) {
  const ProgramResult result = RunShort({});
  EXPECT_EQ(result.end.exit_status, kGood) << result.error;
  EXPECT_EQ(result.error, "");
  for (const char* name : {"throughput", "floor", "per record", "latency",
                           "p50", "p99", "p99.9", "exposure", "cleaning"}) {
    EXPECT_THAT(result.output, HasSubstr(name));
  }
}

// The region holds some thousand records, so that it fills and is cleaned.
TEST_F(BenchCommandTest, FiguresAgreeWithEachOther) {
  const json r = RunForJson({"--threads", "2", "--bytes", "100"});
  ASSERT_TRUE(r.is_object());
  EXPECT_EQ(r["payload_bytes"], 100);
  EXPECT_EQ(r["threads"], 2);
  EXPECT_GT(r["records_per_second"].get<double>(), 0);
  EXPECT_DOUBLE_EQ(r["times_floor"].get<double>(),
                   r["floor_records_per_second"].get<double>() /
                       r["records_per_second"].get<double>());
  const json& latency = r["latency_ns"];
  EXPECT_GT(latency["count"].get<uint64_t>(), 0u);
  EXPECT_LE(latency["smallest"].get<uint64_t>(),
            latency["p50"].get<uint64_t>());
  EXPECT_LE(latency["p50"].get<uint64_t>(), latency["p99"].get<uint64_t>());
  EXPECT_LE(latency["p99"].get<uint64_t>(), latency["p99.9"].get<uint64_t>());
  EXPECT_LE(latency["p99.9"].get<uint64_t>(),
            latency["largest"].get<uint64_t>());
  EXPECT_EQ(r["exposure_records"]["count"], latency["count"]);
}

TEST_F(BenchCommandTest, FloorSaysHowItPersists) {
  EXPECT_THAT(RunForJson({})["floor_way"].get<std::string>(),
              ::testing::AnyOf("stores and msync", "write and fdatasync"));
}

// One thread that forces each record leaves nothing exposed; with frequency F
// it leaves at most F - 1 behind an append.
TEST_F(BenchCommandTest, ExposureKeepsItsBound) {
  EXPECT_EQ(RunForJson({})["exposure_records"]["largest"], 0);
  const json r = RunForJson({"--frequency", "8"});
  EXPECT_GT(r["exposure_records"]["largest"].get<uint64_t>(), 0u);
  EXPECT_LT(r["exposure_records"]["largest"].get<uint64_t>(), 8u);
}

// With fewer records in the ring than the frequency, nothing of them would ever
// be durable by itself.
TEST_F(BenchCommandTest, FrequencyBeyondTheRingStillMakesRoom) {
  const json r = RunForJson({"--frequency", "500000", "--bytes", "4KiB"});
  ASSERT_TRUE(r.is_object());
  EXPECT_GT(r["cleanings"].get<uint64_t>(), 0u);
}

TEST_F(BenchCommandTest, LeavesNothingBehind) {
  RunShort({});
  EXPECT_THAT(Files(), IsEmpty());
}

// An application's log, named by mistake or for its file system, even while it
// is open.
TEST_F(BenchCommandTest, WorksBesideALogAndDoesNotTouchIt) {
  const std::string path = directory_.File("wal");
  ASSERT_TRUE(Log::Format({.path = path, .region_bytes = 256 << 10}).ok());
  // Without the log's own thread, which writes to the file after a while.
  const auto log = Log::Open({.path = path, .idle_force_us = 0});
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("kept").ok());
  const auto before = ReadFile(path);
  const ProgramResult result =
      RunBench({path, "--seconds", "0.05", "--size", "256KiB"});
  EXPECT_EQ(result.end.exit_status, kGood) << result.error;
  EXPECT_TRUE(ReadFile(path) == before);
  EXPECT_THAT(Files(), ::testing::ElementsAre("wal"));
}

TEST_F(BenchCommandTest, BadUsageIsRefused) {
  const std::string& folder = directory_.path();
  const std::vector<Arguments> cases = {{},
                                        {folder, "--threads", "0"},
                                        {folder, "--threads", "257"},
                                        {folder, "--threads", "-1"},
                                        {folder, "--frequency", "0"},
                                        {folder, "--frequency", "524289"},
                                        {folder, "--seconds", "0"},
                                        {folder, "--seconds", "-1"},
                                        {folder, "--seconds", "nan"},
                                        {folder, "--seconds", "inf"},
                                        {folder, "--seconds", "soon"},
                                        {folder, "--bytes", "many"},
                                        {folder, "--bytes", "-1"},
                                        {folder, "--size", "64 MiB"},
                                        {folder, "--size", "1KiB"},
                                        {folder, "--unknown"},
                                        {folder, "one more"}};
  for (const Arguments& arguments : cases) {
    SCOPED_TRACE(arguments.empty() ? "no arguments" : arguments.back());
    ExpectRefused(arguments, kUsage, "");
  }
}

TEST_F(BenchCommandTest, RecordThatFitsNoRegionIsRefused) {
  ExpectRefused({directory_.path(), "--size", "256KiB", "--bytes", "1MiB"},
                kUsage, "--size");
}

// Each thread's floor has a part of its own.
TEST_F(BenchCommandTest, MoreThreadsThanRecordsInTheRegionAreRefused) {
  ExpectRefused({directory_.path(), "--size", "256KiB", "--bytes", "32KiB",
                 "--threads", "32"},
                kUsage, "--size");
}

TEST_F(BenchCommandTest, MissingPathIsNamed) {
  ExpectRefused({directory_.File("nowhere")}, kFailed, "nowhere");
}

TEST_F(BenchCommandTest, DeviceIsNotOverwritten) {
  ExpectRefused({"/dev/null"}, kUsage, "never overwritten");
}

TEST_F(BenchCommandTest, FolderThatCannotBeWrittenIsReported) {
  ExpectRefused({"/proc", "--seconds", "0.05"}, kFailed, "/proc");
}

}  // namespace
}  // namespace alpheus::cli
