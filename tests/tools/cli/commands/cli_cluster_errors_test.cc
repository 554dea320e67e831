// SPDX-License-Identifier: Apache-2.0
// The commands on a cluster's log tell a user what is wrong, where, and what to
// do, if the user got something wrong or the cluster is not as it should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/format/superline.h"
#include "nlohmann/json.hpp"
#include "tests/support/fixtures/test_cluster.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CliClusterErrorsTest : public ::testing::Test {
 protected:
  Arguments Of(const std::string& command, const Arguments& more = {}) const {
    return OfFile(command, cluster_.file(), more);
  }
  static Arguments OfFile(const std::string& command, const std::string& file,
                          const Arguments& more = {}) {
    Arguments arguments = {command, "--cluster", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  void FormatAndAppend(const std::string& lines) {
    RunWell(Of("format", {"--size", "256KiB"}));
    RunWell(Of("append", {"--node", "1"}), lines);
  }

  // Each command that reads ends like that; append says the same, but when it
  // asks the nodes (`asks`) it can't tell whether more of them would help.
  void ExpectAll(const std::string& file, int exit_status, bool asks,
                 const ::testing::Matcher<std::string>& error) {
    for (const std::string command :
         {"status", "cat", "verify", "inspect", "scrub"}) {
      const ProgramResult result = RunAlpheus(OfFile(command, file));
      EXPECT_EQ(result.end.exit_status, exit_status)
          << command << ": " << result.error;
      EXPECT_THAT(result.error, error) << command;
    }
    const ProgramResult result =
        RunAlpheus(OfFile("append", file, {"--node", "1"}));
    EXPECT_EQ(result.end.exit_status, asks ? kUnavailable : exit_status)
        << result.error;
    EXPECT_THAT(result.error, error);
  }

  // The cluster's file with another text in one place.
  std::string FileWith(const std::string& old, const std::string& now) const {
    std::ifstream in(cluster_.file());
    std::string text((std::istreambuf_iterator<char>(in)),
                     std::istreambuf_iterator<char>());
    const size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    text.replace(at, old.size(), now);
    const std::string path = directory_.File("changed.toml");
    std::ofstream(path) << text;
    return path;
  }

  const TempDirectory directory_;
  TestCluster cluster_{3};
};

TEST_F(CliClusterErrorsTest, ClusterFileThatIsNotThereIsNamed) {
  const std::string file = directory_.File("nosuch.toml");
  ExpectAll(file, kFailed, /*asks=*/false,
            HasSubstr(absl::StrCat(file, " can't be opened")));
}

TEST_F(CliClusterErrorsTest, ClusterFileThatIsNoneIsBadUsage) {
  const std::string file = FileWith("cluster_id", "cluster");
  ExpectAll(file, kUsage, /*asks=*/false,
            AllOf(HasSubstr(file), HasSubstr("cluster")));
}

// The nodes have a key.
TEST_F(CliClusterErrorsTest, WhoeverLacksTheKeyIsTold) {
  FormatAndAppend("one\n");
  const std::string file =
      FileWith(absl::StrCat("key_file = \"", cluster_.key_file(), "\""), "");
  ExpectAll(file, kFailed, /*asks=*/true,
            AllOf(HasSubstr("proof of the cluster's key"),
                  HasSubstr("key_file"), HasSubstr("node ")));
  // The operator sees that somebody came.
  const ProgramResult status = RunAlpheus(Of("status"));
  EXPECT_THAT(status.output,
              AllOf(HasSubstr("rejected since the node started, for all "
                              "its logs: "),
                    HasSubstr(" no proof\n")));
  const ProgramResult lines = RunAlpheus(Of("status", {"--json"}));
  const json said = json::parse(lines.output);
  EXPECT_GE(said["replicas"][0]["rejected"]["no proof"], 4);
}

TEST_F(CliClusterErrorsTest, KeyIsMadeOnceAndShownToNobody) {
  const std::string key = directory_.File("new.key");
  const ProgramResult made = RunAlpheus({"key", "new", key});
  EXPECT_EQ(made.end.exit_status, kGood) << made.error;
  EXPECT_THAT(made.output, IsEmpty());
  const auto bytes = ReadFile(key);
  ASSERT_EQ(bytes.size(), 65u);
  EXPECT_THAT(made.error,
              AllOf(HasSubstr(key),
                    Not(HasSubstr(std::string(AsText(bytes)).substr(0, 16)))));
  const ProgramResult again = RunAlpheus({"key", "new", key});
  EXPECT_EQ(again.end.exit_status, kFailed);
  EXPECT_THAT(again.error, HasSubstr("Nothing was changed"));
  EXPECT_THAT(again.error, Not(HasSubstr("emove")));
  EXPECT_EQ(ReadFile(key), bytes);
  for (const Arguments& wrong : {Arguments{"key"}, Arguments{"key", "new"},
                                 Arguments{"key", "old", key}}) {
    EXPECT_EQ(RunAlpheus(wrong).end.exit_status, kUsage);
  }
}

TEST_F(CliClusterErrorsTest, LogThatWasNeverFormattedIsSaidToBe) {
  ExpectAll(cluster_.file(), kFailed, /*asks=*/false,
            AllOf(HasSubstr("none has a replica of this log"),
                  HasSubstr(absl::StrCat("`alpheus format --cluster ",
                                         cluster_.file(),
                                         " --log main --size SIZE`"))));
}

// A command that waits long on a slow machine says so; the rest is its error.
std::string WithoutWaitNotices(const std::string& error) {
  std::vector<std::string> lines = absl::StrSplit(error, '\n');
  std::erase_if(lines, [](const std::string& line) {
    return absl::StrContains(line, ": waiting for ");
  });
  return absl::StrJoin(lines, "\n");
}

TEST_F(CliClusterErrorsTest, UnknownLogIsNamed) {
  FormatAndAppend("one\n");
  const std::string next = cluster_.WriteList(2, {1, 2, 3}, 3);
  const Arguments unknown = {"--log", "nosuch"};
  std::vector<Arguments> commands;
  for (const char* command :
       {"status", "cat", "verify", "inspect", "scrub", "tail"}) {
    commands.push_back(Of(command, unknown));
  }
  commands.push_back(Of("append", {"--log", "nosuch", "--node", "1"}));
  commands.push_back(Of("cleanup", {"--log", "nosuch", "--through", "1"}));
  commands.push_back(Of("replace", {"--log", "nosuch", "--node", "1"}));
  commands.push_back(OfFile("reconfigure", next,
                            {"--log", "nosuch", "--from", cluster_.file()}));
  commands.push_back({"export-wal", "--cluster", cluster_.file(), "--log",
                      "nosuch", directory_.File("wal")});
  for (const Arguments& command : commands) {
    const ProgramResult result = RunAlpheus(command, "x\n");
    EXPECT_EQ(result.end.exit_status, kFailed) << command.front();
    EXPECT_THAT(WithoutWaitNotices(result.error),
                AllOf(HasSubstr(absl::StrCat(
                          "alpheus: log nosuch: all nodes of ", cluster_.file(),
                          " answer, and none has a replica of this log. Is the "
                          "name right? `alpheus format --cluster ",
                          cluster_.file(), " --log nosuch --size SIZE`")),
                      Not(HasSubstr("replace"))))
        << command.front();
    EXPECT_THAT(result.output, Not(HasSubstr("start")));
  }
  // The node that is asked for alone says it of itself.
  const ProgramResult one =
      RunAlpheus(Of("cat", {"--log", "nosuch", "--node", "2"}));
  EXPECT_EQ(one.end.exit_status, kFailed);
}

TEST_F(CliClusterErrorsTest, FileOfAnotherClusterIsFoundOut) {
  FormatAndAppend("one\n");
  ExpectAll(FileWith("9f0c5f5e", "8f0c5f5e"), kFailed, /*asks=*/true,
            HasSubstr("another cluster"));
}

TEST_F(CliClusterErrorsTest, FileWithOtherQuorumsIsFoundOut) {
  FormatAndAppend("one\n");
  const std::string file =
      FileWith("cluster_id", "write_quorum = 3\ncluster_id");
  for (const char* command : {"status", "cat", "verify"}) {
    const ProgramResult result = RunAlpheus(OfFile(command, file));
    EXPECT_EQ(result.end.exit_status, kFailed) << result.error;
    EXPECT_THAT(result.error,
                AllOf(HasSubstr("W = 2"), HasSubstr("W = 3"), HasSubstr(file)));
  }
}

// Goal: a member that left keeps what it had and says nothing wrong, and N and
// W are the same: only the configuration tells that it is not all.
TEST_F(CliClusterErrorsTest, ReadersByAnOldListAreTold) {
  const TestCluster cluster(4);
  const std::string old = cluster.WriteList(1, {1, 2, 3}, 2);
  const std::string now = cluster.WriteList(2, {1, 2, 4}, 2);
  RunWell(OfFile("format", old, {"--size", "256KiB"}));
  RunWell(OfFile("append", old, {"--node", "1"}), "before\n");
  auto follow = demo::ChildProcess::Start(
      AlpheusProgram(OfFile("tail", old, {"--follow"})));
  ASSERT_TRUE(follow.ok()) << follow.status();
  std::string shown;
  while (shown != "before\n") {
    ASSERT_TRUE(demo::ReadSome(follow->output().get(), &shown)) << shown;
  }
  RunWell({"reconfigure", "--from", old, "--cluster", now});
  RunWell(OfFile("append", now, {"--node", "1"}), "after\n");
  EXPECT_EQ(follow->Wait().exit_status, kFailed);  // and not silently behind
  for (const std::string command :
       {"status", "cat", "tail", "verify", "inspect", "scrub"}) {
    const ProgramResult result = RunAlpheus(OfFile(command, old));
    EXPECT_EQ(result.end.exit_status, kFailed) << command << result.error;
    EXPECT_THAT(result.error,
                AllOf(HasSubstr("has configuration 2"), HasSubstr(old),
                      HasSubstr("Use the newest cluster file")))
        << command;
    EXPECT_THAT(result.output, Not(HasSubstr("the same on nodes"))) << command;
  }
  // The member that left, by itself: its promise is above what it has.
  const ProgramResult left =
      RunAlpheus(OfFile("tail", old, {"--node", "3", "--timeout-ms", "500"}));
  EXPECT_EQ(left.end.exit_status, kUnavailable) << left.error;
  EXPECT_EQ(RunWell(OfFile("tail", now)), "before\nafter\n");
}

// Goal: a user with the next list hears of the change that is to be made, and
// of nothing that would not make it.
TEST_F(CliClusterErrorsTest, ListThatIsAheadOfTheLogNamesTheChange) {
  const TestCluster cluster(4);
  const std::string old = cluster.WriteList(1, {1, 2, 3}, 2);
  RunWell(OfFile("format", old, {"--size", "256KiB"}));
  RunWell(OfFile("append", old, {"--node", "1"}), "one\n");
  // With the same N and W, and with others.
  const std::string same = cluster.WriteList(2, {1, 2, 4}, 2);
  const std::string larger = cluster.WriteList(3, {1, 2, 3, 4}, 3);
  for (const std::string& now : {same, larger}) {
    const ProgramResult status = RunAlpheus(OfFile("status", now));
    EXPECT_THAT(status.output,
                AllOf(HasSubstr("The log has configuration 1"),
                      HasSubstr("no replica of this log: the change"),
                      Not(HasSubstr("alpheus replace"))));
    EXPECT_THAT(status.error,
                AllOf(HasSubstr("warning: log main has configuration 1"),
                      HasSubstr(absl::StrCat("`alpheus reconfigure --cluster ",
                                             now, " --log main --from OLD`"))));
    const json said =
        json::parse(RunAlpheus(OfFile("status", now, {"--json"})).output);
    EXPECT_EQ(said["log_configuration_id"], 1);
    // Nothing is made, and nobody promises, for a replacement by that list.
    const std::string before = RunWell(OfFile("status", old));
    const ProgramResult replace =
        RunAlpheus(OfFile("replace", now, {"--node", "4"}));
    EXPECT_EQ(replace.end.exit_status, kFailed);
    EXPECT_THAT(replace.error, AllOf(HasSubstr("the log has configuration 1"),
                                     HasSubstr("Nothing was changed"),
                                     HasSubstr("run `alpheus reconfigure`")));
    EXPECT_FALSE(std::filesystem::exists(cluster.ReplicaPath(4)));
    EXPECT_EQ(RunWell(OfFile("status", old)), before);
  }
  RunWell({"reconfigure", "--cluster", same, "--log", "main", "--from", old});
  const ProgramResult status = RunAlpheus(OfFile("status", same));
  EXPECT_THAT(status.error, IsEmpty());
  EXPECT_THAT(status.output, Not(HasSubstr("The log has configuration")));
  // A user with the old list hears that it is old, not of a change to come.
  const ProgramResult late =
      RunAlpheus(OfFile("replace", old, {"--node", "3"}));
  EXPECT_EQ(late.end.exit_status, kFailed);
  EXPECT_THAT(late.error,
              AllOf(HasSubstr("the log has configuration 2"),
                    HasSubstr("Give the list of members that the log has"),
                    Not(HasSubstr("alpheus reconfigure"))));
}

TEST_F(CliClusterErrorsTest, NodeThatIsToJoinAndIsDownIsToBeStarted) {
  TestCluster cluster(5);
  const std::string old = cluster.WriteList(1, {1, 2, 3}, 2);
  RunWell(OfFile("format", old, {"--size", "256KiB"}));
  cluster.Stop(4);
  const std::string one = cluster.WriteList(2, {1, 2, 4}, 2);
  const Arguments change = {"reconfigure", "--cluster", one, "--from", old};
  const ProgramResult joins = RunAlpheus(change);
  EXPECT_EQ(joins.end.exit_status, kUnavailable);
  EXPECT_THAT(joins.error,
              AllOf(HasSubstr("log main: node 4 must run before the change: "
                              "start it, and run the same command again"),
                    HasSubstr("nobody answers")));
  cluster.Stop(3);
  const ProgramResult replace =
      RunAlpheus(OfFile("replace", old, {"--node", "3"}));
  EXPECT_EQ(replace.end.exit_status, kUnavailable);
  EXPECT_THAT(replace.error, HasSubstr("node 3 must run before the change"));
  cluster.Start(3);
  cluster.Stop(5);
  const ProgramResult two =
      RunAlpheus({"reconfigure", "--cluster",
                  cluster.WriteList(3, {1, 2, 3, 4, 5}, 3), "--from", old});
  EXPECT_THAT(two.error, HasSubstr("nodes 4, 5 must run before the change: "
                                   "start them"));
  // The remedy, as it is given.
  cluster.Start(4);
  EXPECT_EQ(RunAlpheus(change).end.exit_status, kGood);
}

// Goal: two of three are away; the third can't know what they acknowledged
// (ClusterTailTest.TailOfTooFewIsInDoubt, which gives it all the time it
// needs).
TEST_F(CliClusterErrorsTest, TailOfTooFewIsNotTheEnd) {
  FormatAndAppend("one\n");
  // Each opening gives the third what it lacks.
  while (RunAlpheus(Of("tail", {"--node", "3"})).output != "one\n") {
    RunWell(Of("append", {"--node", "1"}), "");
  }
  cluster_.Stop(1);
  cluster_.Stop(2);
  const ProgramResult result = RunAlpheus(Of("tail", {"--timeout-ms", "1000"}));
  EXPECT_EQ(result.end.exit_status, kUnavailable) << result.error;
  // On a busy machine the third may be silent for that time, too.
  if (!absl::StrContains(result.error, "for 1000 ms")) {
    EXPECT_THAT(result.error, HasSubstr("2 of 3 members"));
    EXPECT_EQ(result.output, "one\n");
  }
}

TEST_F(CliClusterErrorsTest, NodeThatIsNoMemberIsNamedWithThoseThatAre) {
  FormatAndAppend("one\n");
  for (const char* command :
       {"cat", "verify", "inspect", "append", "replace"}) {
    const ProgramResult result = RunAlpheus(Of(command, {"--node", "9"}));
    EXPECT_NE(result.end.exit_status, kGood) << command;
    EXPECT_THAT(result.error, AllOf(HasSubstr("node 9"), HasSubstr("member")))
        << command;
  }
  // Beside one that is, too.
  const ProgramResult both =
      RunAlpheus(Of("replace", {"--node", "3", "--node", "9"}));
  EXPECT_EQ(both.end.exit_status, kUsage);
  EXPECT_THAT(both.error,
              AllOf(HasSubstr(absl::StrCat(cluster_.file(),
                                           ": node 9 is not a member of the "
                                           "cluster, which has nodes 1, 2, 3")),
                    HasSubstr("Nothing was changed")));
}

TEST_F(CliClusterErrorsTest, StatusWithANodeDownSaysWhatIsLeft) {
  FormatAndAppend("one\n");
  cluster_.Stop(2);
  const ProgramResult one = RunAlpheus(Of("status"));
  EXPECT_EQ(one.end.exit_status, kGood) << one.error;
  EXPECT_THAT(one.output,
              AllOf(HasSubstr("2 of 3 replicas reached, W is 2"),
                    HasSubstr("durable up to LSN 1"), HasSubstr("2 in sync"),
                    HasSubstr("nobody answers"), Not(HasSubstr("Opening"))));
  cluster_.Stop(3);
  const ProgramResult two = RunAlpheus(Of("status"));
  EXPECT_EQ(two.end.exit_status, kUnavailable);
  EXPECT_THAT(two.output,
              HasSubstr("Opening the log takes 2 replicas, and the nodes serve "
                        "1: start 1 more node. Or open it"));
}

// All is told of each node, also in JSON, when there is none.
TEST_F(CliClusterErrorsTest, StatusWithoutAnyNodeListsThemAll) {
  FormatAndAppend("one\n");
  for (const int node : {1, 2, 3}) cluster_.Stop(node);
  const ProgramResult text = RunAlpheus(Of("status"));
  EXPECT_EQ(text.end.exit_status, kUnavailable);
  EXPECT_THAT(text.output, AllOf(HasSubstr("0 of 3"), HasSubstr("2 more")));
  const ProgramResult lines = RunAlpheus(Of("status", {"--json"}));
  EXPECT_EQ(lines.end.exit_status, kUnavailable);
  const std::vector<json> said = ParseLines(lines.output);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0]["replicas"].size(), 3u);
  EXPECT_EQ(said[0]["durable_lsn"], nullptr);
  EXPECT_FALSE(said[0]["can_be_opened"]);
  for (const json& node : said[0]["replicas"]) {
    EXPECT_FALSE(node["reached"]) << node;
  }
  const ProgramResult cat = RunAlpheus(Of("cat"));
  EXPECT_EQ(cat.end.exit_status, kUnavailable);
  for (const char* node : {"node 1", "node 2", "node 3"}) {
    EXPECT_THAT(cat.error, HasSubstr(node));
  }
}

