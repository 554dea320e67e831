// SPDX-License-Identifier: Apache-2.0
// `alpheus-sim` as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/tools/cli/cli_fixture.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

ProgramResult RunSim(const Arguments& arguments) {
  return RunProgramAt(ALPHEUS_SIM_BINARY, arguments);
}

std::string RunSimWell(const Arguments& arguments) {
  const ProgramResult result = RunSim(arguments);
  EXPECT_EQ(result.end.exit_status, kGood)
      << result.end.ToString() << ": " << result.error;
  return result.output;
}

TEST(CliSimTest, BadUsageIsRefused) {
  const std::vector<Arguments> bad = {{"--seed", "x"},
                                      {"--seed", "-1"},
                                      {"--seed", "1", "--seeds", "1-2"},
                                      {"--seed", "1", "--minutes", "1"},
                                      {"--seeds", "1"},
                                      {"--seeds", "2-1"},
                                      {"--seeds", "1-2-3"},
                                      {"--seeds", "a-b"},
                                      {"--seeds", "-1-2"},
                                      {"--minutes", "0"},
                                      {"--minutes", "-1"},
                                      {"--nodes", "0"},
                                      {"--nodes", "10"},
                                      {"--write-quorum", "1"},
                                      {"--nodes", "2", "--write-quorum", "3"},
                                      {"--nodes", "2", "--write-quorum", "0"},
                                      {"--clients", "0"},
                                      {"--payload", "7"},
                                      {"--faults", "meteorite"},
                                      {"--faults", "none,rival"},
                                      {"--actors", "burglar"},
                                      {"--actors", "none,tail"},
                                      {"--seed", "1", "--without", "1-"},
                                      {"--without", "1"},
                                      {"--trace"},
                                      {"--trace", "--seeds", "1-2"},
                                      {"--jobs", "0"},
                                      {"--canary", "dead"},
                                      {"extra"}};
  for (const Arguments& arguments : bad) {
    const ProgramResult result = RunSim(arguments);
    EXPECT_EQ(result.end.exit_status, kUsage)
        << ::testing::PrintToString(arguments) << result.error;
    EXPECT_EQ(result.output, "");
    EXPECT_NE(result.error, "");
  }
}

TEST(CliSimTest, HelpIsNoError) {
  const std::string help = RunSimWell({"--help"});
  EXPECT_THAT(help, HasSubstr("--seeds"));
  for (const std::string& line : SplitLines(help)) {
    EXPECT_LE(line.size(), 120u) << line;  // the list of faults is longer
  }
}

// It was a command of `alpheus` once.
TEST(CliSimTest, AlpheusSaysWhereTheSimulatorIs) {
  const ProgramResult result = RunAlpheus({"sim", "--seed", "1"});
  EXPECT_EQ(result.end.exit_status, kUsage);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.error, HasSubstr("alpheus-sim"));
  EXPECT_EQ(SplitLines(result.error).size(), 1u);
}

TEST(CliSimTest, GoodSeedsAreCounted) {
  const std::string text =
      RunSimWell({"--seeds", "1-6", "--nodes", "3", "--jobs", "2"});
  EXPECT_THAT(text, HasSubstr("6, 0 violated"));
  const json totals =
      json::parse(RunSimWell({"--seeds", "1-6", "--nodes", "3", "--json"}));
  EXPECT_EQ(totals["seeds"], 6);
  EXPECT_EQ(totals["violated"], 0);
  EXPECT_GT(totals["calls_per_seed"], 100);
  EXPECT_GT(totals["records_checked"], 0);
  EXPECT_GT(totals["faults_by_class"]["kill-primary"], 0);
}

TEST(CliSimTest, MinutesEndARun) {
  const json totals = json::parse(
      RunSimWell({"--minutes", "0.005", "--faults", "none", "--json"}));
  EXPECT_GE(totals["seeds"], 1);
  EXPECT_EQ(totals["faults"], 0);
}

TEST(CliSimTest, AtLeastOneSeedRunsHoweverShortTheTimeIs) {
  const json totals =
      json::parse(RunSimWell({"--seeds", "7-9", "--jobs", "1", "--minutes",
                              "0.0000000001", "--json"}));
  EXPECT_EQ(totals["seeds"], 1);
}

// In two processes: addresses and what else differs between them don't matter.
TEST(CliSimTest, ASeedHasOneTraceByteForByte) {
  for (const std::string seed : {"1", "2", "3", "4"}) {
    const Arguments arguments = {"--seed", seed, "--trace"};
    const std::string trace = RunSimWell(arguments);
    EXPECT_GT(SplitLines(trace).size(), 1000u);
    EXPECT_TRUE(trace == RunSimWell(arguments)) << seed;
  }
}

TEST(CliSimTest, AFailureIsToldWithItsShortestScheduleAndHowToRepeatIt) {
  const Arguments failing = {
      "--seed", "5",        "--nodes",       "3",        "--write-quorum",
      "2",      "--canary", "early-durable", "--commit", "abcdef"};
  const ProgramResult result = RunSim(failing);
  EXPECT_EQ(result.end.exit_status, kFailed);
  EXPECT_THAT(result.error, HasSubstr("violates P-INV-22"));
  EXPECT_THAT(result.output, HasSubstr("seed 5 violates P-INV-22"));
  EXPECT_THAT(result.output, HasSubstr("commit: abcdef"));
  EXPECT_THAT(result.output, HasSubstr("options: N 3 W 2"));
  EXPECT_THAT(result.output, HasSubstr("without any fault"));
  EXPECT_THAT(result.output,
              HasSubstr("once more: alpheus-sim --seed 5 --nodes 3 "
                        "--write-quorum 2 --canary early-durable\n"));
  EXPECT_THAT(result.output, HasSubstr("1 violated"));
}

TEST(CliSimTest, OnlyTheFirstFailureIsToldUnlessAllAreWanted) {
  const Arguments failing = {
      "--seeds",        "1-8", "--nodes",  "3",
      "--write-quorum", "3",   "--canary", "early-durable",
      "--jobs",         "1",   "--json",   "--no-shrink"};
  std::vector<json> lines = ParseLines(RunSim(failing).output);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["seed"], 1);
  EXPECT_EQ(lines[0]["invariant"], "P-INV-22");
  EXPECT_FALSE(lines[0].contains("shortest"));
  EXPECT_EQ(lines[1]["seeds"], 1);
  Arguments all = failing;
  all.emplace_back("--keep-going");
  lines = ParseLines(RunSim(all).output);
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_EQ(lines.back()["violated"], 8);
}

TEST(CliSimTest, TheShortestScheduleIsJsonToo) {
  const std::vector<json> lines =
      ParseLines(RunSim({"--seed", "3", "--nodes", "1", "--faults", "power-cut",
                         "--canary", "lost-fences", "--json"})
                     .output);
  // At once, then the schedule, then the totals.
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["seed"], 3);
  EXPECT_FALSE(lines[0].contains("shortest"));
  EXPECT_EQ(lines[1]["seed"], 3);
  EXPECT_EQ(lines[1]["shortest"]["faults"].size(), 1u) << lines[1];
  EXPECT_THAT(std::string(lines[1]["shortest"]["command"]),
              HasSubstr("--without "));
}

}  // namespace
}  // namespace alpheus::testing
