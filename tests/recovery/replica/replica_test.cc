// SPDX-License-Identifier: Apache-2.0
// Opening a replica, and media that fail.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "recovery/replica/local_replica.h"
#include "tests/recovery/replica/replica_fixture.h"

namespace alpheus::testing {
namespace {

using Code = absl::StatusCode;

TEST_F(ReplicaTest, OpenPersistsNothingNewAndChangesNoByte) {
  InstallLog();
  const std::vector<std::byte> before = world_.Snapshot();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(world_.Snapshot(), before);
  EXPECT_EQ(replica().name(), "model");
  EXPECT_FALSE(replica().is_blank());
}

TEST_F(ReplicaTest, ReplicaOfAnotherClusterOrLogIsRefused) {
  EXPECT_TRUE(world_
                  .Open({.name = "model",
                         .expected_cluster_id = kWorldCluster,
                         .expected_log_id = kWorldLog})
                  .ok());
  for (const recovery::LocalReplicaOptions& options :
       {recovery::LocalReplicaOptions{.name = "model",
                                      .expected_cluster_id = Uuid{9, 9}},
        recovery::LocalReplicaOptions{.name = "model",
                                      .expected_log_id = Uuid{9, 9}}}) {
    ExpectRefused([&] { return world_.Open(options); },
                  Code::kFailedPrecondition, Uuid{9, 9}.ToString());
  }
}

// P-H17: files that were swapped or cloned. A suspect one isn't marked, either.
TEST_F(ReplicaTest, ReplicaOfAnotherNodeIsRefused) {
  EXPECT_TRUE(world_.Open({.name = "model", .expected_node = NodeId(1)}).ok());
  for (const bool suspect : {false, true}) {
    ExpectRefused(
        [&] {
          return world_.Open({.name = "model",
                              .expected_node = NodeId(99),
                              .suspect = suspect});
        },
        Code::kFailedPrecondition, "expected that of node 99");
  }
}

TEST_F(ReplicaTest, RegionThatCannotBeReadIsNotOpened) {
  for (const uint64_t copy : {0, 1}) {
    world_.region()[copy * kPageBytes + 30] ^= std::byte{1};
  }
  ExpectRefused([&] { return world_.Open(); }, Code::kDataLoss, "superline");
}

// P-A2, REP5: the media go bad while the process runs.
TEST_F(ReplicaTest, CopyThatWentBadSinceIsOverwrittenFirst) {
  InstallLog();
  const CellPlace place = SuperlinePlace(world_.region());
  for (const int bad : {0, 1}) {
    place.copies[bad][30] ^= std::byte{1};
    world_.pmem().SetHook([&](const model::ModelPersistence::Event& event) {
      if (event.primitive != model::ModelPersistence::Primitive::kFence) return;
      std::vector<std::byte> cut = world_.Snapshot();
      // The copy that is being written never arrives whole.
      for (const auto& word : world_.pmem().DirtyWords()) {
        cut[word.offset] ^= std::byte{1};
      }
      EXPECT_TRUE(ReadRegionState(cut, "model").ok());
    });
    EXPECT_TRUE(world_.AcceptPromise(Epoch(7 + bad)).ok());
    world_.pmem().SetHook({});
    EXPECT_TRUE(world_.State().superline_cell.copies_agree());
  }
}

// Such a region can be read, but one that goes on from there could not.
TEST_F(ReplicaTest, NumbersWithoutRoomToGoOnAreRefused) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  const std::vector<std::byte> image = world_.Snapshot();
  CraftSuperline([](Superline&) {}, kNumberMax);
  ASSERT_TRUE(world_.Open().ok());
  ExpectRefused([&] { return world_.AcceptPromise(Epoch(6)); }, Code::kDataLoss,
                "beyond what any log reaches");
  world_.Reset(image);
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  CraftSuperline([](Superline&) {}, kNumberMax);
  ExpectInstallRefused(log_.ToInstall(), Code::kDataLoss,
                       "beyond what any log reaches");
}

// P-A3.5: the watermark of an epoch stands until the next one is installed.
TEST_F(ReplicaTest, WatermarkStaysUntilTheNextEpochIsInstalled) {
  InstallLog();
  for (const int i : {3, 4, 5}) log_.Append(std::to_string(i));
  world_.CopyRecords(log_, Lsn(3), Lsn(6));
  for (const int line : {0, 1}) {
    const WatermarkFormat watermark =
        EncodeWatermark(kWorldLog, line, {Epoch(6), Lsn(uint64_t{4} + line)});
    world_.pmem().CopyLinesNt(WatermarkLine(world_.region(), line), &watermark,
                              1);
  }
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  EXPECT_EQ(replica().MakeStateReport()->proven_lsn, Lsn(5));
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  EXPECT_EQ(world_.State().ProvenLsn(), Lsn(5));
  ASSERT_TRUE(replica().Install(log_.ToInstall()).ok());
  const LogPosition& last = log_.PositionOf(Lsn(5));
  for (const auto& line : world_.State().watermarks.lines) {
    EXPECT_EQ(line, (Watermark{Epoch(7), Lsn(5), {last.offset, last.chain}}));
  }
}

// REP6: at each fence of each call, and nothing changes any more.
TEST_F(ReplicaTest, FailureOfTheMediumSticks) {
  log_.OpenEpoch(Epoch(5));
  log_.Append(std::string(400, 'a'));
  log_.Append(std::string(400, 'b'));
  log_.CleanThrough(Lsn(1));
  log_.Append(std::string(200, 'c'));
  log_.OpenEpoch(Epoch(6));
  const std::vector<std::byte> formatted = world_.Snapshot();
  const auto until_installed = [&](uint64_t fails_at) {
    world_.Reset(formatted);
    *CleanCloseAddress(world_.region()) = 1;
    EpochTablePlace(world_.region(), world_.State().superline).copies[0][30] ^=
        std::byte{1};
    world_.pmem().FailFence(fails_at);
    absl::Status status = world_.Open();
    if (!status.ok()) return status;
    status = world_.AcceptPromise(Epoch(6));
    if (status.ok()) status = replica().MakeStateReport().status();
    if (status.ok()) status = replica().BeginRepair(Epoch(6));
    if (status.ok()) {
      world_.CopyAll(log_);
      Damage(Lsn(3), 20);  // a PAD
      status = replica().Install(log_.ToInstall());
    }
    if (status.ok()) {
      status = replica().PublishBounds(
          Epoch(6), log_.BoundsWith(log_.PositionOf(Lsn(3))));
    }
    return status;
  };
  uint64_t fence = 1;
  for (;; ++fence) {
    SCOPED_TRACE(fence);
    const absl::Status status = until_installed(fence);
    if (status.ok()) break;
    EXPECT_EQ(status.code(), Code::kUnavailable) << status;
    if (fence == 1) continue;  // was not opened
    for (const auto& call : std::vector<std::function<absl::Status()>>{
             [&] { return world_.AcceptPromise(Epoch(9)); },
             [&] { return replica().MakeStateReport().status(); },
             [&] { return replica().BeginRepair(Epoch(6)); },
             [&] { return replica().Install(log_.ToInstall()); },
             [&] {
               return replica().PublishBounds(Epoch(6),
                                              log_.BoundsWith(log_.end()));
             }}) {
      ExpectRefused(call, Code::kFailedPrecondition, "Open the replica again");
    }
    world_.PowerCut();
    EXPECT_TRUE(world_.Open().ok());
    EXPECT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  }
  EXPECT_EQ(fence, 18u) << "these calls have seventeen fences";
}

}  // namespace
}  // namespace alpheus::testing