// A repair is cut short on a node that is down: it holds nothing that counts.
void MarkRepairing(const std::string& path) {
  auto bytes = ReadFile(path);
  const CellPlace place = SuperlinePlace(std::span(bytes));
  const CellState cell = ReadCell(place);
  auto superline = DecodeSuperline(cell.copies[*cell.newest].content);
  ASSERT_TRUE(superline.ok()) << superline.status();
  superline->repairing = true;
  for (const int index : {0, 1}) {
    std::ranges::copy(
        EncodeCellCopy(place, index, cell.copies[*cell.newest].seq + 1,
                       EncodeSuperline(*superline)),
        place.copies[static_cast<size_t>(index)]);
  }
  WriteFile(path, bytes);
}

TEST_F(CliClusterErrorsTest, StatusNamesAReplicaThatIsRepairing) {
  FormatAndAppend("one\n");
  cluster_.Stop(3);
  MarkRepairing(cluster_.ReplicaPath(3));
  cluster_.Start(3);
  const ProgramResult result = RunAlpheus(Of("status"));
  EXPECT_EQ(result.end.exit_status, kGood) << result.error;
  EXPECT_THAT(
      result.output,
      AllOf(HasSubstr("3 of 3 replicas reached, W is 2"),
            HasSubstr(
                "1 of those reached is repairing: records there do not count"),
            Not(HasSubstr("Opening"))));
  const json said = ParseLines(RunWell(Of("status", {"--json"}))).at(0);
  for (const json& node : said["replicas"]) {
    EXPECT_EQ(node["repairing"], node["node"] == 3) << node;
  }
  EXPECT_EQ(RunWell(Of("cat")), "one\n");
  EXPECT_THAT(RunWell(Of("verify")), HasSubstr("on nodes 1, 2 (W is 2)"));
  RunWell(Of("append", {"--node", "1"}), "two\n");
  EXPECT_THAT(RunWell(Of("status")), Not(HasSubstr("repairing")));
}

