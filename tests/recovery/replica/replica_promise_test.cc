// SPDX-License-Identifier: Apache-2.0
// The promise, and what it writes beside itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "log/format/atomic_cell.h"
#include "recovery/replica/local_replica.h"
#include "tests/recovery/replica/replica_fixture.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;

using Code = absl::StatusCode;

// PRO1 (promise.h), REP1.
TEST_F(ReplicaTest, PromiseOutlivesAPowerCut) {
  const auto verdict =
      replica().AcceptPromise(ReplicaWorld::PromiseFor(Epoch(5)));
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(*verdict, quorum::PromiseVerdict::kNew);
  world_.PowerCut();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(quorum::PromiseOf(replica().superline()),
            ReplicaWorld::PromiseFor(Epoch(5)));
  EXPECT_EQ(replica().superline().log_epoch, Epoch(0));
}

// P-A4.2: strictly above, or equal and from the same process.
TEST_F(ReplicaTest, PromiseIsRepeatedToTheSameProcessOnly) {
  ASSERT_TRUE(world_.AcceptPromise(Epoch(5)).ok());
  const std::vector<std::byte> before = world_.Snapshot();
  const quorum::Promise current = ReplicaWorld::PromiseFor(Epoch(5));
  const auto again = replica().AcceptPromise(current);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, quorum::PromiseVerdict::kAgain);
  EXPECT_EQ(world_.Snapshot(), before);
  for (const quorum::Promise& request :
       {ReplicaWorld::PromiseFor(Epoch(4)),
        quorum::Promise{Epoch(5), {NodeId(2), 78}},
        quorum::Promise{Epoch(5), {NodeId(3), 77}}}) {
    ExpectRefused([&] { return replica().AcceptPromise(request).status(); },
                  Code::kFailedPrecondition, "promised is epoch 5");
    EXPECT_EQ(
        quorum::RefusingPromise(replica().AcceptPromise(request).status()),
        current);
  }
}

TEST_F(ReplicaTest, PromiseThatNoEpochCouldFollowIsRefused) {
  for (const uint64_t epoch : {uint64_t{0}, kNumberMax / 2 + 1, ~uint64_t{0}}) {
    ExpectRefused([&] { return world_.AcceptPromise(Epoch(epoch)); },
                  Code::kInvalidArgument, "promise refused");
  }
  EXPECT_TRUE(world_.AcceptPromise(Epoch(kNumberMax / 2)).ok());
  EXPECT_TRUE(world_.Open().ok());
}

// P-S2: as an update that was cut off, or damage, leaves it.
TEST_F(ReplicaTest, PromiseOfOneCopyIsRepairedFirst) {
  const Superline older = world_.State().superline;
  ASSERT_TRUE(world_.AcceptPromise(Epoch(5)).ok());
  const CellPlace place = SuperlinePlace(world_.region());
  const std::vector<std::byte> image = world_.Snapshot();
  for (const int other : {0, 1}) {
    world_.Reset(image);
    ASSERT_TRUE(
        WriteCellCopy(world_.pmem(), place, other, 1, EncodeSuperline(older)));
    ASSERT_TRUE(world_.Open().ok());
    ASSERT_TRUE(world_.AcceptPromise(Epoch(5)).ok());
    EXPECT_TRUE(world_.State().superline_cell.copies_agree());
    place.copies[1 - other][30] ^= std::byte{1};
    ASSERT_TRUE(world_.Open().ok());
    EXPECT_EQ(replica().superline().promised_epoch, Epoch(5));
  }
}

// P-A2: the other copy may be torn, or of an epoch that was never installed.
TEST_F(ReplicaTest, TableOfOneCopyIsRepaired) {
  InstallLog();
  const CellPlace place =
      EpochTablePlace(world_.region(), world_.State().superline);
  const std::vector<std::byte> image = world_.Snapshot();
  for (const int other : {0, 1}) {
    world_.Reset(image);
    place.copies[other][30] ^= std::byte{1};
    ASSERT_TRUE(world_.Open().ok());
    ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
    EXPECT_TRUE(world_.State().table_cell.copies_agree());
    place.copies[1 - other][30] ^= std::byte{1};
    ASSERT_TRUE(world_.Open().ok());
    EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b"));
  }
}

// P-A2: a word that vouches for an older superline must not make damage of what
// a cut leaves of the next one.
TEST_F(ReplicaTest, CleanCloseIsTakenBackBeforeTheSuperlineChanges) {
  InstallLog();
  const RegionState state = world_.State();
  uint64_t* const word = CleanCloseAddress(world_.region());
  *word = CleanCloseWord(
      state.superline.log_id,
      state.superline_cell.copies[*state.superline_cell.newest].seq);
  world_.Reset(world_.Snapshot());
  ASSERT_TRUE(world_.State().closed_cleanly);
  ASSERT_TRUE(world_.Open().ok());
  world_.pmem().SetHook([&](const model::ModelPersistence::Event& event) {
    if (event.primitive != model::ModelPersistence::Primitive::kCopy) return;
    EXPECT_EQ(*word, 0u);
    EXPECT_TRUE(world_.pmem().IsPersisted(word, sizeof(*word)));
  });
  EXPECT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  world_.pmem().SetHook({});
}

}  // namespace
}  // namespace alpheus::testing
