// SPDX-License-Identifier: Apache-2.0
// The commands on a cluster's log: what they print, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/fabrics/silent_node.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CliClusterTest : public ::testing::Test {
 protected:
  void Format() {
    const std::string id =
        RunWell({"format", "--cluster", cluster_.file(), "--size", "256KiB"});
    EXPECT_EQ(id.size(), 33u) << id;
  }
  Arguments Of(const std::string& command, const Arguments& more = {}) const {
    Arguments arguments = {command, "--cluster", cluster_.file()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TestCluster cluster_{3};
};

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(CliClusterTest, RecordsComeBackFromTheCluster) {
  Format();
  EXPECT_EQ(RunWell(Of("append", {"--node", "1"}), "one\ntwo\n"), "2\n");
  EXPECT_EQ(RunWell(Of("append", {"--node", "2"}), "three\n"), "3\n");
  EXPECT_EQ(RunWell(Of("cat")), "one\ntwo\nthree\n");
  EXPECT_EQ(RunWell(Of("cat", {"--node", "3"})), "one\ntwo\nthree\n");
  const auto lines = ParseLines(RunWell(Of("cat", {"--json"})));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2]["state"], "durable");
  EXPECT_EQ(lines[2]["lsn"], 3);
}

TEST_F(CliClusterTest, OwnReplicaIsNamedByItsFile) {
  Format();
  EXPECT_EQ(RunWell(Of("append", {"--node", "1", "--file",
                                  cluster_.ReplicaPath(1), "--ack"}),
                    "one\n"),
            "1 0 0\ndurable 1\n");
  EXPECT_EQ(RunWell({"cat", "--file", cluster_.ReplicaPath(1)}), "one\n");
}

TEST_F(CliClusterTest, StatusVerifyAndInspectShowEachReplica) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\ntwo\n");
  const std::string status = RunWell(Of("status"));
  EXPECT_THAT(status, HasSubstr("3 of 3 replicas reached, W is 2"));
  EXPECT_THAT(status, HasSubstr("no primary writes the log; 3 in sync"));
  const auto said = ParseLines(RunWell(Of("status", {"--json"})));
  ASSERT_EQ(said.size(), 1u);  // one object
  EXPECT_EQ(said[0]["primary"], nullptr);
  EXPECT_EQ(said[0]["in_sync"], json({1, 2, 3}));
  EXPECT_EQ(said[0]["durable_lsn"], 2);
  EXPECT_EQ(said[0]["ring"]["used"], 128);  // two records of a line each
  EXPECT_EQ(said[0]["epochs"]["used"], 1);
  EXPECT_TRUE(said[0]["can_be_opened"]);
  EXPECT_EQ(said[0]["warnings"], json::array());
  for (const json& replica : said[0]["replicas"]) {
    EXPECT_TRUE(replica["reached"]) << replica;
    EXPECT_EQ(replica["state"], "in the newest epoch") << replica;
  }
  EXPECT_THAT(RunWell(Of("verify")),
              HasSubstr("durable up to LSN 2: 2 records, the same on nodes 1, "
                        "2, 3 (W is 2)"));
  for (const json& replica : ParseLines(RunWell(Of("verify", {"--json"})))) {
    EXPECT_EQ(replica["verdict"], "complete") << replica;
    EXPECT_EQ(replica["data_records"], 2) << replica;
  }
  const auto inspected = ParseLines(RunWell(Of("inspect", {"--json"})));
  ASSERT_EQ(inspected.size(), 3u);
  EXPECT_EQ(inspected[1]["node"], 2);
  EXPECT_EQ(inspected[1]["replica_count"], 3);
  // A node marks no replica, and nothing is wrong with that.
  EXPECT_THAT(RunWell(Of("inspect", {"--node", "2"})),
              AllOf(HasSubstr("node 2"),
                    HasSubstr("closed cleanly    no mark: a replica of a "
                              "cluster needs none")));
}

