// SPDX-License-Identifier: Apache-2.0
// Reports and installations of a replica that are made in slices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/recovery/replica/replica_world.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint64_t kSlice = 2 * kLineBytes;

class ReplicaSlicesTest : public ::testing::Test {
 protected:
  ReplicaSlicesTest() : log_(1024) {
    log_.OpenEpoch(Epoch(5));
    for (int i = 0; i < 6; ++i) log_.Append(absl::StrCat("record ", i));
  }

  recovery::LocalReplica<model::ModelPersistence>& replica() {
    return world_.replica();
  }
  // With everything but the installation itself.
  void PrepareToInstall() {
    ASSERT_TRUE(world_.Open().ok());
    log_.OpenEpoch(Epoch(6));
    ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
    world_.CopyAll(log_);
  }
  // Counts the slices; not OK when one failed.
  absl::StatusOr<int> ContinueToTheEnd() {
    for (int slices = 1;; ++slices) {
      const auto done = replica().Continue(kSlice);
      if (!done.ok()) return done.status();
      if (*done) return slices;
    }
  }

  ReplicaWorld world_;
  LogImage log_;
};

TEST_F(ReplicaSlicesTest, ReportInSlicesIsTheWholeOne) {
  ASSERT_TRUE(world_.Open().ok());
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  const auto whole = replica().MakeStateReport();
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(replica().StartStateReport(/*from_head=*/false).ok());
  const auto slices = ContinueToTheEnd();
  ASSERT_TRUE(slices.ok()) << slices.status();
  // The ring once for the flush, and once for the scan.
  EXPECT_GE(*slices, 2 * 1024 / static_cast<int>(kSlice) - 1);
  const recovery::StateReport report = replica().TakeStateReport();
  EXPECT_EQ(report.runs, whole->runs);
  EXPECT_EQ(report.promised_before, whole->promised_before);
}

// REP2, with what only the cache has.
TEST_F(ReplicaSlicesTest, WhatIsReportedInSlicesOutlivesAPowerCut) {
  ASSERT_TRUE(world_.Open().ok());
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  const Lsn first = log_.end().lsn;
  log_.Append("visible");
  world_.CopyRecords(log_, first, log_.end().lsn);
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().StartStateReport(/*from_head=*/false).ok());
  ASSERT_TRUE(ContinueToTheEnd().ok());
  EXPECT_THAT(replica().TakeStateReport().records, SizeIs(7));
  world_.PowerCut();
  EXPECT_THAT(world_.Payloads(), SizeIs(7));
}

TEST_F(ReplicaSlicesTest, InstallationInSlicesOutlivesAPowerCut) {
  PrepareToInstall();
  ASSERT_TRUE(replica().StartInstall(log_.ToInstall()).ok());
  EXPECT_EQ(world_.State().superline.log_epoch, Epoch(0));
  const auto slices = ContinueToTheEnd();
  ASSERT_TRUE(slices.ok()) << slices.status();
  EXPECT_GE(*slices, 5);
  EXPECT_EQ(world_.State().superline.log_epoch, Epoch(6));
  world_.PowerCut();
  EXPECT_THAT(world_.Payloads(), SizeIs(6));
}

// REP3: each record is read, in whichever slice it is.
TEST_F(ReplicaSlicesTest, RecordThatIsNotThereEndsTheInstallation) {
  for (uint64_t lsn = 1; lsn <= 6; ++lsn) {
    ReplicaWorld world;
    ASSERT_TRUE(world.Open().ok());
    LogImage log(1024);
    log.OpenEpoch(Epoch(5));
    for (int i = 0; i < 6; ++i) log.Append(absl::StrCat("record ", i));
    log.OpenEpoch(Epoch(6));
    ASSERT_TRUE(world.AcceptPromise(Epoch(6)).ok());
    world.CopyRecords(log, Lsn(1), Lsn(lsn));
    world.CopyRecords(log, Lsn(lsn + 1), Lsn(7));
    ASSERT_TRUE(world.replica().StartInstall(log.ToInstall()).ok());
    absl::StatusOr<bool> done = false;
    while (done.ok() && !*done) done = world.replica().Continue(kSlice);
    ASSERT_TRUE(absl::IsDataLoss(done.status())) << done.status();
    EXPECT_THAT(done.status().ToString(), HasSubstr(absl::StrCat("LSN ", lsn)));
    EXPECT_EQ(world.State().superline.log_epoch, Epoch(0));
    EXPECT_TRUE(
        absl::IsFailedPrecondition(world.replica().Continue(kSlice).status()));
  }
}

