// SPDX-License-Identifier: Apache-2.0
// Standard streams that are closed, full or left, and full file systems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tests/tools/cli/small_file_system.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ChildProcess;
using ::alpheus::demo::ProgramResult;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Descriptor 1 is free when the region is opened: it must not get it.
TEST_F(CliTest, ClosedStandardOutputIsAnErrorAndHarmsNothing) {
  FormatWith({"one", "two"});
  const auto before = ReadFile(region_);
  for (const std::string command : {"cat", "inspect", "verify"}) {
    const ProgramResult result = RunInShell(
        absl::StrCat("\"$0\" ", command, " --file ", region_, " >&-"));
    EXPECT_EQ(result.end.exit_status, kFailed) << command;
    EXPECT_THAT(result.error, HasSubstr("standard output"));
    EXPECT_TRUE(ReadFile(region_) == before) << command;
  }
  const ProgramResult append = RunInShell(
      absl::StrCat("echo three | \"$0\" append --file ", region_, " >&-"));
  EXPECT_EQ(append.end.exit_status, kFailed);
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\ntwo\nthree\n");
}

TEST_F(CliTest, AllStreamsClosedHarmNothing) {
  FormatWith({"one"});
  const auto before = ReadFile(region_);
  EXPECT_EQ(
      RunInShell(absl::StrCat("\"$0\" cat --file ", region_, " <&- >&- 2>&-"))
          .end.exit_status,
      kFailed);
  EXPECT_TRUE(ReadFile(region_) == before);
  EXPECT_EQ(RunInShell(absl::StrCat("\"$0\" append --file ", region_, " <&-"))
                .end.exit_status,
            kFailed);
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\n");
}

TEST_F(CliTest, FullStandardOutputIsAnError) {
  FormatWith({"one"});
  for (const std::string command : {"cat", "inspect", "verify", "append"}) {
    const ProgramResult result = RunInShell(absl::StrCat(
        "\"$0\" ", command, " --file ", region_, " </dev/null >/dev/full"));
    EXPECT_EQ(result.end.exit_status, kFailed) << command;
    EXPECT_THAT(result.error, HasSubstr("No space left"));
  }
}

// The reader of a pipe goes away: an error with a message, no signal.
TEST_F(CliTest, ReaderThatGoesAwayIsAnError) {
  Format("1MiB");
  RunWell({"append", "--file", region_},
          JoinLines(std::vector<std::string>(300, std::string(1000, 'x'))));
  auto child = ChildProcess::Start(AlpheusProgram({"cat", "--file", region_}));
  ASSERT_TRUE(child.ok());
  child->output().Close();
  std::string error;
  pollfd stream = {child->error().get(), POLLIN, 0};
  while (poll(&stream, 1, -1) == 1 && demo::ReadSome(stream.fd, &error)) {
  }
  EXPECT_THAT(error, HasSubstr("reader"));
  const demo::ProcessEnd end = child->Wait();
  EXPECT_EQ(end.exit_status, kFailed) << end.ToString();
}

// Beyond what any file system takes, so that no space is used up on the way.
TEST_F(CliTest, RegionLargerThanTheFileSystemIsRefused) {
  const ProgramResult result = RunAlpheus(
      {"format", "--file", region_, "--size", "9000000000000000000"});
  EXPECT_EQ(result.end.exit_status, kFailed) << result.error;
  EXPECT_FALSE(std::filesystem::exists(region_));
}

TEST_F(CliTest, FullFileSystemIsMetWhenFormattingNotLater) {
  SmallFileSystem small(File("small"));
  if (!small.is_mounted()) {
    GTEST_SKIP() << "skipped because tmpfs can't be mounted here: "
                 << small.why_not();
  }
  const ProgramResult large =
      RunAlpheus({"format", "--file", File("small/large"), "--size", "2MiB"});
  EXPECT_EQ(large.end.exit_status, kFailed);
  EXPECT_THAT(large.error, HasSubstr("No space left"));
  EXPECT_FALSE(std::filesystem::exists(File("small/large")));

  // All of the region's blocks are taken now: a file system that fills up
  // later does it no harm (RG2, region.h).
  const std::string fitting = File("small/fitting");
  RunWell({"format", "--file", fitting, "--size", "512KiB"});
  RunInShell(
      absl::StrCat("head -c 2000000 /dev/zero >", File("small/rest"), " # $0"));
  const std::string lines =
      JoinLines(std::vector<std::string>(300, std::string(900, 'x')));
  RunWell({"append", "--file", fitting}, lines);
  EXPECT_EQ(RunWell({"cat", "--file", fitting}), lines);
  EXPECT_EQ(RunAlpheus({"salvage", fitting, File("small/out")}).end.exit_status,
            kFailed);
  EXPECT_FALSE(std::filesystem::exists(File("small/out")));
}

// Two regions fit, and the file of plain writes beside them does not.
TEST_F(CliTest, FullFileSystemIsToldByTheBenchmark) {
  SmallFileSystem small(File("small"));
  if (!small.is_mounted()) {
    GTEST_SKIP() << "skipped because tmpfs can't be mounted here: "
                 << small.why_not();
  }
  const ProgramResult result = RunAlpheus(
      {"bench", File("small"), "--size", "384KiB", "--seconds", "0.05"});
  EXPECT_EQ(result.end.exit_status, kFailed);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("bench-write"), HasSubstr("No space left")));
  EXPECT_TRUE(std::filesystem::is_empty(File("small")));
}

}  // namespace
}  // namespace alpheus::testing