TEST_F(CliClusterTest, NodeThatIsAwayIsNamedAndTold) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\n");
  cluster_.Stop(2);
  for (const char* command : {"verify", "inspect"}) {
    const ProgramResult result = RunAlpheus(Of(command));
    EXPECT_EQ(result.end.exit_status, kUnavailable) << result.error;
    EXPECT_THAT(result.error, HasSubstr("nobody answers")) << command;
  }
  // Two are enough to go on; a user who wants all says so.
  EXPECT_THAT(RunWell(Of("status")), HasSubstr("nobody answers"));
  const ProgramResult all = RunAlpheus(Of("status", {"--all"}));
  EXPECT_EQ(all.end.exit_status, kUnavailable) << all.error;
  EXPECT_EQ(RunWell(Of("cat")), "one\n");
  cluster_.Stop(1);
  cluster_.Stop(3);
  for (const char* command : {"status", "verify", "inspect", "cat"}) {
    EXPECT_EQ(RunAlpheus(Of(command)).end.exit_status, kUnavailable);
  }
}

TEST_F(CliClusterTest, DamagedReplicaIsNamedAndTold) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\ntwo\n");
  cluster_.Stop(3);
  auto bytes = ReadFile(cluster_.ReplicaPath(3));
  for (size_t i = 0; i < 8192; ++i) bytes[i] = std::byte{0};
  WriteFile(cluster_.ReplicaPath(3), bytes);
  cluster_.Start(3);
  EXPECT_THAT(cluster_.Reported(), HasSubstr("not served"));
  for (const char* command : {"status", "verify"}) {
    const ProgramResult result = RunAlpheus(Of(command));
    EXPECT_EQ(result.end.exit_status, kDataLoss) << result.error;
  }
  EXPECT_EQ(RunWell(Of("cat")), "one\ntwo\n");
  // Two replicas are enough, and the third stays as it is.
  EXPECT_EQ(RunWell(Of("append", {"--node", "2"}), "three\n"), "3\n");
}

// Goal: who writes and who is in sync, also of the replica that the primary has
// for itself, and how long the ring will last.
TEST_F(CliClusterTest, StatusBesideAPrimaryTellsTheTruth) {
  Format();
  for (const bool own : {false, true}) {
    Arguments append = Of("append", {"--node", "2", "--ack"});
    if (own) {
      append.insert(append.end(), {"--file", cluster_.ReplicaPath(2)});
    }
    auto writer = demo::ChildProcess::Start(AlpheusProgram(append));
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::string acked;
    ASSERT_EQ(write(writer->input().get(), "one\n", 4), 4);
    while (acked.empty()) {
      pollfd readable{writer->output().get(), POLLIN, 0};
      ASSERT_EQ(poll(&readable, 1, -1), 1);
      ASSERT_TRUE(demo::ReadSome(writer->output().get(), &acked));
    }
    // A backup may still be joining.
    json said;
    do {
      said =
          ParseLines(
              RunAlpheus(Of("status", {"--json", "--sample-ms", "0"})).output)
              .at(0);
    } while (said["in_sync"] != json({1, 2, 3}));
    ASSERT_EQ(said["primary"], 2) << said;
    EXPECT_EQ(said["replicas"][1]["primary_has_it"], own) << said;
    EXPECT_GT(said["ring"]["used"], 0) << said;
    EXPECT_THAT(RunWell(Of("status", {"--sample-ms", "0"})),
                AllOf(HasSubstr("node 2 is primary"), HasSubstr("3 in sync")));
    // The primary verifies its own, and its node tells
    // (docs/design/reading_and_scrubbing.md#scrubbing).
    const ProgramResult scrub = RunAlpheus(Of("scrub"));
    EXPECT_EQ(scrub.end.exit_status, kGood) << scrub.error << scrub.output;
    // Nobody ends it by chance.
    const ProgramResult cleanup = RunAlpheus(Of("cleanup", {"--all"}));
    EXPECT_EQ(cleanup.end.exit_status, kFailed);
    EXPECT_THAT(cleanup.error,
                AllOf(HasSubstr("node 2 writes it"), HasSubstr("--take-over")));
    writer->input().Close();
    EXPECT_EQ(writer->Wait().exit_status, kGood);
  }
}