// Another primary's promise in the middle: the installation never comes.
TEST_F(ReplicaSlicesTest, PromiseInBetweenEndsWhatIsInProgress) {
  for (const bool installs : {false, true}) {
    for (int slices = 0; slices < 4; ++slices) {
      ReplicaWorld world;
      LogImage log(1024);
      log.OpenEpoch(Epoch(5));
      for (int i = 0; i < 6; ++i) log.Append(absl::StrCat("record ", i));
      ASSERT_TRUE(world.Open().ok());
      ASSERT_TRUE(world.AcceptPromise(Epoch(5)).ok());
      log.OpenEpoch(Epoch(6));
      ASSERT_TRUE(world.AcceptPromise(Epoch(6)).ok());
      world.CopyAll(log);
      ASSERT_TRUE((installs
                       ? world.replica().StartInstall(log.ToInstall())
                       : world.replica().StartStateReport(/*from_head=*/false))
                      .ok());
      for (int i = 0; i < slices; ++i) {
        ASSERT_TRUE(world.replica().Continue(kSlice).ok());
      }
      ASSERT_TRUE(world.AcceptPromise(Epoch(9)).ok());
      EXPECT_TRUE(absl::IsFailedPrecondition(
          world.replica().Continue(kSlice).status()));
      EXPECT_EQ(world.State().superline.log_epoch, Epoch(0));
    }
  }
}

// REP6, for the fence of each slice.
TEST_F(ReplicaSlicesTest, MediumThatFailsInASliceEndsIt) {
  int failed = 0;
  for (uint64_t fence = 1; fence <= 6; ++fence) {
    ReplicaWorld world;
    ASSERT_TRUE(world.Open().ok());
    ASSERT_TRUE(world.AcceptPromise(Epoch(6)).ok());
    ASSERT_TRUE(world.replica().RaiseCeiling(Epoch(6), RingOffset(1024)).ok());
    world.pmem().FailFence(fence);
    ASSERT_TRUE(world.replica().StartStateReport(/*from_head=*/false).ok());
    absl::StatusOr<bool> done = false;
    while (done.ok() && !*done) done = world.replica().Continue(kSlice);
    ASSERT_FALSE(done.ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(
        world.replica().StartStateReport(/*from_head=*/false)));
    ++failed;
  }
  EXPECT_EQ(failed, 6);
}

// A suspect medium may show bytes that are not on it: the promise is written
// again, though it is there to be read.
TEST_F(ReplicaSlicesTest, SuspectReplicaWritesARepeatedPromiseAgain) {
  for (const bool suspect : {false, true}) {
    ASSERT_TRUE(world_.Open({.name = "model", .suspect = suspect}).ok());
    ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
    const uint64_t before = world_.pmem().fence_count();
    ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
    EXPECT_EQ(world_.pmem().fence_count() > before, suspect);
  }
}

// A promise that is refused disturbs nobody.
TEST_F(ReplicaSlicesTest, RefusedPromiseEndsNothing) {
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  ASSERT_TRUE(replica().StartStateReport(/*from_head=*/false).ok());
  ASSERT_TRUE(replica().Continue(kSlice).ok());
  EXPECT_FALSE(world_.AcceptPromise(Epoch(5)).ok());
  EXPECT_FALSE(replica().BeginRepair(Epoch(5)).ok());
  EXPECT_TRUE(ContinueToTheEnd().ok());
  EXPECT_TRUE(replica().TakeStateReport().knows());
}

}  // namespace
}  // namespace alpheus::testing
