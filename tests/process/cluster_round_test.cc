// SPDX-License-Identifier: Apache-2.0
// Do the rounds on a cluster notice one that lies? A script stands in for
// `alpheus`: it passes everything on to the real one, but for one lie.
#include "tools/nemesis/rounds/cluster_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "tests/process/cluster_fixture.h"

namespace alpheus::demo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClusterRoundTest : public alpheus::testing::ClusterTest {
 protected:
  // Runs `lie` (shell; "$1" is the command) before it passes on.
  std::string WriteLiar(const std::string& lie) {
    const std::string path = directory_.File("liar");
    std::ofstream(path) << "#!/bin/sh\n"
                        << lie << "\nexec " << ALPHEUS_BINARY << " \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  absl::StatusOr<ClusterRoundReport> RunRound(const std::string& binary,
                                              const RoundPlan& plan) {
    ClusterOptions options = ThreeNodes(directory_.path());
    options.alpheus = binary;
    StartCluster(options);
    ClusterRounds rounds({.region_bytes = 1 << 20}, cluster_.get(), &feed_);
    return rounds.RunRound(plan);
  }

  void ExpectLieFound(const RoundPlan& plan, const std::string& lie,
                      const std::string& message) {
    const auto report = RunRound(WriteLiar(lie), plan);
    EXPECT_TRUE(absl::IsDataLoss(report.status())) << report.status();
    EXPECT_THAT(std::string(report.status().message()), HasSubstr(message));
  }

  static RoundPlan PlanOf(Fault fault) {
    RoundPlan plan;
    plan.fault = fault;
    plan.acks_before = 20;
    plan.acks_after = 20;
    return plan;
  }
};

// Each kind of fault once, with a seed of its own.
class EachFaultTest : public ClusterRoundTest,
                      public ::testing::WithParamInterface<Fault> {};

TEST_P(EachFaultTest, HonestClusterPasses) {
  const NemesisCluster cluster = {
      .node_count = 3, .write_quorum = 2, .spare_count = 1};
  Random random(static_cast<uint64_t>(GetParam()));
  const RoundPlan plan = DrawRound(cluster, GetParam(), &random);
  const auto report = RunRound(ALPHEUS_BINARY, plan);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GE(report->acknowledged_count, plan.acks_before + plan.acks_after);
  EXPECT_GE(report->recovered_count, report->acknowledged_count);
}

INSTANTIATE_TEST_SUITE_P(Faults, EachFaultTest, ::testing::ValuesIn(kFaults));

// All that a plan may ask of a primary has been fed to it, however far ahead of
// its acknowledgements that is.
TEST_F(ClusterRoundTest, LongestPlanIsFedToItsEnd) {
  StartCluster(ThreeNodes(directory_.path()));
  const Feed feed = Feed::FromText(absl::StrCat(std::string(220, 'x'), "\n"));
  ClusterRounds rounds(ClusterRoundOptions(), cluster_.get(), &feed);
  RoundPlan plan = PlanOf(Fault::kResyncBackups);
  plan.hit_nodes = {2};
  plan.next_hits = {3};
  plan.acks_before = plan.acks_during = plan.acks_after = kPlannedAcksMax;
  const auto report = rounds.RunRound(plan);
  EXPECT_TRUE(report.ok()) << report.status();
}

// Acknowledges what it never stores.
TEST_F(ClusterRoundTest, EarlyAcknowledgementIsFound) {
  ExpectLieFound(PlanOf(Fault::kKillPrimary),
                 "case \"$*\" in append*--ack) i=0\n"
                 // Ever more: a look waits for some that come later.
                 "n=40; while :; do\n"
                 "while [ $i -lt $n ]; do echo $((i+1)) $i $((i%4)); "
                 "i=$((i+1)); done; n=$((n+40)); sleep 0.3; done;; esac",
                 "RO1");
}

