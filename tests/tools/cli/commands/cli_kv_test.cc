// SPDX-License-Identifier: Apache-2.0
// `alpheus kv`: objects by key, in a region file.
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/cli/cli_fixture.h"

namespace alpheus::testing {
namespace {

class CliKvTest : public CliTest {
 protected:
  CliKvTest() { Format("1MiB"); }

  Arguments Kv(const std::string& what, Arguments words) {
    words.insert(words.begin(), {"kv", what, "--file", region_});
    return words;
  }
};

TEST_F(CliKvTest, WhatIsPutIsThereForTheNextCommand) {
  const std::string version = RunWell(Kv("put", {"apple", "red"}));
  EXPECT_NE(version, "");
  RunWell(Kv("put", {"pear"}), "green\n\nbytes");
  EXPECT_EQ(RunWell(Kv("get", {"apple"})), "red");
  EXPECT_EQ(RunWell(Kv("get", {"pear"})), "green\n\nbytes");
  EXPECT_EQ(RunWell(Kv("ls", {})), "apple\npear\n");
  RunWell(Kv("del", {"apple"}));
  EXPECT_EQ(RunWell(Kv("ls", {})), "pear\n");
}

TEST_F(CliKvTest, ConditionsAreKept) {
  const std::string printed = RunWell(Kv("put", {"k", "v", "--if-absent"}));
  const std::string version = printed.substr(0, printed.size() - 1);
  const auto refused = RunAlpheus(Kv("put", {"k", "w", "--if-absent"}));
  EXPECT_EQ(refused.end.exit_status, kFailed);
  EXPECT_NE(refused.error.find("the key has version " + version),
            std::string::npos)
      << refused.error;
  RunWell(Kv("put", {"k", "w", "--if-version", version}));
  EXPECT_EQ(
      RunAlpheus(Kv("del", {"k", "--if-version", version})).end.exit_status,
      kFailed);
  EXPECT_EQ(RunWell(Kv("get", {"k"})), "w");
}

TEST_F(CliKvTest, KeyThatIsNotThereIsSaid) {
  for (const char* const what : {"get", "del"}) {
    const auto result = RunAlpheus(Kv(what, {"nothing"}));
    EXPECT_EQ(result.end.exit_status, kFailed);
    EXPECT_NE(result.error.find("nothing: no such key"), std::string::npos)
        << result.error;
  }
}

TEST_F(CliKvTest, WhatCanNeverBeRightIsUsage) {
  for (const Arguments& words :
       {Kv("put", {}), Kv("get", {}), Kv("get", {"a", "b"}), Kv("ls", {"a"}),
        Kv("put", {"k", "v", "--if-version", "x"}), Arguments{"kv"},
        Arguments{"kv", "get", "k"}}) {
    EXPECT_EQ(RunAlpheus(words).end.exit_status, kUsage);
  }
}

TEST_F(CliKvTest, WhatTheStoreRefusesIsSaid) {
  const auto expect_refused = [&](const Arguments& words, const char* why) {
    const auto result = RunAlpheus(words);
    EXPECT_EQ(result.end.exit_status, kUsage) << why;
    EXPECT_NE(result.error.find(why), std::string::npos) << result.error;
  };
  expect_refused(Kv("put", {"", "v"}), "a key of 0 bytes");
  expect_refused(Kv("put", {"k", std::string(20'000, 'v')}),
                 "a 64th of its ring");
  EXPECT_EQ(RunWell(Kv("ls", {})), "");
}

TEST_F(CliKvTest, SmallLogIsRefused) {
  const std::string small = directory_.File("small");
  RunWell({"format", "--file", small, "--size", "256KiB"});
  const auto result = RunAlpheus({"kv", "ls", "--file", small});
  EXPECT_EQ(result.end.exit_status, kFailed);
  EXPECT_NE(result.error.find("a store needs a log of 524288"),
            std::string::npos)
      << result.error;
}

TEST_F(CliKvTest, LogThatIsNotThereIsSaid) {
  const auto result =
      RunAlpheus({"kv", "ls", "--file", directory_.File("nothing")});
  EXPECT_EQ(result.end.exit_status, kFailed);
  EXPECT_NE(result.error, "");
}

TEST_F(CliKvTest, LogOfRecordsIsLeftAlone) {
  RunWell({"append", "--file", region_}, "a line\n");
  const auto result = RunAlpheus(Kv("put", {"k", "v"}));
  EXPECT_EQ(result.end.exit_status, kFailed);
  EXPECT_NE(result.error.find("not a record of the store"), std::string::npos)
      << result.error;
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "a line\n");
}

}  // namespace
}  // namespace alpheus::testing
