// SPDX-License-Identifier: Apache-2.0
// Status tells of a cluster's log that can't be opened, or soon not; and the
// ways out that messages and docs/use/operating.md name, as they are typed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "log/base/bytes.h"
#include "nlohmann/json.hpp"
#include "tests/support/fixtures/test_cluster.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Arguments OfCluster(const TestCluster& cluster, const std::string& command,
                    const Arguments& more = {}) {
  Arguments arguments = {command, "--cluster", cluster.file(), "--log", "main"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class CliClusterHealthTest : public ::testing::Test {
 protected:
  Arguments Of(const std::string& command, const Arguments& more = {}) const {
    return OfCluster(cluster_, command, more);
  }
  void FormatAndAppend(const std::string& lines) {
    RunWell(Of("format", {"--size", "256KiB"}));
    RunWell(Of("append", {"--node", "1"}), lines);
  }
  json Status() {
    return json::parse(RunAlpheus(Of("status", {"--json"})).output);
  }
  // A bit of the payload, with the node stopped.
  void Damage(int node, std::string_view payload) {
    cluster_.Stop(node);
    auto bytes = ReadFile(cluster_.ReplicaPath(node));
    const size_t at = AsText(bytes).find(payload);
    ASSERT_NE(at, std::string_view::npos);
    bytes[at] ^= std::byte{1};
    WriteFile(cluster_.ReplicaPath(node), bytes);
    cluster_.Start(node);
  }

  const TempDirectory directory_;
  TestCluster cluster_{3};
};

// The commands under a heading, one a line.
std::vector<std::string> CommandsOf(const std::string& heading) {
  std::ifstream in(ALPHEUS_RECOVERY_DOCUMENT);
  std::vector<std::string> commands;
  bool is_under = false;
  for (std::string line; std::getline(in, line);) {
    if (absl::StartsWith(line, "#")) is_under = line == heading;
    absl::string_view command = line;
    if (is_under && absl::ConsumePrefix(&command, "    ")) {
      commands.emplace_back(std::string(command));
    }
  }
  return commands;
}

// Goal: a damage that opening has met is known to status, named once by whoever
// reads, and the document's way out of it works.
TEST_F(CliClusterHealthTest, DamageOnAllReplicasHasAWayOut) {
  FormatAndAppend("record-one\nrecord-two\nrecord-three\n");
  for (const int node : {1, 2, 3}) Damage(node, "record-two");
  const ProgramResult append =
      RunAlpheus(Of("append", {"--node", "1"}), "record-four\n");
  EXPECT_EQ(append.end.exit_status, kDataLoss);
  EXPECT_THAT(append.error,
              HasSubstr("\"Damage on all replicas\" in docs/use/operating.md"));
  const auto expect_lost = [&](const Arguments& more) {
    const ProgramResult status = RunAlpheus(Of("status", more));
    EXPECT_EQ(status.end.exit_status, kDataLoss) << status.output;
    EXPECT_THAT(status.output,
                AllOf(HasSubstr("in the newest epoch; damaged: LSN 2\n"),
                      HasSubstr("LSN 2 can't be read on any replica that is "
                                "served, so the log can't be opened")));
    EXPECT_EQ(CountOf(status.error, "LSN 2"), 1u) << status.error;
  };
  expect_lost({});
  expect_lost({"--all"});
  for (int pass = 0; pass < 2; ++pass) {
    const ProgramResult scrub = RunAlpheus(Of("scrub"));
    EXPECT_EQ(scrub.end.exit_status, kDataLoss);
    EXPECT_THAT(scrub.error, AllOf(HasSubstr("1 damage could not be repaired"),
                                   HasSubstr("\"Damage on all replicas\"")));
  }
  expect_lost({});
  EXPECT_EQ(CountOf(RunAlpheus(Of("status")).output,
                    "scrubbed since the node started: 4 records"),
            3u);
  const json said = Status();
  EXPECT_EQ(said["can_be_opened"], false);
  EXPECT_EQ(said["warnings"].size(), 1u);
  for (const json& replica : said["replicas"]) {
    EXPECT_EQ(replica["damaged_lsns"], json::parse("[[2, 2]]"));
    EXPECT_EQ(replica["scrubbed"]["damaged"], 1);  // found twice
    EXPECT_EQ(replica["scrubbed"]["unrepairable"], 1);
  }
  for (const char* command : {"verify", "inspect", "cat"}) {
    const ProgramResult read = RunAlpheus(Of(command));
    EXPECT_EQ(read.end.exit_status, kDataLoss) << command;
    EXPECT_EQ(CountOf(read.error, "LSN 2 at offset"), 3u) << read.error;
    EXPECT_THAT(read.error, Not(HasSubstr("FILE")));
  }
  const ProgramResult busy = RunAlpheus(
      {"salvage", cluster_.ReplicaPath(1), directory_.File("rescued")});
  EXPECT_THAT(busy.error, HasSubstr("it is alpheusd of node 1, or a primary: "
                                    "stop it first"));
  // The document's commands, as it has them.
  const auto commands = CommandsOf("### Damage on all replicas");
  ASSERT_EQ(commands.size(), 6u);
  for (const std::string& command : commands) {
    const bool is_of_each = absl::StartsWith(command, "mv ");
    if (absl::StartsWith(command, "alpheus salvage")) cluster_.Stop(1);
    for (const int node : {1, 2, 3}) {
      if (node > 1 && !is_of_each) break;
      if (node > 1) cluster_.Stop(node);
      const ProgramResult typed = RunInShell(absl::StrReplaceAll(
          command,
          {{"alpheus ", "\"$0\" "},
           {"/var/lib/alpheus/main.alpheus", cluster_.ReplicaPath(node)},
           {"/var/lib/alpheus/main.damaged",
            cluster_.ReplicaPath(node) + ".damaged"},
           {"rescued", directory_.File("rescued")},
           {"main.records", directory_.File("main.records")},
           {"cluster.toml", cluster_.file()}}));
      const bool finds_damage = absl::StartsWith(command, "alpheus scrub") ||
                                absl::StartsWith(command, "alpheus salvage");
      EXPECT_EQ(typed.end.exit_status, finds_damage ? kDataLoss : kGood)
          << command << typed.error;
      if (is_of_each) cluster_.Start(node);
    }
  }
  EXPECT_EQ(RunWell(Of("cat")), "record-one\nrecord-three\n");
  EXPECT_EQ(RunAlpheus(Of("status", {"--all"})).end.exit_status, kGood);
}

// Goal: what one peer has whole is no loss, but damage until it is repaired.
TEST_F(CliClusterHealthTest, DamageThatANodeKnowsIsNotGoodUntilItIsRepaired) {
  FormatAndAppend("record-one\nrecord-two\n");
  Damage(1, "record-two");
  Damage(2, "record-two");
  EXPECT_EQ(RunAlpheus(Of("status")).end.exit_status, kGood);  // nobody looked
  cluster_.Stop(3);
  EXPECT_EQ(RunAlpheus(Of("scrub", {"--node", "1"})).end.exit_status,
            kDataLoss);
  EXPECT_THAT(RunAlpheus(Of("status")).error,
              AllOf(HasSubstr("damaged: LSN 2 of node 1. `alpheus scrub"),
                    HasSubstr(" --log main` repairs")));
  EXPECT_EQ(Status()["can_be_opened"], true);  // as far as is known
  EXPECT_EQ(RunAlpheus(Of("scrub", {"--node", "2"})).end.exit_status,
            kDataLoss);
  EXPECT_EQ(Status()["can_be_opened"], false);
  cluster_.Start(3);
  EXPECT_EQ(Status()["can_be_opened"], true);
  EXPECT_EQ(RunAlpheus(Of("status")).end.exit_status, kDataLoss);
  RunWell(Of("scrub"));
  EXPECT_EQ(RunAlpheus(Of("status")).end.exit_status, kGood);
}

// Goal: an opening repairs what it reads, and status knows.
TEST_F(CliClusterHealthTest, DamageThatAnOpeningRepairedIsNoMore) {
  FormatAndAppend("record-one\nrecord-two\n");
  Damage(1, "record-two");
  cluster_.Stop(2);
  cluster_.Stop(3);
  EXPECT_EQ(RunAlpheus(Of("scrub", {"--node", "1"})).end.exit_status,
            kDataLoss);
  cluster_.Start(2);
  cluster_.Start(3);
  EXPECT_EQ(RunAlpheus(Of("status")).end.exit_status, kDataLoss);
  RunWell(Of("append", {"--node", "2"}), "record-three\n");
  const ProgramResult status = RunAlpheus(Of("status"));
  EXPECT_EQ(status.end.exit_status, kGood) << status.error;
  EXPECT_THAT(status.error, IsEmpty());
  EXPECT_THAT(status.output, Not(HasSubstr("damaged: LSN")));
}

// Goal: W are in sync, but whoever opens the log would fail.
TEST(CliClusterOfFiveTest, TooFewForAnOpeningIsNotGood) {
  TestCluster cluster(5, 2);
  RunWell(OfCluster(cluster, "format", {"--size", "256KiB"}));
  RunWell(OfCluster(cluster, "append", {"--node", "1"}), "one\n");
  cluster.Stop(4);
  EXPECT_EQ(RunAlpheus(OfCluster(cluster, "status")).end.exit_status, kGood);
  cluster.Stop(5);
  const ProgramResult status = RunAlpheus(OfCluster(cluster, "status"));
  EXPECT_EQ(status.end.exit_status, kUnavailable);
  EXPECT_THAT(status.output, HasSubstr("3 in sync\n"));
  EXPECT_THAT(
      status.error,
      AllOf(HasSubstr("log main: Opening the log takes 4 replicas, and the "
                      "nodes serve 3: start 1 more node"),
            HasSubstr(absl::StrCat("`alpheus append --cluster ", cluster.file(),
                                   " --log main --node 4 --file "
                                   "DIRECTORY/main.alpheus`"))));
  const json said =
      json::parse(RunAlpheus(OfCluster(cluster, "status", {"--json"})).output);
  EXPECT_EQ(said["can_be_opened"], false);
}

// Goal: cluster_id is right, and nobody is sent to compare it.
TEST_F(CliClusterHealthTest, FileThatIsNotTheNodesOwnIsToldAsThat) {
  FormatAndAppend("one\n");
  RunWell({"format", "--cluster", cluster_.file(), "--log", "other", "--size",
           "256KiB"});
  const std::string own = cluster_.ReplicaPath(3);
  const std::vector<std::pair<std::string, std::string>> files = {
      {cluster_.ReplicaPath(1), "its file is the replica of node 1"},
      {cluster_.ReplicaPath(3, "other"), "its file is of another log"}};
  for (const auto& [file, why] : files) {
    cluster_.Stop(3);
    std::filesystem::copy_file(
        file, own, std::filesystem::copy_options::overwrite_existing);
    cluster_.Start(3);
    const ProgramResult status = RunAlpheus(Of("status"));
    EXPECT_EQ(status.end.exit_status, kFailed) << status.error;
    EXPECT_THAT(
        status.error,
        AllOf(HasSubstr(why),
              HasSubstr("a wrong file is in the node's directory"),
              HasSubstr(absl::StrCat("`alpheus replace --cluster ",
                                     cluster_.file(), " --log main --node 3`")),
              Not(HasSubstr("cluster_id"))));
    EXPECT_THAT(status.output, HasSubstr("3 nodes answer"));
  }
}

// Goal: nothing is counted that was not.
TEST_F(CliClusterHealthTest, NewLogHasNoCounts) {
  FormatAndAppend("one\n");
  EXPECT_THAT(RunWell(Of("status")),
              AllOf(Not(HasSubstr("rejected")), Not(HasSubstr("scrubbed"))));
}

}  // namespace
}  // namespace alpheus::testing