// Gives back the first record only.
TEST_F(ClusterRoundTest, ShorterLogIsFound) {
  ExpectLieFound(PlanOf(Fault::kKillPrimary),
                 "case \"$*\" in cat*) " ALPHEUS_BINARY
                 " \"$@\" >\"$0.out\"; case \"$*\" in\n"
                 "*--json*) head -n 1 \"$0.out\";;\n"
                 // The first record is five letters behind number and tab.
                 "*) head -c 11 \"$0.out\";; esac; exit 0;; esac",
                 "RO1");
}

// Goes on as if there were a quorum.
TEST_F(ClusterRoundTest, AcknowledgementsWithoutAQuorumAreFound) {
  RoundPlan plan = PlanOf(Fault::kKillTooMany);
  plan.hit_nodes = {2, 3};
  ExpectLieFound(
      plan,
      "case \"$*\" in append*--ack) i=0\n"
      "while :; do read line; sleep 0.01; echo $((i+1)) $i $((i%4)); "
      "i=$((i+1)); done;; esac",
      "without a quorum");
}

// The primary stood still, and tells late of records that may have been durable
// before. The round finds that they were never stored.
TEST_F(ClusterRoundTest, LastRecordOfEachThreadMayBeAcknowledgedLate) {
  RoundPlan plan = PlanOf(Fault::kKillTooMany);
  plan.hit_nodes = {2, 3};
  const auto report =
      RunRound(WriteLiar("case \"$*\" in append*\"--node 1\"*--ack) i=0\n"
                         "while [ $i -lt 24 ]; do echo $((i+1)) $i $((i%4)); "
                         "i=$((i+1)); [ $i != 20 ] || sleep 4; done; "
                         "exec sleep 60;; esac"),
               plan);
  EXPECT_TRUE(absl::IsDataLoss(report.status())) << report.status();
  EXPECT_THAT(std::string(report.status().message()),
              AllOf(HasSubstr("RO1"), Not(HasSubstr("without a quorum"))));
}

// A node was silent when the log was first read.
TEST_F(ClusterRoundTest, LookThatShowsTooLittleForCertainIsRepeated) {
  const auto report = RunRound(
      WriteLiar(
          "case \"$*\" in cat*) if mkdir \"$0.lied\"; then " ALPHEUS_BINARY
          " \"$@\" >\"$0.out\"; head -c 11 \"$0.out\"; exit 4; fi;; esac"),
      PlanOf(Fault::kKillPrimary));
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(std::filesystem::exists(directory_.File("liar.lied")));
}

// The paused primary ends as if nothing had been.
TEST_F(ClusterRoundTest, PrimaryThatIsNotPushedAsideIsFound) {
  ExpectLieFound(PlanOf(Fault::kPausePrimary),
                 "case \"$*\" in append*\"--node 1\"*--ack) " ALPHEUS_BINARY
                 " \"$@\"; exit 0;; esac",
                 "not with an error");
}

TEST_F(ClusterRoundTest, PrimaryThatDiesByItselfIsFound) {
  ExpectLieFound(PlanOf(Fault::kKillPrimary),
                 "case \"$*\" in append*--ack) exit 1;; esac",
                 "ended with exit status 1");
}

TEST_F(ClusterRoundTest, RefusedOpeningIsFound) {
  ExpectLieFound(PlanOf(Fault::kNone),
                 "case \"$*\" in append*--ack*) ;; append*) exit 3;; esac",
                 "exit status 3");
}

TEST_F(ClusterRoundTest, NodeThatDiesByItselfIsFound) {
  ClusterOptions options = ThreeNodes(directory_.path());
  // It becomes the node's program, with the same number.
  options.wrappers = {{3,
                       {"/bin/sh", "-c", "echo $$ >\"$0\"; exec \"$@\"",
                        directory_.File("pid")}}};
  ASSERT_NO_FATAL_FAILURE(StartCluster(options));
  pid_t pid = 0;
  ASSERT_TRUE(std::ifstream(directory_.File("pid")) >> pid);
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  ClusterRounds rounds({.region_bytes = 1 << 20}, cluster_.get(), &feed_);
  const auto report = rounds.RunRound(PlanOf(Fault::kKillPrimary));
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("node 3"));
  cluster_.reset();  // that it is not well has been seen
}

}  // namespace
}  // namespace alpheus::demo
