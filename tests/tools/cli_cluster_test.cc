// SPDX-License-Identifier: Apache-2.0
// The commands on a cluster's log: what they print, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/testing/test_cluster.h"
#include "tests/tools/cli_fixture.h"
#include "tools/demo/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

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
  for (const json& replica : ParseLines(RunWell(Of("status", {"--json"})))) {
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
  EXPECT_THAT(RunWell(Of("inspect", {"--node", "2"})), HasSubstr("node 2"));
}

TEST_F(CliClusterTest, NodeThatIsAwayIsNamedAndTold) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\n");
  cluster_.Stop(2);
  for (const char* command : {"status", "verify", "inspect"}) {
    const ProgramResult result = RunAlpheus(Of(command));
    EXPECT_EQ(result.end.exit_status, kUnavailable) << result.error;
    EXPECT_THAT(result.error, HasSubstr("nobody answers")) << command;
  }
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
  EXPECT_THAT(cluster_.Told(), HasSubstr("not served"));
  for (const char* command : {"status", "verify"}) {
    const ProgramResult result = RunAlpheus(Of(command));
    EXPECT_EQ(result.end.exit_status, kDataLoss) << result.error;
  }
  EXPECT_EQ(RunWell(Of("cat")), "one\ntwo\n");
  // Two replicas are enough, and the third stays as it is.
  EXPECT_EQ(RunWell(Of("append", {"--node", "2"}), "three\n"), "3\n");
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
      ASSERT_EQ(poll(&readable, 1, 60'000), 1) << output;
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

TEST_F(CliClusterTest, TailSaysWhatKeepsItFromGoingOn) {
  Format();
  RunWell(Of("append", {"--node", "1"}), "one\ntwo\n");
  // What no node in reach has.
  cluster_.Stop(1);
  cluster_.Stop(2);
  cluster_.Stop(3);
  const ProgramResult result = RunAlpheus(Of("tail", {"--timeout-ms", "300"}));
  EXPECT_EQ(result.end.exit_status, kUnavailable) << result.error;
  // On a busy machine its own time may be over before the nodes' is.
  EXPECT_THAT(result.error, AnyOf(HasSubstr("nobody answers"),
                                  HasSubstr("did not come for 300 ms")));
  EXPECT_EQ(RunAlpheus({"tail"}).end.exit_status, kUsage);
  EXPECT_EQ(RunAlpheus(Of("tail", {"--from", "x"})).end.exit_status, kUsage);
}

TEST_F(CliClusterTest, BadUsageIsRefused) {
  Format();
  const std::string file = cluster_.ReplicaPath(1);
  for (const Arguments& arguments :
       {Of("append"), Of("append", {"--node", "0"}),
        Of("append", {"--node", "x"}), Of("append", {"--node", "9"}),
        Of("append", {"--node", "1", "--log", "a/b"}),
        Of("cat", {"--file", file}), Of("format", {"--file", file}),
        Of("format", {"--log", "other", "--size", "1"}), Arguments{"status"},
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
