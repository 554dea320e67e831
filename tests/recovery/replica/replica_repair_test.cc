// SPDX-License-Identifier: Apache-2.0
// The report of a replica, and the repair that follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "recovery/replica/local_replica.h"
#include "tests/recovery/replica/replica_fixture.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

using Code = absl::StatusCode;

// P-H7, REP2.
TEST_F(ReplicaTest, ReportedRecordsOutliveAPowerCut) {
  InstallLog();
  log_.Append("visible");
  world_.CopyRecords(log_, Lsn(3), Lsn(4));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  const auto report = replica().MakeStateReport();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->records, SizeIs(3));
  world_.PowerCut();
  EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b", "visible"));
}

TEST_F(ReplicaTest, ReportNamesThePromiseBeforeThisBallot) {
  ASSERT_TRUE(world_.AcceptPromise(Epoch(5)).ok());
  EXPECT_EQ(replica().MakeStateReport()->promised_before, Epoch(0));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  EXPECT_EQ(replica().MakeStateReport()->promised_before, Epoch(5));
}

TEST_F(ReplicaTest, RegionThatWentBadIsNotReportedFor) {
  InstallLog();
  for (const int line : {0, 1}) {
    WatermarkLine(world_.region(), line)[3] ^= std::byte{1};
  }
  ExpectRefused([&] { return replica().MakeStateReport().status(); },
                Code::kDataLoss, "watermark");
}

// P-H25: an installation reads each record, and the replica is suspect no more.
TEST_F(ReplicaTest, SuspectReplicaKnowsNothingUntilItIsInstalled) {
  InstallLog();
  ASSERT_TRUE(world_.Open({.name = "model", .suspect = true}).ok());
  EXPECT_FALSE(replica().MakeStateReport()->knows());
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  EXPECT_TRUE(replica().MakeStateReport()->knows());
}

// ND3 of hosted_logs.h: the next process that takes the region knows, though
// nobody tells it.
TEST_F(ReplicaTest, SuspicionIsOnTheMediumOnceItIsOpened) {
  InstallLog();
  ASSERT_TRUE(world_.Open({.name = "model", .suspect = true}).ok());
  world_.PowerCut();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_FALSE(replica().MakeStateReport()->knows());
}

// P-H12, REP4: also by the next process that opens the region.
TEST_F(ReplicaTest, RepairThatIsCutOffIsRemembered) {
  InstallLog();
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  EXPECT_TRUE(replica().superline().repairing);
  world_.PowerCut();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_FALSE(replica().MakeStateReport()->knows());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(8)).ok());
  EXPECT_FALSE(replica().MakeStateReport()->knows());
}

TEST_F(ReplicaTest, RepairIsBegunOnceAndForThePromisedEpochOnly) {
  InstallLog();
  ExpectRefused([&] { return replica().BeginRepair(Epoch(6)); },
                Code::kFailedPrecondition, "installed already");
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  for (const Epoch epoch : {Epoch(6), Epoch(8)}) {
    ExpectRefused([&] { return replica().BeginRepair(epoch); },
                  Code::kFailedPrecondition, "promised is epoch 7");
  }
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  const std::vector<std::byte> before = world_.Snapshot();
  EXPECT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  EXPECT_EQ(world_.Snapshot(), before);
}

TEST_F(ReplicaTest, InstallEndsTheRepair) {
  InstallLog();
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  ASSERT_TRUE(replica().Install(log_.ToInstall()).ok());
  EXPECT_FALSE(replica().superline().repairing);
  EXPECT_TRUE(replica().MakeStateReport()->knows());
}

}  // namespace
}  // namespace alpheus::testing