// Nobody but the primary can read its own replica meanwhile.
TEST_F(CliClusterTest, VerifyBesideAPrimaryMissesItsOwnReplicaOnly) {
  Format();
  auto primary = demo::ChildProcess::Start(AlpheusProgram(Of(
      "append", {"--node", "1", "--file", cluster_.ReplicaPath(1), "--ack"})));
  ASSERT_TRUE(primary.ok()) << primary.status();
  ASSERT_EQ(write(primary->input().get(), "one\n", 4), 4);
  while (RunAlpheus(Of("status")).output.find("the primary's own") ==
         std::string::npos) {
  }
  ProgramResult verified = RunAlpheus(Of("verify"));
  EXPECT_EQ(verified.end.exit_status, kGood) << verified.error;
  EXPECT_THAT(
      verified.output,
      HasSubstr("node 1: not checked: a running primary has this replica"));
  EXPECT_EQ(RunAlpheus(Of("verify", {"--node", "1"})).end.exit_status,
            kUnavailable);
  cluster_.Stop(3);
  verified = RunAlpheus(Of("verify"));
  EXPECT_EQ(verified.end.exit_status, kUnavailable) << verified.output;
  primary->input().Close();
  primary->WaitFor(kPatienceNanos);
}

TEST_F(CliClusterTest, StatusWarnsBeforeTheRingIsFull) {
  Format();
  std::string lines;
  for (int i = 0; i < 8; ++i) lines.append(999, 'x').append("\n");
  json said;
  do {
    EXPECT_THAT(RunAlpheus(Of("status")).error, IsEmpty());
    RunWell(Of("append", {"--node", "1"}), lines);
    said = ParseLines(RunWell(Of("status", {"--json"}))).at(0);
  } while (said["ring"]["percent"] < 80);
  EXPECT_EQ(said["warnings"].size(), 1u);
  const ProgramResult result = RunAlpheus(Of("status"));
  EXPECT_EQ(result.end.exit_status, kGood) << result.error;
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("warning: the ring is"), HasSubstr("% full"),
                    HasSubstr("`alpheus cleanup --cluster " + cluster_.file() +
                              " --log main --through LSN`")));
  const ProgramResult full =
      RunAlpheus(Of("append", {"--node", "1"}),
                 lines + lines + lines + lines + lines + lines + lines);
  EXPECT_EQ(full.end.exit_status, kFailed);
  EXPECT_THAT(full.error,
              AllOf(HasSubstr("no room for"),
                    HasSubstr("`alpheus cleanup --cluster " + cluster_.file() +
                              " --log main --through LSN`")));
  // The remedy, as an operator types it.
  EXPECT_EQ(RunWell({"cleanup", "--cluster", cluster_.file(), "--log", "main",
                     "--through", "1"}),
            "2\n");
}

TEST_F(CliClusterTest, WarningNamesTheWordThatEndsAPrimary) {
  Format();
  std::string lines;
  for (int i = 0; i < 130; ++i) lines.append(999, 'x').append("\n");
  auto writer = demo::ChildProcess::Start(
      AlpheusProgram(Of("append", {"--node", "2", "--ack"})));
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (size_t done = 0; done < lines.size();) {
    pollfd writable{writer->input().get(), POLLOUT, 0};
    ASSERT_EQ(poll(&writable, 1, -1), 1);
    const ssize_t more =
        write(writer->input().get(), lines.data() + done, lines.size() - done);
    ASSERT_GT(more, 0);
    done += static_cast<size_t>(more);
  }
  for (std::string acked; !absl::StrContains(acked, "130 129 0\n");) {
    pollfd readable{writer->output().get(), POLLIN, 0};
    ASSERT_EQ(poll(&readable, 1, -1), 1);
    ASSERT_TRUE(demo::ReadSome(writer->output().get(), &acked)) << acked;
  }
  const ProgramResult status = RunAlpheus(Of("status", {"--sample-ms", "0"}));
  EXPECT_THAT(status.error,
              HasSubstr("`alpheus cleanup --cluster " + cluster_.file() +
                        " --log main --take-over --through LSN`"));
  EXPECT_EQ(RunWell({"cleanup", "--cluster", cluster_.file(), "--log", "main",
                     "--take-over", "--through", "1"}),
            "2\n");
  // It ends well if it has nothing more to write.
  writer->input().Close();
  writer->Wait();
}

