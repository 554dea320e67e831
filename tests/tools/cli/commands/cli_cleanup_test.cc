// SPDX-License-Identifier: Apache-2.0
// `alpheus cleanup`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "alpheus/log.h"
#include "log/format/layout.h"
#include "nlohmann/json.hpp"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/tools/cli/cli_fixture.h"

namespace alpheus::testing {
namespace {

using ::nlohmann::json;
using ::testing::ElementsAre;

TEST_F(CliTest, CleanedRecordsAreNotShown) {
  FormatWith({"one", "two", "three", "four"});
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--lsn", "3"}), "1\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\ntwo\nfour\n");
  std::vector<std::string> states;
  for (const json& record :
       ParseLines(RunWell({"cat", "--file", region_, "--json"}))) {
    states.push_back(record["state"]);
  }
  EXPECT_THAT(states, ElementsAre("durable", "durable", "cleaned", "durable"));
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--lsn", "2", "1"}), "4\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "four\n");
}

TEST_F(CliTest, CleanupThroughCleansThePrefix) {
  FormatWith({"one", "two", "three"});
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--through", "2"}), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "three\n");
  // Cleaned already: that is what was asked for.
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--through", "1"}), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "three\n");
}

TEST_F(CliTest, CleanupAllCleansEverythingAndLsnsGoOn) {
  FormatWith({"one", "two"});
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--all"}), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "");
  EXPECT_EQ(RunWell({"append", "--file", region_}, "three\n"), "3\n");
}

TEST_F(CliTest, CleanupOfUnknownOrCleanedLsnIsRefused) {
  FormatWith({"one", "two", "three"});
  RunWell({"cleanup", "--file", region_, "--lsn", "1"});
  ExpectRefused({"cleanup", "--file", region_, "--lsn", "4"}, kFailed,
                "never assigned");
  ExpectRefused({"cleanup", "--file", region_, "--through", "4"}, kFailed,
                "never assigned");
  ExpectRefused({"cleanup", "--file", region_, "--lsn", "18446744073709551615"},
                kFailed, "never assigned");
  ExpectRefused({"cleanup", "--file", region_, "--lsn", "1"}, kFailed,
                "cleaned already");
  // One bad LSN of several: none is cleaned.
  ExpectRefused({"cleanup", "--file", region_, "--lsn", "2", "4"}, kFailed,
                "never assigned");
}

// Makes the epoch table full: a live record for each opening (P-A2).
void FillEpochTable(const std::string& region) {
  LogOptions options;
  options.path = region;
  for (uint64_t i = 0; i < kEpochTableCapacity; ++i) {
    auto log = Log::Open(options);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append("x").ok());
    ASSERT_TRUE((*log)->Close().ok());
  }
}

TEST_F(CliTest, CleanupIsTheWayOutOfAFullEpochTable) {
  Format("256KiB");
  ASSERT_NO_FATAL_FAILURE(FillEpochTable(region_));
  const auto full = ReadFile(region_);
  ExpectRefused({"append", "--file", region_}, kFailed, "cleanup", "x\n");
  RunWell({"cleanup", "--file", region_, "--through", "10"});
  EXPECT_EQ(RunWell({"append", "--file", region_}, "x\n"), "1025\n");
  WriteFile(region_, full);
  RunWell({"cleanup", "--file", region_, "--all"});
  EXPECT_EQ(RunWell({"append", "--file", region_}, "x\n"), "1025\n");
}

}  // namespace
}  // namespace alpheus::testing
