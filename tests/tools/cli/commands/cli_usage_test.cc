// SPDX-License-Identifier: Apache-2.0
// The words that the command line takes, and what it says of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/format/superline.h"
#include "nlohmann/json.hpp"
#include "recovery/protocol/messages.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CliTest, BadUsageIsRefused) {
  FormatWith({"record"});
  const std::vector<Arguments> bad = {
      {},
      {"frobnicate"},
      {"append"},
      {"append", "--file"},
      {"append", "--file", region_, "--frequency", "0"},
      {"append", "--file", region_, "--frequency", "x"},
      {"append", "--file", region_, "--threads", "0"},
      {"append", "--file", region_, "--threads", "-1"},
      {"append", "--file", region_, "--threads", "257"},
      {"append", "--file", region_, "--framing", "csv"},
      {"append", "--file", region_, "extra"},
      {"cat", "--file", region_, "--no-such-option"},
      {"cleanup", "--file", region_},
      {"cleanup", "--file", region_, "--all", "--through", "1"},
      {"cleanup", "--file", region_, "--all", ""},
      {"cleanup", "", "--all", "--no-such-option"},
      {"cleanup", "--file", region_, "--lsn", "0"},
      {"cleanup", "--file", region_, "--through", "0"},
      {"cleanup", "--file", region_, "--lsn", "-1"},
      {"salvage", region_},
      {"format", "--file", File("new"), "--size", "12 furlongs"},
      {"format", "--file", File("new"), "--size", "-1"},
      {"format", "--file", File("new"), "--size", ""},
      {"format", "--file", File("new"), "--size", "99999999999TiB"},
      {"format", "--file", File("new"), "--size", "107KiB"},
      {"format", "--file", File("new"), "--size", "0"}};
  const auto before = ReadFile(region_);
  for (const Arguments& arguments : bad) {
    const ProgramResult result = RunAlpheus(arguments, "a record\n");
    EXPECT_EQ(result.end.exit_status, kUsage)
        << ::testing::PrintToString(arguments) << result.error;
    EXPECT_EQ(result.output, "");
    EXPECT_NE(result.error, "");
  }
  EXPECT_TRUE(ReadFile(region_) == before);
  EXPECT_FALSE(std::filesystem::exists(File("new")));
}

TEST_F(CliTest, UnknownCommandIsNamed) {
  EXPECT_THAT(RunAlpheus({"frobnicate"}).error, HasSubstr("'frobnicate'"));
}

TEST_F(CliTest, HelpIsNoError) {
  EXPECT_THAT(RunWell({"--help"}), HasSubstr("Exit status"));
  // The list of commands has their purposes only.
  EXPECT_THAT(RunWell({"--help"}), Not(HasSubstr("Reads only")));
  for (const std::string command :
       {"format", "append", "cat", "inspect", "verify", "cleanup", "salvage",
        "backup", "plan", "elect", "drain"}) {
    const std::string help = RunWell({command, "--help"});
    EXPECT_THAT(help, HasSubstr("Usage"));
    EXPECT_THAT(help, HasSubstr("\n\nExit status:\n  0  "));
  }
}

// Which nodes can talk to each other, and which regions can be opened.
TEST_F(CliTest, VersionNamesProtocolAndFormat) {
  EXPECT_EQ(RunWell({"--version"}),
            absl::StrCat("alpheus 0.1.0, protocol ", recovery::kProtocolVersion,
                         ", log format ", kFormatVersion, "\n"));
}

TEST_F(CliTest, HelpFitsTheTerminal) {
  for (const int columns : {60, 80, 120}) {
    for (const std::string command :
         {"format", "append", "cat", "inspect", "verify", "cleanup", "salvage",
          "backup", "plan", "export-wal", "tail", "status", "scrub", "bench",
          "elect", "drain"}) {
      const std::string help =
          RunInShell(
              absl::StrCat("COLUMNS=", columns, " \"$0\" ", command, " --help"))
              .output;
      for (const std::string& line : SplitLines(help)) {
        EXPECT_LE(line.size(), static_cast<size_t>(columns)) << line;
      }
    }
  }
  EXPECT_THAT(RunWell({"export-wal", "--help"}), Not(HasSubstr("REQUIRED")));
}

TEST_F(CliTest, SizesAreTakenInEveryUnit) {
  const std::vector<std::pair<std::string, uint64_t>> sizes = {
      {"131072", 131072}, {"131072B", 131072}, {"128KiB", 131072},
      {"128KB", 128000},  {"1MiB", 1 << 20},   {"1MB", 1'000'000}};
  for (const auto& [text, bytes] : sizes) {
    Format(text);
    const auto size = std::filesystem::file_size(region_);
    EXPECT_LE(size, bytes) << text;
    EXPECT_GT(size + 4096, bytes) << text;
    std::filesystem::remove(region_);
  }
}

TEST_F(CliTest, FormatPrintsTheIdentityOfTheLog) {
  std::string id = RunWell({"format", "--file", region_, "--size", "1MiB"});
  ASSERT_EQ(id.size(), 33u);
  id.pop_back();
  const json region = Inspect();
  EXPECT_EQ(region["log_id"], id);
}

TEST_F(CliTest, FormatRefusesAFileThatExists) {
  FormatWith({"record"});
  ExpectRefused({"format", "--file", region_, "--size", "1MiB"}, kFailed,
                "exists");
}

TEST_F(CliTest, MissingFileIsNamed) {
  for (const std::string command : {"append", "cat", "inspect", "verify"}) {
    const ProgramResult result = RunAlpheus({command, "--file", File("none")});
    EXPECT_EQ(result.end.exit_status, kFailed);
    EXPECT_THAT(result.error, HasSubstr(File("none")));
    EXPECT_THAT(result.error, HasSubstr("Is the path right?"));
  }
  EXPECT_FALSE(std::filesystem::exists(File("none")));
}

// Standard error is for messages; a pipe is no terminal, so there is no
// progress either.
TEST_F(CliTest, SuccessIsSilentOnStandardError) {
  FormatWith(CountTo(100));
  for (const Arguments& command :
       std::vector<Arguments>{{"append", "--file", region_},
                              {"cat", "--file", region_},
                              {"verify", "--file", region_},
                              {"inspect", "--file", region_},
                              {"cleanup", "--file", region_, "--all"}}) {
    EXPECT_EQ(RunAlpheus(command, "x\n").error, "") << command[0];
  }
}

}  // namespace
}  // namespace alpheus::testing