TEST_F(CliClusterTest, CleanupMovesTheHead) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\ntwo\nthree\n");
  EXPECT_EQ(RunWell(Of("cleanup", {"--through", "1"})), "2\n");
  EXPECT_EQ(RunWell(Of("cat")), "two\nthree\n");
  EXPECT_EQ(RunWell(Of("cleanup", {"--through", "2", "--node", "3"})), "3\n");
  EXPECT_EQ(RunWell(Of("cat")), "three\n");
  const ProgramResult one = RunAlpheus(Of("cleanup", {"--lsn", "3"}));
  EXPECT_NE(one.end.exit_status, kGood);
  EXPECT_THAT(one.error, HasSubstr("--through or --all"));
  const ProgramResult never = RunAlpheus(Of("cleanup", {"--through", "9"}));
  EXPECT_EQ(never.end.exit_status, kFailed);
  EXPECT_THAT(never.error, AllOf(HasSubstr("LSN 9 was never assigned"),
                                 HasSubstr("the last one is 3")));
  EXPECT_EQ(RunWell(Of("cleanup", {"--all"})), "4\n");
  EXPECT_EQ(RunWell(Of("cat")), "");
  EXPECT_EQ(RunWell(Of("append", {"--node", "1"}), "four\n"), "4\n");
}

// A writer that stays until its input is closed, and has acked one record.
class HeldWriter {
 public:
  explicit HeldWriter(const Arguments& append)
      : writer_(*demo::ChildProcess::Start(AlpheusProgram(append))) {
    EXPECT_EQ(write(writer_.input().get(), "one\n", 4), 4);
    std::string acked;
    while (acked.find('\n') == std::string::npos) {
      EXPECT_TRUE(demo::ReadSome(writer_.output().get(), &acked)) << acked;
    }
  }
  demo::ProcessEnd Close() {
    writer_.input().Close();
    return writer_.Wait();
  }

 private:
  demo::ChildProcess writer_;
};

// Goal: what can't be cleaned is known before anybody is ended for it.
TEST_F(CliClusterTest, CleanupOfWhatWasNeverAssignedEndsNobody) {
  Format();
  // A new log, too: nothing was promised.
  const ProgramResult empty = RunAlpheus(Of("cleanup", {"--through", "1000"}));
  EXPECT_EQ(empty.end.exit_status, kFailed);
  EXPECT_THAT(empty.error, AllOf(HasSubstr("LSN 1000 was never assigned"),
                                 HasSubstr("Nothing was changed"),
                                 Not(HasSubstr("but promises"))));
  EXPECT_THAT(RunAlpheus(Of("status")).output,
              HasSubstr("epoch 0 promised 0 "));
  HeldWriter writer(Of("append", {"--node", "2", "--ack"}));
  const ProgramResult never =
      RunAlpheus(Of("cleanup", {"--take-over", "--through", "900"}));
  EXPECT_EQ(never.end.exit_status, kFailed);
  EXPECT_THAT(never.error, AllOf(HasSubstr("LSN 900 was never assigned"),
                                 HasSubstr("the last one is 1"),
                                 HasSubstr("Nothing was changed")));
  // An opening that is refused ends nobody either, and that is said.
  const ProgramResult no_member = RunAlpheus(
      Of("cleanup", {"--take-over", "--through", "1", "--node", "9"}));
  EXPECT_EQ(no_member.end.exit_status, kUsage);
  EXPECT_THAT(no_member.error,
              HasSubstr("Nothing was cleaned; node 2 goes on writing the log"));
  EXPECT_EQ(writer.Close().exit_status, kGood);
  // A given LSN is cleaned.
  HeldWriter next(Of("append", {"--node", "2", "--ack"}));
  EXPECT_EQ(RunWell(Of("cleanup", {"--take-over", "--through", "2"})), "3\n");
  next.Close();
}

