// SPDX-License-Identifier: Apache-2.0
// Three nodes, and a program at each that stands for primary. The primary is
// killed, stopped, drained, and another one goes on; nothing that was
// acknowledged is lost, doubled or moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/process/cluster_fixture.h"
#include "tests/process/fail_over_fixture.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/writers/cluster_writer.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ProgramFailOverTest, KilledPrimaryIsReplacedAgainAndAgain) {
  Begin();
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  for (int round = 0; round < 5; ++round) {
    const int node = primary->plan().node;
    Kill(primary);
    demo::ClusterWriter* const next = Next(primary);
    ASSERT_NE(next, nullptr);
    Stand(node, {"--silence-ms", "5000"});
    primary = next;
  }
  CheckAll();
}

// It finds its log failed, and waits again.
TEST_F(ProgramFailOverTest, StoppedPrimaryIsReplacedAndComesBack) {
  Begin();  // a silence that others do not keep because the machine is busy
  demo::ClusterWriter* const primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  primary->Pause();
  demo::ClusterWriter* const next = Next(primary);
  ASSERT_NE(next, nullptr);
  primary->Continue();
  ASSERT_TRUE(Eventually([&] {
    return primary->said().find("is no longer primary") != std::string::npos;
  })) << Said();
  // Elected, it goes on.
  RunWell("elect", {"--log", "main", "--timeout", PatienceSeconds(),
                    absl::StrCat(primary->plan().node)});
  EXPECT_EQ(Next(next), primary) << Said();
  CheckAll();
}

// CAN2 (candidate.h): appends are under way all the time. One that fails ends
// the primary's term, or its program, and both show. Nobody has another reason
// to take the log away.
TEST_F(ProgramFailOverTest, DrainedPrimaryHandsOverWithoutAnUnknownOutcome) {
  limits_ = {.ring_bytes_max = 1 << 20, .unacknowledged_max = 64};
  Begin({"--silence-ms", "60000"});
  demo::ClusterWriter* const primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  const uint64_t acknowledged = primary->ack_count();
  const auto drained = programs_->RunBesideLoad(cluster_->Alpheus(
      "drain", {"--log", "main", "--timeout", PatienceSeconds(),
                absl::StrCat(primary->plan().node)}));
  ASSERT_TRUE(drained.ok()) << drained.status() << "\n" << Said();
  EXPECT_EQ(drained->end.exit_status, kGood) << drained->error;
  EXPECT_THAT(drained->output, HasSubstr(" is primary, in epoch "));
  ASSERT_NE(Next(primary), nullptr);
  EXPECT_GT(primary->ack_count(), acknowledged) << "nothing was under way";
  EXPECT_FALSE(primary->end()) << Said();
  EXPECT_EQ(primary->LossCount(), 0u) << Said();
  CheckAll();
}

// Its input never makes it wait, and it has read thousands of records that it
// has not appended: they wait for its next term.
TEST_F(ProgramFailOverTest, DrainedPrimaryAppendsNoMoreOfItsInput) {
  constexpr size_t kRecords = 20'000;
  StartCluster();
  MakeLog();
  {
    std::ofstream input(directory_.File("input"));
    for (size_t i = 0; i < kRecords; ++i) input << i << "\n";
  }
  demo::Program program = cluster_->Alpheus(
      "append", {"--log", "main", "--stand", "--ack", "--node", "1", "--file",
                 cluster_->region(1, "main"), "--silence-ms", "60000",
                 "--ack-timeout-ms", "60000"});
  const std::vector<std::string> shell = {
      "/bin/sh", "-c",
      absl::StrCat("exec \"$0\" \"$@\" <", directory_.File("input"), " >",
                   directory_.File("acks"), " 2>", directory_.File("said"))};
  program.argv.insert(program.argv.begin(), shell.begin(), shell.end());
  auto drained = demo::ChildProcess::Start(program);
  ASSERT_TRUE(drained.ok()) << drained.status();
  const auto lines_of = [&](const std::string& name) {
    std::ifstream file(directory_.File(name));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  };
  ASSERT_TRUE(Eventually([&] { return lines_of("acks").size() > 10; }));
  demo::ClusterWriter& other = Stand(2, {"--silence-ms", "60000"});
  ASSERT_TRUE(Eventually([&] { return other.HasSaidThatItStands(); }));
  RunWell("drain", {"--log", "main", "--timeout", PatienceSeconds(), "1"});
  EXPECT_EQ(Next(nullptr), &other) << Said();
  const std::vector<std::string> acks = lines_of("acks");
  EXPECT_LT(acks.size(), kRecords);
  for (size_t i = 0; i < acks.size(); ++i) {
    EXPECT_THAT(acks[i], HasSubstr(absl::StrCat(" ", i, " 0"))) << "in order";
  }
  for (const std::string& line : lines_of("said")) {
    EXPECT_THAT(line, Not(HasSubstr("is no longer primary")));
  }
}

TEST_F(ProgramFailOverTest, PriorityDecidesAmongEquals) {
  StartCluster();
  MakeLog();
  demo::ClusterWriter& third =
      Stand(3, {"--priority", "5", "--silence-ms", "5000"});
  ASSERT_EQ(Next(nullptr), &third);
  demo::ClusterWriter& first =
      Stand(1, {"--priority", "1", "--silence-ms", "5000"});
  demo::ClusterWriter& second =
      Stand(2, {"--priority", "9", "--silence-ms", "5000"});
  ASSERT_TRUE(Eventually([&] {
    return first.HasSaidThatItStands() && second.HasSaidThatItStands();
  })) << Said();
  // All are as fresh.
  ASSERT_TRUE(Eventually([&] {
    return std::ranges::all_of(Status(), [](const nlohmann::json& replica) {
      return replica.value("in_sync", false);
    });
  })) << Said();
  Kill(&third);
  EXPECT_EQ(Next(nullptr), &second) << Said();
  CheckAll();
}

// The primary is heard each 10 s only, and a candidate bears 90 ms. It finds
// out that the primary was there if that stands again within a second: on a
// busy machine not at the first time.
TEST_F(ProgramFailOverTest, WrongSuspicionIsTold) {
  StartCluster();
  MakeLog();
  demo::ClusterWriter& rare =
      Stand(1, {"--silence-ms", "30000", "--heartbeat-ms", "10000"});
  ASSERT_EQ(Next(nullptr), &rare);
  demo::ClusterWriter& hasty =
      Stand(2, {"--silence-ms", "90", "--heartbeat-ms", "30"});
  const auto has_told = [&] {
    return hasty.said().find(
               "suspected the primary wrongly; it bears a silence "
               "of ") != std::string::npos;
  };
  for (size_t losses = 1; !has_told(); ++losses) {
    ASSERT_TRUE(Eventually([&] {
      return has_told() || rare.LossCount() >= losses;
    })) << Said();
    if (has_told()) break;
    RunWell("elect", {"--log", "main", "--timeout", PatienceSeconds(), "1"});
  }
  CheckAll();
}

TEST_F(ProgramFailOverTest, NobodyIsElectedWhereNobodyStands) {
  StartCluster();
  Format("main", "4MiB");
  const demo::ProgramResult nobody =
      Run("elect", {"--log", "main", "--timeout", "15", "2"});
  EXPECT_EQ(nobody.end.exit_status, kFailed);
  EXPECT_THAT(nobody.error, HasSubstr("nobody stands for primary at node 2"));
}

}  // namespace
}  // namespace alpheus::testing