// Both may promise, which would be enough; but only one of them can tell what
// nobody has.
TEST_F(CliClusterErrorsTest, RepairingReplicaIsNotCountedOnForOpening) {
  FormatAndAppend("one\n");
  cluster_.Stop(2);
  cluster_.Stop(3);
  MarkRepairing(cluster_.ReplicaPath(3));
  cluster_.Start(3);
  const ProgramResult status = RunAlpheus(Of("status"));
  EXPECT_EQ(status.end.exit_status, kUnavailable);
  EXPECT_THAT(
      status.output,
      AllOf(HasSubstr("2 of 3 replicas reached"),
            HasSubstr("Opening the log takes 2 replicas that are not "
                      "repairing, and the nodes serve 1: start 1 more")));
  // The reason depends on how far it comes in this time; that of one which
  // comes to ask them is in recovery/opening/epoch_opening_test.cc.
  LogOptions options;
  options.replication = {.cluster_file = cluster_.file(),
                         .node = 1,
                         .gather_ms = 0,
                         .open_timeout_ms = 300};
  const auto log = Log::Open(options);
  EXPECT_TRUE(absl::IsUnavailable(log.status())) << log.status();
}

TEST_F(CliClusterErrorsTest, PortInUseIsNamed) {
  demo::Program program;
  program.argv = {ALPHEUSD_BINARY,  "--cluster", cluster_.file(),
                  "--node",         "1",         "--directory",
                  directory_.path()};
  const auto result = demo::RunProgram(program);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end.exit_status, kFailed);
  EXPECT_THAT(result->error,
              AllOf(HasSubstr("binding to 127."), HasSubstr("in use"),
                    HasSubstr("end it, or give this one another address")));
}

