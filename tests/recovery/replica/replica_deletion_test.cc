// SPDX-License-Identifier: Apache-2.0
// A replica that is marked as deleted, and what a power cut leaves of a mark.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "log/core/ring/format_region.h"
#include "log/format/atomic_cell.h"
#include "recovery/replica/local_replica.h"
#include "tests/recovery/replica/replica_fixture.h"
#include "tests/support/fixtures/log_harness.h"
#include "tests/support/oracles/crash_enumerator.h"

namespace alpheus::testing {
namespace {

using model::ModelPersistence;

using Code = absl::StatusCode;

LogImage OneRecord() {
  LogImage log(1024);
  log.OpenEpoch(Epoch(5));
  log.Append("kept");
  return log;
}

// P-D2. All that an opening or a primary asks for is refused, and the records
// are as before.
TEST_F(ReplicaTest, MarkedOnePromisesAndInstallsNothing) {
  const LogImage log = OneRecord();
  ASSERT_TRUE(world_.InstallAll(log).ok());
  ASSERT_TRUE(replica().MarkDeleted(Deletion::kMarked).ok());
  const std::vector<std::byte> before = world_.Snapshot();
  ExpectRefused([&] { return world_.AcceptPromise(Epoch(9)); }, Code::kNotFound,
                "marked as deleted");
  ExpectRefused([&] { return replica().BeginRepair(Epoch(5)); },
                Code::kNotFound, "marked as deleted");
  ExpectRefused(
      [&] {
        return replica().PublishBounds(Epoch(5), log.BoundsWith(log.end()));
      },
      Code::kNotFound, "marked as deleted");
  ExpectRefused([&] { return replica().StartInstall(log.ToInstall()); },
                Code::kNotFound, "marked as deleted");
  EXPECT_EQ(world_.Snapshot(), before);
  EXPECT_THAT(world_.Payloads(), ::testing::ElementsAre("kept"));
}

// SUP6.
TEST_F(ReplicaTest, MarkGoesOnlyForward) {
  ASSERT_TRUE(replica().MarkDeleted(Deletion::kDecided).ok());
  const std::vector<std::byte> decided = world_.Snapshot();
  ASSERT_TRUE(replica().MarkDeleted(Deletion::kMarked).ok());
  ASSERT_TRUE(replica().MarkDeleted(Deletion::kNone).ok());
  EXPECT_EQ(world_.Snapshot(), decided);
  EXPECT_EQ(replica().superline().deletion, Deletion::kDecided);
  ExpectRefused([&] { return world_.AcceptPromise(Epoch(9)); }, Code::kNotFound,
                "another name");
}

// P-D1: acknowledged is durable, in both copies.
TEST_F(ReplicaTest, MarkOutlivesAPowerCutAndTheLossOfACopy) {
  ASSERT_TRUE(world_.InstallAll(OneRecord()).ok());
  ASSERT_TRUE(replica().MarkDeleted(Deletion::kMarked).ok());
  for (const int damaged : {0, 1}) {
    ReplicaWorld world;
    std::vector<std::byte> image = world_.pmem().CutKeepingNone();
    SuperlinePlace(image).copies[damaged][30] ^= std::byte{1};
    world.Reset(image);
    ASSERT_TRUE(world.Open().ok());
    EXPECT_EQ(world.replica().superline().deletion, Deletion::kMarked);
    // Once more: the copy that was lost is written again.
    ASSERT_TRUE(world.replica().MarkDeleted(Deletion::kMarked).ok());
    EXPECT_TRUE(world.State().superline_cell.copies_agree());
  }
}

// P-D1: at every fence of a mark, every image that a power cut may leave is the
// replica of before, or a marked one; both have all records.
TEST_F(ReplicaTest, EveryCutOfAMarkLeavesItMarkedOrNot) {
  ASSERT_TRUE(world_.InstallAll(OneRecord()).ok());
  CrashEnumerator enumerator({});
  int marked = 0;
  int unmarked = 0;
  world_.pmem().SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kFence) return;
    enumerator.Enumerate(world_.pmem(), 0, [&](const CrashState& cut) {
      std::vector<std::byte> region(cut.image.begin(), cut.image.end());
      const auto state = ReadRegionState(region, "cut");
      ASSERT_TRUE(state.ok()) << state.status();
      const Deletion deletion = state->superline.deletion;
      EXPECT_NE(deletion, Deletion::kDecided);
      ++(deletion == Deletion::kNone ? unmarked : marked);
      EXPECT_THAT(LivePayloads(region), ::testing::ElementsAre("kept"));
    });
  });
  ASSERT_TRUE(replica().MarkDeleted(Deletion::kMarked).ok());
  world_.pmem().SetHook({});
  EXPECT_GT(marked, 0);
  EXPECT_GT(unmarked, 0);
}

// P-D4: identity, list and promise stay, so that the log can't come back, and
// so that the mark goes on to count.
TEST_F(ReplicaTest, RemovedOneKeepsItsNameAndNoRecord) {
  ASSERT_TRUE(world_.InstallAll(OneRecord()).ok());
  ASSERT_TRUE(replica().MarkDeleted(Deletion::kMarked).ok());
  const Superline before = replica().superline();
  ModelPersistence left(LayoutOfRemoved().region_bytes);
  ASSERT_TRUE(FormatRemoved(left, left.region(), before).ok());
  left.Reset(left.CutKeepingNone());
  const auto removed = recovery::LocalReplica<ModelPersistence>::Open(
      left, left.region(), {.name = "left"});
  ASSERT_TRUE(removed.ok()) << removed.status();
  const Superline& after = (*removed)->superline();
  EXPECT_EQ(after.deletion, Deletion::kDecided);
  EXPECT_EQ(after.log_id, before.log_id);
  EXPECT_EQ(after.node, before.node);
  EXPECT_EQ(after.incarnation, before.incarnation);
  EXPECT_EQ(after.configuration, before.configuration);
  EXPECT_EQ(after.promised_epoch, before.promised_epoch);
  EXPECT_EQ(after.log_epoch, Epoch(0));
  EXPECT_LE(after.region_bytes, uint64_t{64} << 10);
  EXPECT_TRUE(absl::IsNotFound(
      (*removed)->AcceptPromise(ReplicaWorld::PromiseFor(Epoch(99))).status()));
}

}  // namespace
}  // namespace alpheus::testing