// Goal: the primary's own replica is the only one, which nobody else reads.
TEST(CliClusterOfOneTest, CleanupOfWhatWasNeverAssignedEndsNobody) {
  const TestCluster cluster(1);
  const auto of = [&](const std::string& command, const Arguments& more) {
    Arguments arguments = {command, "--cluster", cluster.file()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  RunWell(of("format", {"--size", "256KiB"}));
  HeldWriter writer(
      of("append", {"--node", "1", "--ack", "--file", cluster.ReplicaPath(1)}));
  // Its node may not have heard of it yet.
  json said;
  do {
    said = json::parse(RunAlpheus(of("status", {"--json"})).output);
  } while (said["primary"] != 1);
  const ProgramResult never =
      RunAlpheus(of("cleanup", {"--take-over", "--through", "900"}));
  EXPECT_EQ(never.end.exit_status, kFailed);
  EXPECT_THAT(never.error, AllOf(HasSubstr("LSN 900 was never assigned"),
                                 HasSubstr("Nothing was changed"),
                                 Not(HasSubstr("was ended"))));
  EXPECT_EQ(writer.Close().exit_status, kGood);
}

// Goal: a user who feeds the rest of an input doubles no record.
TEST_F(CliClusterTest, RecordsWhoseOutcomeIsUnknownAreNotCountedAsMissing) {
  Format();
  auto append = demo::ChildProcess::Start(
      AlpheusProgram(Of("append", {"--node", "1", "--ack"})));
  ASSERT_TRUE(append.ok()) << append.status();
  ASSERT_EQ(write(append->input().get(), "0\n1\n2\n", 6), 6);
  std::string acks;
  while (std::ranges::count(acks, '\n') < 3) {
    ASSERT_TRUE(demo::ReadSome(append->output().get(), &acks)) << acks;
  }
  cluster_.Stop(2);
  cluster_.Stop(3);
  // It may have ended before, with no record under way.
  (void)!write(append->input().get(), "3\n", 2);
  append->input().Close();
  std::string error;
  while (demo::ReadSome(append->error().get(), &error)) {
  }
  EXPECT_EQ(append->Wait().exit_status, kUnavailable) << error;
  EXPECT_THAT(error, AnyOf(HasSubstr("At least 3 records of this input"),
                           HasSubstr(". 3 records of this input")));
  cluster_.Start(2);
  cluster_.Start(3);
  RunWell(Of("append", {"--node", "1"}), "");
  const std::string there = RunWell(Of("cat"));
  EXPECT_THAT(there, AnyOf("0\n1\n2\n", "0\n1\n2\n3\n"));
}

// Goal: a node that runs, and has lost its replica, is not said to be away.
TEST_F(CliClusterTest, MemberWithoutItsReplicaIsToldWhatItLacks) {
  Format();
  cluster_.Stop(3);
  std::filesystem::remove(cluster_.ReplicaPath(3));
  cluster_.Start(3);
  const ProgramResult append =
      RunAlpheus(Of("append", {"--node", "1"}), "one\n");
  EXPECT_EQ(append.end.exit_status, kGood) << append.error;
  EXPECT_THAT(
      append.error,
      AllOf(HasSubstr("out of sync: node 3: took no part in the opening: has "
                      "no replica of this log"),
            HasSubstr(absl::StrCat("`alpheus replace --cluster ",
                                   cluster_.file(), " --log main --node 3`"))));
}

// Goal: with one copy left both name the same bound, from the records.
TEST_F(CliClusterTest, StatusAndCatNameTheSameBoundOfOneCopy) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\ntwo\nthree\nfour\n");
  // The next opening writes into its header what was durable.
  RunWell(Of("append", {"--node", "1"}), "five\n");
  for (const int node : {1, 2, 3}) cluster_.Stop(node);
  cluster_.Start(3);
  const ProgramResult cat = RunAlpheus(Of("cat"));
  const json said =
      ParseLines(RunAlpheus(Of("status", {"--json"})).output).at(0);
  EXPECT_GT(said["durable_lsn"], 1) << said;
  EXPECT_THAT(cat.error,
              HasSubstr("durable for certain up to LSN " +
                        std::to_string(said["durable_lsn"].get<int>()) + ";"));
}

// Goal: a node that is stopped costs its time once, and the time is the
// operator's.
TEST_F(CliClusterTest, SilentNodeIsWaitedForOnce) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\n");
  cluster_.Stop(3);
  SilentNode silent(cluster_.AddressOf(3));
  const ProgramResult status =
      RunAlpheus(Of("status", {"--timeout-ms", "300"}));
  // A slow machine may be silent as well, and is told of then.
  const size_t silences = Count(status.output, "silent for 300 ms");
  EXPECT_GE(silences, 1u) << status.output << status.error;
  EXPECT_THAT(status.output,
              HasSubstr(absl::StrCat(3 - silences, " of 3 replicas reached")));
  EXPECT_EQ(silent.CountConnections(), 1);
  // On a busy machine the fabric's own deadline may be over before theirs is.
  for (const char* command : {"cat", "verify", "inspect", "scrub"}) {
    EXPECT_THAT(RunAlpheus(Of(command, {"--timeout-ms", "300"})).error,
                AllOf(HasSubstr("node 3"), AnyOf(HasSubstr("for 300 ms"),
                                                 HasSubstr("nobody answers"))))
        << command;
  }
  for (const char* command : {"status", "cat", "format", "scrub"}) {
    EXPECT_EQ(RunAlpheus(Of(command, {"--timeout-ms", "0"})).end.exit_status,
              kUsage)
        << command;
  }
}

