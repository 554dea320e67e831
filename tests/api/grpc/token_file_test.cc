// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/grpc/access/crypto.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

// Of "abc".
constexpr char kDigest[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string EntryWith(const std::string& name, const std::string& rest) {
  return absl::StrCat("[[token]]\nname = \"", name, "\"\nsha256 = \"", kDigest,
                      "\"\n", rest);
}

std::string FaultOf(const std::string& text) {
  const auto parsed = ParseTokenFile(text, "t");
  EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << text;
  return std::string(parsed.status().message());
}

TEST(TokenFileTest, EntriesAreRead) {
  const auto parsed = ParseTokenFile(
      EntryWith("a",
                "roles = [\"append\", \"read\"]\nlogs = [\"x\", \"y\"]\n"
                "expires = 2900-01-01T01:30:00+01:30\n"
                "requests_per_second = 10\nbytes_per_second = 2000\n") +
          "[[token]]\nname = \"b\"\nsha256 = \"" + std::string(64, 'E') +
          "\"\nroles = [\"admin\"]\nlogs = [\"*\"]\n",
      "t");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 2u);
  const TokenEntry& a = parsed->front();
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.sha256, Sha256("abc"));
  EXPECT_EQ(a.roles, Roles(Role::kAppend) | Role::kRead);
  EXPECT_FALSE(a.is_for_all_logs);
  EXPECT_THAT(a.logs, ElementsAre("x", "y"));
  EXPECT_EQ(a.expires_s, testing::kYear2900);
  EXPECT_EQ(a.rates, (Rates{.requests = 10, .bytes = 2'000}));
  EXPECT_FALSE(parsed->back().rates.is_limited());
  EXPECT_EQ(parsed->back().roles, Roles(Role::kAdmin));
  EXPECT_TRUE(parsed->back().is_for_all_logs);
  EXPECT_EQ(parsed->back().sha256[31], std::byte{0xee});
}

TEST(TokenFileTest, EmptyFileLetsNobodyIn) {
  const auto parsed = ParseTokenFile("# nobody\n", "t");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(*parsed, IsEmpty());
}

TEST(TokenFileTest, TypingErrorsAreRefusedWithTheirPlace) {
  const std::string good = "roles = [\"read\"]\nlogs = [\"x\"]\n";
  EXPECT_THAT(FaultOf("[[token"), HasSubstr("t:1:"));
  EXPECT_THAT(FaultOf("[[tokens]]\n"), HasSubstr("unknown key \"tokens\""));
  EXPECT_THAT(FaultOf("token = 1\n"), HasSubstr("is not a list of [[token]]"));
  EXPECT_THAT(FaultOf("token = [1]\n"), HasSubstr("is a [[token]] table"));
  EXPECT_THAT(FaultOf(EntryWith("a", good + "role = 1\n")),
              HasSubstr("t:6:1: unknown key \"role\""));
  EXPECT_THAT(FaultOf(EntryWith("a", "logs = [\"x\"]\n")),
              HasSubstr("key \"roles\" is missing"));
  EXPECT_THAT(FaultOf(EntryWith("a", "roles = [\"read\"]\n")),
              HasSubstr("key \"logs\" is missing"));
  EXPECT_THAT(FaultOf("[[token]]\nname = \"a\"\n" + good),
              HasSubstr("key \"sha256\" is missing"));
  EXPECT_THAT(FaultOf(EntryWith("a b", good)),
              HasSubstr("t:2:8: \"a b\" is no name of a token"));
  EXPECT_THAT(FaultOf(EntryWith(std::string(65, 'a'), good)),
              HasSubstr("is no name of a token"));
  EXPECT_THAT(FaultOf(EntryWith("a", "roles = [\"write\"]\nlogs = [\"x\"]\n")),
              HasSubstr("\"write\" is no role. Roles are append, read and"));
  for (const char* list : {"\"read\"", "[]", "[1]", "[\"read\", 1]"}) {
    EXPECT_THAT(FaultOf(EntryWith(
                    "a", absl::StrCat("roles = ", list, "\nlogs = [\"x\"]\n"))),
                HasSubstr("\"roles\" is not a list of strings"));
  }
  EXPECT_THAT(FaultOf(EntryWith("a", "roles = [\"read\"]\nlogs = [\"a/b\"]\n")),
              HasSubstr("t:5:"));
  EXPECT_THAT(FaultOf(EntryWith("a", good + "expires = 2027-01-31T00:00:00\n")),
              HasSubstr("has no time zone"));
  EXPECT_THAT(FaultOf(EntryWith("a", good + "expires = 2027-01-31\n")),
              HasSubstr("\"expires\" is a date"));
  EXPECT_THAT(FaultOf(EntryWith("a", good + "expires = \"2027\"\n")),
              HasSubstr("\"expires\" is a string"));
  for (const char* rate : {"requests_per_second", "bytes_per_second"}) {
    for (const char* value : {"0", "-1", "2000000000000"}) {
      EXPECT_THAT(
          FaultOf(EntryWith("a", absl::StrCat(good, rate, " = ", value, "\n"))),
          HasSubstr(
              absl::StrCat("\"", rate, "\" is ", value, "; it must be 1 to")));
    }
    EXPECT_THAT(FaultOf(EntryWith("a", absl::StrCat(good, rate, " = \"1\"\n"))),
                HasSubstr(absl::StrCat("\"", rate, "\" is a string")));
  }
}

// The token may stand there by mistake.
TEST(TokenFileTest, DigestThatIsNoneIsNotShown) {
  for (const char* text : {"alph_secret", "", "zz"}) {
    const std::string fault =
        FaultOf(absl::StrCat("[[token]]\nname = \"a\"\nsha256 = \"", text,
                             "\"\nroles = [\"read\"]\nlogs = [\"x\"]\n"));
    EXPECT_THAT(fault, HasSubstr("t:3:10: \"sha256\" is no digest"));
    EXPECT_THAT(fault, Not(HasSubstr("secret")));
  }
}

TEST(TokenFileTest, NamesAndDigestsAreGivenOnce) {
  const std::string rest = "roles = [\"read\"]\nlogs = [\"x\"]\n";
  EXPECT_THAT(FaultOf(EntryWith("a", rest) + EntryWith("a", rest)),
              HasSubstr("token \"a\" has the name of token \"a\""));
  EXPECT_THAT(FaultOf(EntryWith("a", rest) + EntryWith("b", rest)),
              HasSubstr("token \"b\" has the digest of token \"a\""));
}

TEST(NewTokenTest, IsRandomAndItsEntryFits) {
  Random random(1);
  const auto first =
      MakeToken("a", {"append", "read"}, {"main", "*"}, "", random);
  const auto second = MakeToken("a", {"append"}, {"main"}, "", random);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(first->token, MatchesRegex("alph_[0-9a-f]{64}"));
  EXPECT_NE(first->token, second->token);
  EXPECT_THAT(first->entry, Not(HasSubstr(first->token)));
  const auto parsed = ParseTokenFile(first->entry, "t");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->front().sha256, Sha256(first->token));
  EXPECT_TRUE(parsed->front().is_for_all_logs);
  EXPECT_FALSE(parsed->front().rates.is_limited());
  const Rates rates = {.requests = 7, .bytes = 9};
  const auto paced = MakeToken("a", {"append"}, {"main"}, "", random, rates);
  ASSERT_TRUE(paced.ok()) << paced.status();
  EXPECT_EQ(ParseTokenFile(paced->entry, "t")->front().rates, rates);
}

TEST(NewTokenTest, WhatTheServerWouldRefuseIsRefused) {
  Random random(1);
  const auto fault = [&](const std::string& name, const std::string& role,
                         const std::string& log, const std::string& expires) {
    return std::string(
        MakeToken(name, {role}, {log}, expires, random).status().message());
  };
  EXPECT_THAT(fault("\"", "read", "x", ""), HasSubstr("no name of a token"));
  EXPECT_THAT(fault("a", "write", "x", ""), HasSubstr("is no role"));
  EXPECT_THAT(fault("a", "read", "\"", ""), HasSubstr("log"));
  EXPECT_THAT(fault("a", "read", "x", "soon"), HasSubstr("not valid TOML"));
  EXPECT_THAT(fault("a", "read", "x", "2027-01-31"), HasSubstr("is a date"));
}

class AddToTokenFileTest : public ::testing::Test {
 protected:
  std::string Entry(const std::string& name) {
    const auto made = MakeToken(name, {"read"}, {"main"}, "", random_);
    EXPECT_TRUE(made.ok()) << made.status();
    return made->entry;
  }
  std::vector<std::string> Names() const {
    const auto entries = LoadTokenFile(path_);
    EXPECT_TRUE(entries.ok()) << entries.status();
    std::vector<std::string> names;
    for (const TokenEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }

  const testing::TempDirectory directory_;
  const std::string path_ = directory_.File("tokens");
  Random random_{1};
};

TEST_F(AddToTokenFileTest, BeginsAFileOfTheOwnersAloneAndGoesOn) {
  ASSERT_TRUE(AddToTokenFile(path_, Entry("a")).ok());
  struct stat found{};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  ASSERT_TRUE(AddToTokenFile(path_, Entry("b")).ok());
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_THAT(Names(), ElementsAre("a", "b"));
}

// One that comes at the same time is told so, and nothing is lost.
TEST_F(AddToTokenFileTest, EntriesThatComeAtOnceAreAllThere) {
  ASSERT_TRUE(AddToTokenFile(path_, Entry("first")).ok());
  std::vector<std::string> names = {"first"};
  std::vector<std::thread> threads;
  for (const char* who : {"a", "b"}) {
    std::vector<std::string> entries;
    for (int i = 0; i < 5; ++i) {
      names.push_back(absl::StrCat(who, i));
      entries.push_back(Entry(names.back()));
    }
    threads.emplace_back([this, entries = std::move(entries)] {
      for (const std::string& entry : entries) {
        absl::Status added = AddToTokenFile(path_, entry);
        while (absl::IsFailedPrecondition(added)) {
          added = AddToTokenFile(path_, entry);
        }
        EXPECT_TRUE(added.ok()) << added;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Names(), UnorderedElementsAreArray(names));
}

TEST_F(AddToTokenFileTest, WhatIsThereStaysIfTheEntryDoesNotFit) {
  ASSERT_TRUE(AddToTokenFile(path_, Entry("a")).ok());
  const absl::Status refused = AddToTokenFile(path_, Entry("a"));
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has the name of"));
  EXPECT_THAT(Names(), ElementsAre("a"));
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  const absl::Status open = AddToTokenFile(path_, Entry("b"));
  EXPECT_TRUE(absl::IsFailedPrecondition(open)) << open;
  EXPECT_THAT(std::string(open.message()), HasSubstr("has mode 644"));
  EXPECT_FALSE(AddToTokenFile(directory_.File("no/such"), Entry("c")).ok());
}

}  // namespace
}  // namespace alpheus::rpc
