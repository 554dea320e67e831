// SPDX-License-Identifier: Apache-2.0
// `alpheus backup`, and what the other commands make of its file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tests/tools/cli/small_file_system.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CliBackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RunWell({"format", "--cluster", cluster_.file(), "--size", "256KiB"});
    Append("one\ntwo\n");
  }
  void Append(const std::string& lines) {
    RunWell({"append", "--cluster", cluster_.file(), "--node", "1"}, lines);
  }
  Arguments BackUp(const Arguments& more = {}) const {
    Arguments arguments = {"backup", out_, "--cluster", cluster_.file()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  void ExpectRefused(const Arguments& arguments, int exit_status,
                     const std::string& message) {
    const ProgramResult ran = RunAlpheus(arguments);
    EXPECT_EQ(ran.end.exit_status, exit_status) << ran.error;
    EXPECT_THAT(ran.error, HasSubstr(message));
    EXPECT_EQ(ran.output, "");
  }

  TestCluster cluster_{3};
  const TempDirectory directory_;
  const std::string out_ = directory_.File("main.backup");
};

TEST_F(CliBackupTest, AllReadingCommandsReadIt) {
  const ProgramResult ran = RunAlpheus(BackUp());
  EXPECT_EQ(ran.end.exit_status, kGood) << ran.error;
  EXPECT_EQ(ran.output, "2\n");
  EXPECT_THAT(ran.error, HasSubstr("LSN 1 to 2; all were read back"));
  EXPECT_EQ(RunWell({"cat", "--file", out_}), "one\ntwo\n");
  EXPECT_THAT(RunWell({"inspect", "--file", out_}),
              HasSubstr("of the records from LSN 1 to 2, and no replica"));
  const auto inspected =
      ParseLines(RunWell({"inspect", "--file", out_, "--json"}));
  ASSERT_EQ(inspected.size(), 1U);
  EXPECT_EQ(inspected[0]["is_backup"], true);
  EXPECT_EQ(inspected[0]["closed_cleanly"], true);
  RunWell({"verify", "--file", out_});
  const std::string rescued = directory_.File("rescued");
  EXPECT_EQ(RunWell({"salvage", out_, rescued}), "2\n");
  Arguments append = {"append", "--file", rescued};
  EXPECT_EQ(RunWell(append, "three\n"), "3\n");
}

// Goal: BKC3 (backup_composer.h), BKF2 (backup_file.h).
TEST_F(CliBackupTest, NothingWritesABackup) {
  RunWell(BackUp());
  const std::vector<std::byte> before = ReadFile(out_);
  ExpectRefused({"append", "--file", out_}, kFailed, "");
  ExpectRefused({"cleanup", "--file", out_, "--all"}, kFailed, "");
  ExpectRefused(
      {"append", "--cluster", cluster_.file(), "--node", "1", "--file", out_},
      kFailed, "");
  ExpectRefused(BackUp(), kFailed, "exists");
  EXPECT_EQ(ReadFile(out_), before);
  Append("three\n");
  EXPECT_EQ(RunWell(BackUp({"--force"})), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", out_}), "one\ntwo\nthree\n");
}

TEST_F(CliBackupTest, ForceReplacesNothingButABackup) {
  std::filesystem::copy_file(cluster_.ReplicaPath(2), out_);
  ExpectRefused(BackUp({"--force"}), kFailed, "is no backup");
  EXPECT_EQ(RunWell({"cat", "--file", out_}), "one\ntwo\n");
  std::filesystem::remove(out_);
  std::ofstream(out_) << "a text";
  ExpectRefused(BackUp({"--force"}), kFailed, "is no backup");
}

TEST_F(CliBackupTest, BadInputsAreRefusedAndLeaveNothing) {
  ExpectRefused({"backup", "--cluster", cluster_.file()}, kUsage, "FILE");
  ExpectRefused({"backup", out_}, kUsage, "--cluster");
  ExpectRefused(BackUp({"--log", "none"}), kFailed, "none");
  ExpectRefused(BackUp({"--timeout-ms", "0"}), kUsage, "timeout");
  ExpectRefused(
      {"backup", directory_.File("none/backup"), "--cluster", cluster_.file()},
      kFailed, "Make it first");
  ExpectRefused({"backup", out_, "--cluster", directory_.File("none.toml")},
                kFailed, "none.toml");
  cluster_.Stop(2);
  cluster_.Stop(3);
  ExpectRefused(BackUp({"--timeout-ms", "300"}), kUnavailable, "node 2");
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

// Goal: BKF1 (backup_file.h).
TEST_F(CliBackupTest, FullDiskLeavesNothing) {
  const std::string folder = directory_.File("small");
  const SmallFileSystem small(folder, "64k");
  if (!small.is_mounted()) {
    GTEST_SKIP() << "skipped because tmpfs can't be mounted here: "
                 << small.why_not();
  }
  Append(JoinLines(std::vector<std::string>(3, std::string(30'000, 'x'))));
  ExpectRefused({"backup", folder + "/backup", "--cluster", cluster_.file()},
                kFailed, "No space left");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(CliBackupTest, DamagedBackupIsFoundByVerify) {
  RunWell(BackUp());
  std::filesystem::permissions(out_, std::filesystem::perms::owner_all);
  std::vector<std::byte> bytes = ReadFile(out_);
  bytes[106'496 + 64 + 48] ^= std::byte{1};  // the payload of LSN 2
  WriteFile(out_, bytes);
  const ProgramResult ran = RunAlpheus({"verify", "--file", out_});
  EXPECT_EQ(ran.end.exit_status, kDataLoss) << ran.output << ran.error;
}

}  // namespace
}  // namespace alpheus::testing