// Goal: it hinders no other node. Its silence ends here by its end, once all
// have been asked, so that nobody depends on the time.
TEST_F(CliClusterTest, SilentNodeHindersNoOther) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\n");
  cluster_.Stop(3);
  std::thread silence([silent = std::make_unique<SilentNode>(cluster_.AddressOf(
                           3))] { silent->AwaitConnection(); });
  const ProgramResult status =
      RunAlpheus(Of("status", {"--timeout-ms", std::to_string(kPatienceMs)}));
  silence.join();
  EXPECT_EQ(status.end.exit_status, kGood) << status.error;
  EXPECT_THAT(status.output, HasSubstr("2 of 3 replicas reached"));
}

// A command that waits says so while it waits.
TEST_F(CliClusterTest, OpeningThatWaitsTells) {
  Format();
  cluster_.Stop(2);
  cluster_.Stop(3);
  auto append = demo::ChildProcess::Start(AlpheusProgram(
      Of("append", {"--node", "1", "--open-timeout-ms", "3600000"})));
  ASSERT_TRUE(append.ok()) << append.status();
  std::string said;
  pollfd more{append->error().get(), POLLIN, 0};
  do {
    ASSERT_EQ(poll(&more, 1, -1), 1);
  } while (demo::ReadSome(more.fd, &said) &&
           said.find('\n') == std::string::npos);
  EXPECT_THAT(said,
              AllOf(HasSubstr("log main: waiting for node 2 ("),
                    HasSubstr("node 3 ("), HasSubstr("gives up after 3600 s")));
}

// A log that is nowhere does not come by waiting; one of which a node may know
// may.
TEST_F(CliClusterTest, StatusOfALogThatIsNowhereHasFailed) {
  Format();
  const Arguments nosuch = Of("status", {"--log", "nosuch"});
  const ProgramResult nowhere = RunAlpheus(nosuch);
  EXPECT_EQ(nowhere.end.exit_status, kFailed);
  EXPECT_THAT(nowhere.error, AllOf(HasSubstr("log nosuch: "),
                                   HasSubstr("`alpheus format --cluster ")));
  for (const int down : {1, 3}) {
    cluster_.Stop(down);
    EXPECT_EQ(RunAlpheus(nosuch).end.exit_status, kUnavailable) << down;
    cluster_.Start(down);
  }
}

TEST_F(CliClusterTest, TailShowsWhatIsDurable) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\ntwo\nthree\n");
  EXPECT_EQ(RunWell(Of("tail")), "one\ntwo\nthree\n");
  EXPECT_EQ(RunWell(Of("tail", {"--from", "3", "--node", "2"})), "three\n");
  const auto lines = ParseLines(RunWell(Of("tail", {"--from", "2", "--json"})));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["lsn"], 2);
  EXPECT_EQ(lines[0]["length"], 3);
  EXPECT_EQ(lines[0]["payload"], "two");
  EXPECT_EQ(lines[2]["durable_lsn"], 3);
  RunWell(Of("append", {"--node", "1", "--framing", "len32"}),
          FrameLen32({"\xff\n"}));
  const auto bytes = ParseLines(RunWell(Of("tail", {"--from", "4", "--json"})));
  EXPECT_EQ(bytes.at(0)["payload_hex"], "ff0a");
}

TEST_F(CliClusterTest, TailFollowsUntilItIsInterrupted) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\n");
  auto tail =
      demo::ChildProcess::Start(AlpheusProgram(Of("tail", {"--follow"})));
  ASSERT_TRUE(tail.ok()) << tail.status();
  std::string output;
  const auto wait_for = [&](const std::string& text) {
    while (output != text) {
      pollfd readable{tail->output().get(), POLLIN, 0};
      ASSERT_EQ(poll(&readable, 1, -1), 1) << output;
      ASSERT_TRUE(demo::ReadSome(tail->output().get(), &output)) << output;
    }
  };
  wait_for("one\n");
  cluster_.Stop(2);
  RunWell(Of("append", {"--node", "3"}), "two\n");
  wait_for("one\ntwo\n");
  tail->Signal(SIGINT);
  const demo::ProcessEnd end = tail->Wait();
  EXPECT_EQ(end.exit_status, kGood) << end.ToString();
  std::string error;
  while (demo::ReadSome(tail->error().get(), &error)) {
  }
  EXPECT_THAT(error, HasSubstr("next LSN 3, durable up to LSN 2"));
}

