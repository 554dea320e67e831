// SPDX-License-Identifier: Apache-2.0
// The log that goes on over an installed replica, and its head.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/core/ring/ring_log.h"
#include "recovery/replica/local_replica.h"
#include "tests/recovery/replica/replica_fixture.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;

using Code = absl::StatusCode;

TEST_F(ReplicaTest, StartOfTheLogIsWhatWasInstalled) {
  log_.OpenEpoch(Epoch(5));
  for (int i = 0; i < 10; ++i) log_.Append("x");
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  ASSERT_TRUE(
      replica()
          .PublishBounds(Epoch(6), log_.BoundsWith(log_.PositionOf(Lsn(3))))
          .ok());
  const RingLogStart start = replica().StartOfLog();
  const RegionState state = world_.State();
  EXPECT_EQ(start.superline, state.superline);
  EXPECT_EQ(start.superline_seq, state.superline_cell.copies[0].seq);
  EXPECT_EQ(start.table.entries(), log_.table().entries());
  EXPECT_EQ(start.end, log_.end());
  EXPECT_EQ(start.index->Nearest(Lsn(11), log_.head()), log_.head());
}

// The positions of the index, where it has some.
TEST(ReplicaIndexTest, IndexKnowsEveryInstalledStride) {
  ReplicaWorld world({.ring_capacity = 16384});
  ASSERT_TRUE(world.Open().ok());
  LogImage log(16384);
  log.OpenEpoch(Epoch(5));
  for (int i = 0; i < 127; ++i) log.Append("x");
  log.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world.InstallAll(log).ok());
  const RingLogStart start = world.replica().StartOfLog();
  EXPECT_EQ(start.index->Nearest(Lsn(70), log.head()), log.PositionOf(Lsn(64)));
  EXPECT_EQ(start.index->Nearest(Lsn(128), log.head()), log.end());
}

// P-S4: it goes on, and the replica keeps its hands off.
TEST_F(ReplicaTest, StartedLogIsTheOnlyWriter) {
  InstallLog();
  SteppingClock clock;
  NoWaiter waiter;
  {
    RingLog<model::ModelPersistence> started(world_.pmem(), world_.region(),
                                             replica().StartOfLog(),
                                             {"model", 64}, clock, waiter);
    const std::span<const std::byte> part = AsBytes(std::string_view("c"));
    ASSERT_TRUE(started.Append({&part, 1}, 1, Deadline()).ok());
    ASSERT_TRUE(started.CleanupThrough(Lsn(1)).ok());
    ASSERT_TRUE(started.Close().ok());
    ExpectRefused([&] { return world_.AcceptPromise(Epoch(9)); },
                  Code::kFailedPrecondition, "open the replica again");
    ExpectRefused([&] { return replica().MakeStateReport().status(); },
                  Code::kFailedPrecondition, "open the replica again");
    ExpectRefused([&] { return replica().BeginRepair(Epoch(6)); },
                  Code::kFailedPrecondition, "open the replica again");
    ExpectInstallRefused(log_.ToInstall(), Code::kFailedPrecondition,
                         "open the replica again");
    ExpectRefused(
        [&] {
          return replica().PublishBounds(Epoch(6), log_.BoundsWith(log_.end()));
        },
        Code::kFailedPrecondition, "open the replica again");
  }
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  EXPECT_EQ(replica().superline().head_lsn, Lsn(2));
  EXPECT_THAT(world_.Payloads(), ElementsAre("b", "c"));
}

using ReplicaDeathTest = ReplicaTest;

TEST_F(ReplicaDeathTest, OnlyAnInstalledLogStarts) {
  EXPECT_DEATH((void)replica().StartOfLog(), "installed");
  InstallLog();
  ASSERT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  EXPECT_DEATH((void)replica().StartOfLog(), "installed");
}

// P-A6, SUP3 (superline.h).
TEST_F(ReplicaTest, HeadNeverGoesBack) {
  InstallLog();
  ASSERT_TRUE(
      replica()
          .PublishBounds(Epoch(6), log_.BoundsWith(log_.PositionOf(Lsn(2))))
          .ok());
  const std::vector<std::byte> before = world_.Snapshot();
  EXPECT_TRUE(
      replica()
          .PublishBounds(Epoch(6), log_.BoundsWith(log_.PositionOf(Lsn(1))))
          .ok());
  EXPECT_TRUE(
      replica()
          .PublishBounds(Epoch(6), log_.BoundsWith(log_.PositionOf(Lsn(2))))
          .ok());
  EXPECT_EQ(world_.Snapshot(), before);
  world_.PowerCut();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(replica().superline().head_lsn, Lsn(2));
  EXPECT_THAT(world_.Payloads(), ElementsAre("b"));
}

// It may pass records that this replica has not got yet.
TEST_F(ReplicaTest, HeadGoesBehindTheOwnEnd) {
  InstallLog();
  log_.Append("c");
  EXPECT_TRUE(
      replica().PublishBounds(Epoch(6), log_.BoundsWith(log_.end())).ok());
  EXPECT_EQ(world_.State().head(), log_.end());
}

TEST_F(ReplicaTest, HeadOfAnotherEpochIsRefused) {
  InstallLog();
  const LogPosition head = log_.PositionOf(Lsn(2));
  ExpectRefused(
      [&] { return replica().PublishBounds(Epoch(5), log_.BoundsWith(head)); },
      Code::kFailedPrecondition, "promised is epoch 6");
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ExpectRefused(
      [&] { return replica().PublishBounds(Epoch(6), log_.BoundsWith(head)); },
      Code::kFailedPrecondition, "promised is epoch 7");
  ExpectRefused(
      [&] { return replica().PublishBounds(Epoch(7), log_.BoundsWith(head)); },
      Code::kFailedPrecondition, "installed is epoch 6");
}

TEST_F(ReplicaTest, ImpossibleHeadIsRefused) {
  InstallLog();
  for (const LogPosition& head :
       {LogPosition{Lsn(1), RingOffset(64), 0}, LogPosition{Lsn(1), {}, 1},
        LogPosition{Lsn(3), RingOffset(64), 0},
        LogPosition{Lsn(2), RingOffset(65), 0},
        LogPosition{Lsn(kLsnMax), RingOffset(kOffsetMax), 0}}) {
    ExpectRefused(
        [&] {
          return replica().PublishBounds(Epoch(6), log_.BoundsWith(head));
        },
        Code::kInvalidArgument, "is impossible");
  }
}

}  // namespace
}  // namespace alpheus::testing
