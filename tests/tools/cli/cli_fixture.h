// SPDX-License-Identifier: Apache-2.0
// cli_fixture: runs the real `alpheus` on a region of the test's own.
//
// Idea: the cli_*_test.cc look at what the program prints, what it returns and
// what it leaves in the region. Every refusal must leave the region as it was.
#ifndef ALPHEUS_TESTS_TOOLS_CLI_CLI_FIXTURE_H_
#define ALPHEUS_TESTS_TOOLS_CLI_CLI_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "nlohmann/json.hpp"
#include "tests/support/fixtures/temp_directory.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {

using Arguments = std::vector<std::string>;

// tools/cli/io/exit_status.h, written out: scripts rely on the numbers.
inline constexpr int kGood = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kDataLoss = 3;
inline constexpr int kUnavailable = 4;

demo::Program AlpheusProgram(const Arguments& arguments);
// The program at `path`, without input.
demo::ProgramResult RunProgramAt(const std::string& path,
                                 const Arguments& arguments);
demo::ProgramResult RunAlpheus(const Arguments& arguments,
                               const std::string& input = "");
// With a shell, for redirections: "$0" is the program.
demo::ProgramResult RunInShell(const std::string& script);
// Expects success; returns standard output.
std::string RunWell(const Arguments& arguments, const std::string& input = "");

std::string FrameLen32(const std::vector<std::string>& records);
std::string JoinLines(const std::vector<std::string>& records);
std::vector<std::string> SplitLines(const std::string& text);
// An object per line.
std::vector<nlohmann::json> ParseLines(const std::string& text);

std::string DrawBytes(Random* random, size_t bytes);
// "0", "1" and so on.
std::vector<std::string> CountTo(int count);
// Records of different shapes: empty, one line, several lines.
std::vector<std::string> MakeShapes();

class CliTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const {
    return directory_.File(name);
  }

  // A new region; the smallest ones make the fastest tests.
  std::string Format(const std::string& size = "128KiB");
  // A region that was closed cleanly, with these records.
  std::string FormatWith(const std::vector<std::string>& records);

  std::string CatLen32();
  nlohmann::json Inspect();
  // Where the headers are, by LSN from 1 on.
  std::vector<uint64_t> FindOffsets();
  // The bytes that only a writer may change. Beside one the watermarks count as
  // zeros: it notes its last record there when it is idle.
  std::vector<std::byte> RegionBytes();

  void FlipBit(uint64_t offset, int bit);

  // The command fails with this status, says why, and changes no byte.
  void ExpectRefused(const Arguments& arguments, int exit_status,
                     const std::string& message = "",
                     const std::string& input = "");
  // Every command but salvage refuses this region.
  void ExpectRefusedByOpening(int exit_status, const std::string& message = "");
  // Salvage too: nothing of it can be used. No output is left behind.
  void ExpectRefusedByAll(int exit_status, const std::string& message = "");

  const TempDirectory directory_;
  const std::string region_ = directory_.File("region");
  bool has_writer_ = false;  // a live one of this test's
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TOOLS_CLI_CLI_FIXTURE_H_