// Named once, with what helps at once.
TEST_F(CliClusterErrorsTest, DamagedReplicaIsNamedOnceAndScrubbed) {
  FormatAndAppend("one\ntwo\n");
  cluster_.Stop(2);
  const std::string replica = cluster_.ReplicaPath(2);
  uint64_t offset = 0;
  {
    const auto reader = LogReader::Open(replica);
    ASSERT_TRUE(reader.ok()) << reader.status();
    ASSERT_TRUE((*reader)
                    ->ForEach([&](const ReaderRecord& record) {
                      if (record.lsn == Lsn(1)) offset = record.offset;
                      return absl::OkStatus();
                    })
                    .ok());
  }
  auto bytes = ReadFile(replica);
  bytes[offset + kRecordHeaderBytes] ^= std::byte{1};
  WriteFile(replica, bytes);
  cluster_.Start(2);
  for (const char* command : {"verify", "inspect"}) {
    const ProgramResult damaged = RunAlpheus(Of(command));
    EXPECT_EQ(damaged.end.exit_status, kDataLoss) << command;
    EXPECT_THAT(
        damaged.error,
        AllOf(HasSubstr("node 2: LSN 1 at offset"),
              HasSubstr(absl::StrCat("`alpheus scrub --cluster ",
                                     cluster_.file(), " --log main` repairs")),
              Not(HasSubstr("node 2: node 2"))))
        << command;
  }
  RunWell({"scrub", "--cluster", cluster_.file(), "--log", "main"});
  EXPECT_THAT(RunWell(Of("verify")), HasSubstr("the same on nodes 1, 2, 3"));
}