// Goal: a script that goes on at the LSN that was named comes forward.
TEST_F(CliClusterTest, TailOfCleanedRecordsNamesWhereTheLogBegins) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\ntwo\nthree\n");
  RunWell(Of("cleanup", {"--through", "2"}));
  // A node that was too slow for the cleanup has them still, until an opening
  // brings it along.
  ProgramResult cleaned = RunAlpheus(Of("tail", {"--from", "1"}));
  while (cleaned.end.exit_status == kGood) {
    RunWell(Of("append", {"--node", "1"}), "");
    cleaned = RunAlpheus(Of("tail", {"--from", "1"}));
  }
  EXPECT_EQ(cleaned.end.exit_status, kFailed);
  EXPECT_THAT(cleaned.error,
              AllOf(HasSubstr("next LSN 3, durable up to LSN 3"),
                    HasSubstr("LSN 1 was cleaned"), HasSubstr("at LSN 3")));
  EXPECT_EQ(RunWell(Of("tail", {"--from", "3"})), "three\n");
  const ProgramResult unknown = RunAlpheus(Of("tail", {"--log", "nosuch"}));
  EXPECT_NE(unknown.end.exit_status, kGood);
  EXPECT_THAT(unknown.error, Not(HasSubstr("next LSN")));
}

TEST_F(CliClusterTest, TailSaysWhatKeepsItFromGoingOn) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\ntwo\n");
  // No node that has the next record is in reach.
  cluster_.Stop(1);
  cluster_.Stop(2);
  cluster_.Stop(3);
  const ProgramResult result = RunAlpheus(Of("tail", {"--timeout-ms", "300"}));
  EXPECT_EQ(result.end.exit_status, kUnavailable) << result.error;
  // On a busy machine its own time may be over before the nodes' is.
  EXPECT_THAT(result.error, AnyOf(HasSubstr("nobody answers"),
                                  HasSubstr("was not received for 300 ms")));
  EXPECT_EQ(RunAlpheus({"tail"}).end.exit_status, kUsage);
  EXPECT_EQ(RunAlpheus(Of("tail", {"--from", "x"})).end.exit_status, kUsage);
}

TEST_F(CliClusterTest, BadUsageIsRefused) {
  Format();
  const std::string file = cluster_.ReplicaPath(1);
  for (const Arguments& arguments :
       {Of("append"),
        Of("append", {"--node", "0"}),
        Of("append", {"--node", "x"}),
        Of("append", {"--node", "9"}),
        Of("append", {"--node", "1", "--log", "a/b"}),
        Of("append", {"--node", "1", "--ack-timeout-ms", "0"}),
        Of("append", {"--node", "1", "--open-timeout-ms", "0"}),
        Arguments{"append", "--file", file, "--ack-timeout-ms", "1"},
        Arguments{"append", "--file", file, "--stand"},
        Of("append", {"--node", "1", "--priority", "1"}),
        Of("append", {"--node", "1", "--silence-ms", "150"}),
        Of("append", {"--node", "1", "--silence-ms-max", "4000"}),
        Of("append", {"--node", "1", "--heartbeat-ms", "30"}),
        Of("append", {"--node", "1", "--stand", "--heartbeat-ms", "51"}),
        Of("append", {"--node", "1", "--stand", "--silence-ms", "2"}),
        Arguments{"cat", "--file", file, "--timeout-ms", "1"},
        Arguments{"export-wal", file, "wal", "--timeout-ms", "1"},
        Of("cat", {"--file", file}),
        Of("format", {"--file", file}),
        Of("format", {"--log", "other", "--size", "1"}),
        Arguments{"status"},
        Arguments{"cat", "--log", "main"},
        Arguments{"cat", "--file", file, "--node", "1"}}) {
    const ProgramResult result = RunAlpheus(arguments);
    EXPECT_EQ(result.end.exit_status, kUsage)
        << ::testing::PrintToString(arguments) << result.error;
    EXPECT_EQ(result.output, "");
  }
  EXPECT_EQ(RunAlpheus(Of("cat", {"--log", "nosuch"})).end.exit_status,
            kFailed);
  EXPECT_EQ(RunAlpheus(Of("format")).end.exit_status, kFailed);
}

}  // namespace
}  // namespace alpheus::testing
