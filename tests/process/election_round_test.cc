// SPDX-License-Identifier: Apache-2.0
// Do rounds of elections pass with each fault, and do they notice a cluster
// that lies? A script stands in for `alpheus`: it passes everything on to the
// real one, but for one lie.
#include "tools/nemesis/rounds/election_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/process/cluster_fixture.h"
#include "tools/nemesis/rounds/election_nemesis.h"

namespace alpheus::demo {
namespace {

using ::testing::HasSubstr;

class ElectionRoundTest : public alpheus::testing::ClusterTest {
 protected:
  static ElectionPlan PlanOf(ElectionFault fault) {
    ElectionPlan plan;
    plan.fault = fault;
    plan.acks_before = 20;
    plan.acks_after = 20;
    return plan;
  }
  // The round, and the last check.
  absl::Status RunRound(const std::string& binary, const ElectionPlan& plan) {
    ClusterOptions options = ThreeNodes(directory_.path());
    options.alpheus = binary;
    StartCluster(options);
    ElectionRoundOptions round;
    round.region_bytes = 2 << 20;
    round.is_patient =
        plan.load_nanos > 0 || plan.fault == ElectionFault::kDrain;
    ElectionRounds rounds(round, cluster_.get(), /*servers=*/nullptr, &feed_);
    const auto report = rounds.RunRound(plan);
    if (!report.ok()) return report.status();
    EXPECT_GE(report->acknowledged_count, plan.acks_before + plan.acks_after);
    EXPECT_GE(report->epoch_count, 1u);
    return rounds.Finish();
  }
  // Runs `lie` (shell; "$1" is the command) before it passes on.
  void ExpectLieFound(const std::string& lie, const std::string& message) {
    const std::string path = directory_.File("liar");
    std::ofstream(path) << "#!/bin/sh\n"
                        << lie << "\nexec " << ALPHEUS_BINARY << " \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    const absl::Status status =
        RunRound(path, PlanOf(ElectionFault::kKillPrimary));
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
};

class EachElectionFaultTest
    : public ElectionRoundTest,
      public ::testing::WithParamInterface<ElectionFault> {};

TEST_P(EachElectionFaultTest, HonestClusterPasses) {
  const absl::Status status = RunRound(ALPHEUS_BINARY, PlanOf(GetParam()));
  EXPECT_TRUE(status.ok()) << status;
}

INSTANTIATE_TEST_SUITE_P(Collisions, EachElectionFaultTest,
                         ::testing::ValuesIn(kCollisions));
INSTANTIATE_TEST_SUITE_P(
    Others, EachElectionFaultTest,
    ::testing::Values(ElectionFault::kNone, ElectionFault::kKillPrimary,
                      ElectionFault::kKillMachine, ElectionFault::kPause,
                      ElectionFault::kCut, ElectionFault::kDrain,
                      ElectionFault::kElect));

TEST_F(ElectionRoundTest, BackupThatIsGoneBesideThePrimaryIsBorne) {
  ElectionPlan plan = PlanOf(ElectionFault::kKillPrimary);
  plan.hits_backup = true;
  const absl::Status status = RunRound(ALPHEUS_BINARY, plan);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ElectionRoundTest, PrimaryStaysUnderLoadUntilItIsKilled) {
  ElectionPlan plan = PlanOf(ElectionFault::kKillPrimary);
  plan.load_nanos = 500'000'000;
  const absl::Status status = RunRound(ALPHEUS_BINARY, plan);
  EXPECT_TRUE(status.ok()) << status;
}

// Each program claims the same epoch.
TEST_F(ElectionRoundTest, TwoPrimariesOfAnEpochAreFound) {
  ExpectLieFound(
      "case \"$1\" in append)\n"
      "echo 'alpheus: log log-1: node 0 is primary, in epoch 1' >&2;; esac",
      "two programs are primary of epoch 1");
}

// Gives nothing back when the log is read.
TEST_F(ElectionRoundTest, LostLogIsFound) {
  ExpectLieFound("case \"$1\" in cat) exit 0;; esac", "RO1");
}

TEST_F(ElectionRoundTest, ProgramThatEndsByItselfIsFound) {
  ExpectLieFound("case \"$1\" in append) exit 3;; esac",
                 "ended by itself with exit status 3");
}

}  // namespace
}  // namespace alpheus::demo