TEST_F(CliClusterErrorsTest, OwnReplicaThatIsNotThereIsNoReasonToFormat) {
  FormatAndAppend("one\n");
  const std::string nosuch = directory_.File("nosuch");
  const ProgramResult result =
      RunAlpheus(Of("append", {"--node", "1", "--file", nosuch}));
  EXPECT_EQ(result.end.exit_status, kFailed);
  EXPECT_THAT(
      result.error,
      AllOf(HasSubstr(nosuch), HasSubstr("main.alpheus"),
            HasSubstr(absl::StrCat("`alpheus replace --cluster ",
                                   cluster_.file(), " --log main --node 1`")),
            Not(HasSubstr("format"))));
  const ProgramResult stands =
      RunAlpheus(Of("append", {"--node", "1", "--file", nosuch, "--stand"}));
  EXPECT_EQ(stands.end.exit_status, kFailed);
  EXPECT_THAT(stands.error,
              AllOf(HasSubstr("expected the replica of node 1"),
                    HasSubstr("`alpheus replace "), Not(HasSubstr("format"))));
}

TEST_F(CliClusterErrorsTest, CatSaysWhenMoreMayBeDurable) {
  FormatAndAppend("one\n");
  EXPECT_THAT(RunAlpheus(Of("cat")).error, IsEmpty());
  cluster_.Stop(1);
  cluster_.Stop(2);
  const ProgramResult result = RunAlpheus(Of("cat"));
  EXPECT_EQ(result.end.exit_status, kUnavailable);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.error,
              HasSubstr("durable for certain up to LSN 0; too few"));
  // The replica itself has it, and says that it does not know.
  EXPECT_EQ(RunWell(Of("cat", {"--node", "3"})), "one\n");
  const auto lines = ParseLines(RunWell(Of("cat", {"--node", "3", "--json"})));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["state"], "completed");
  const ProgramResult gone = RunAlpheus(Of("cat", {"--node", "1"}));
  EXPECT_EQ(gone.end.exit_status, kUnavailable);
  EXPECT_THAT(gone.error, HasSubstr("node 1"));
}

}  // namespace
}  // namespace alpheus::testing
