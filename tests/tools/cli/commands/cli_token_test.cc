// SPDX-License-Identifier: Apache-2.0
// `alpheus token new`: what it prints, and the file that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "api/grpc/access/crypto.h"
#include "api/grpc/access/token_file.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

using CliTokenTest = CliTest;

TEST_F(CliTokenTest, TokenIsPrintedOnceAndItsEntryIsAdded) {
  const std::string file = File("tokens.toml");
  const ProgramResult first =
      RunAlpheus({"token", "new", "billing", "--role", "append", "--role",
                  "read", "--log", "main", "--log", "orders", "--expires",
                  "2027-01-31T00:00:00Z", "--file", file});
  EXPECT_EQ(first.end.exit_status, kGood) << first.error;
  EXPECT_THAT(first.output, MatchesRegex("alph_[0-9a-f]{64}\n"));
  EXPECT_THAT(first.error, Not(HasSubstr("alph_")));
  EXPECT_THAT(first.error, HasSubstr(file));
  const std::string second =
      RunWell({"token", "new", "cleaner", "--role", "admin", "--file", file,
               "--requests-per-second", "10", "--bytes-per-second", "2000"});
  const auto entries = rpc::LoadTokenFile(file);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  const std::string token = first.output.substr(0, first.output.size() - 1);
  EXPECT_EQ(entries->front().sha256, rpc::Sha256(token));
  EXPECT_EQ(entries->front().roles,
            rpc::Roles(rpc::Role::kAppend) | rpc::Role::kRead);
  EXPECT_TRUE(entries->front().logs.contains("orders"));
  EXPECT_EQ(entries->back().sha256,
            rpc::Sha256(second.substr(0, second.size() - 1)));
  EXPECT_TRUE(entries->back().logs.contains("main"));
  EXPECT_FALSE(entries->front().rates.is_limited());
  EXPECT_EQ(entries->back().rates,
            (rpc::Rates{.requests = 10, .bytes = 2'000}));
}

TEST_F(CliTokenTest, WithoutAFileTheEntryIsSaid) {
  const ProgramResult made =
      RunAlpheus({"token", "new", "reader", "--role", "read", "--log", "*"});
  EXPECT_EQ(made.end.exit_status, kGood) << made.error;
  EXPECT_THAT(made.error, HasSubstr("[[token]]\nname = \"reader\"\n"));
  EXPECT_THAT(made.error, HasSubstr("logs = [\"*\"]"));
}

TEST_F(CliTokenTest, MistakesMakeNoToken) {
  const std::string file = File("tokens.toml");
  RunWell({"token", "new", "a", "--role", "read", "--file", file});
  const auto expect = [&](const Arguments& arguments, int exit_status,
                          const std::string& why) {
    const ProgramResult refused = RunAlpheus(arguments);
    EXPECT_EQ(refused.end.exit_status, exit_status) << why;
    EXPECT_THAT(refused.output, Not(HasSubstr("alph_")));
    EXPECT_THAT(refused.error, HasSubstr(why));
  };
  expect({"token", "new", "a", "--role", "read", "--file", file}, kUsage,
         "has the name of");
  expect({"token", "new", "b c", "--role", "read"}, kUsage,
         "no name of a token");
  expect({"token", "new", "b", "--role", "write"}, kUsage, "write");
  expect({"token", "new", "b"}, kUsage, "--role");
  expect({"token", "new", "b", "--role", "read", "--expires", "soon"}, kUsage,
         "not valid TOML");
}

}  // namespace
}  // namespace alpheus::testing
