// SPDX-License-Identifier: Apache-2.0
// Where are the regions, what do they lack, and who may be hurt? Freshly
// formatted replicas of a world in which nothing happens.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "log/core/region_state.h"
#include "recovery/answer.h"
#include "tools/sim/checkers.h"
#include "tools/sim/fault_budget.h"
#include "tools/sim/region_damage.h"
#include "tools/sim/region_images.h"
#include "tools/sim/region_store.h"
#include "tools/sim/storage_faults.h"
#include "tools/sim/world.h"

namespace alpheus::sim {
namespace {

using Content = RegionStore::Content;

class StorageTest : public ::testing::Test {
 protected:
  static RunOptions Options(int nodes, int write_quorum) {
    RunOptions options;
    options.nodes = nodes;
    options.write_quorum = write_quorum;
    return options;
  }

  RegionStore& store() { return world_.store(); }
  Checkers& checkers() { return world_.checkers(); }
  std::string violated() {
    const auto& violation = world_.referee().violation();
    return violation ? violation->invariant : "";
  }
  void Cut(int machine) { world_.CutPower(world_.machine(machine)); }
  RegionImage ImageOf(int machine) {
    return store().medium(machine)->CutKeepingNone();
  }
  static NodeId NodeOf(World::Model* region) {
    return ReadRegionState(region->region(), "region")->superline.node;
  }
  RegionImage Blank(int machine) {
    return FormattedRegion({kClusterId, kLogId, world_.machine(machine).id()},
                           /*incarnation=*/999, world_.configuration(),
                           world_.layout());
  }
  void Lose(int machine) {
    Cut(machine);
    store().Lose(machine, Content::kBlank, Blank(machine));
  }
  void Hurt(int machine, bool is_proven = true) {
    Cut(machine);
    store().Damage(machine, ImageOf(machine), {{7, is_proven}});
  }

  World world_{Options(3, 2)};
};

TEST_F(StorageTest, RegionsAreInTheirPlaces) {
  for (int m = 0; m < 3; ++m) {
    EXPECT_EQ(store().content(m), Content::kOwn);
    EXPECT_EQ(store().medium(m), world_.machine(m).pmem.get());
  }
  EXPECT_EQ(store().medium(3), nullptr);
}

TEST_F(StorageTest, SwappedRegionsAreFoundAndPutBack) {
  Cut(0);
  Cut(2);
  store().Swap(0, 2);
  EXPECT_EQ(store().content(0), Content::kAlien);
  EXPECT_EQ(store().medium(0), world_.machine(2).pmem.get());
  EXPECT_EQ(NodeOf(world_.machine(0).pmem.get()), NodeId(3));
  EXPECT_EQ(NodeOf(store().medium(0)), NodeId(1));
  store().PutBack(2);
  for (int m = 0; m < 3; ++m) {
    EXPECT_TRUE(store().IsOwn(m));
    EXPECT_EQ(NodeOf(world_.machine(m).pmem.get()), world_.machine(m).id());
  }
}

TEST_F(StorageTest, RegionThatIsSetAsideIsFoundAndPutBack) {
  Cut(1);
  store().SetAside(1, Content::kAlien, ImageOf(0));
  EXPECT_EQ(NodeOf(world_.machine(1).pmem.get()), NodeId(1));
  EXPECT_EQ(NodeOf(store().medium(1)), NodeId(2));
  PutRegionsBack(world_);
  EXPECT_TRUE(store().IsOwn(1));
  EXPECT_EQ(NodeOf(world_.machine(1).pmem.get()), NodeId(2));
}

TEST_F(StorageTest, LostRegionHasNoMediumAndItsBytesAreKept) {
  const RegionImage image = ImageOf(1);
  Lose(1);
  EXPECT_TRUE(store().IsGone(1));
  EXPECT_EQ(store().medium(1), nullptr);
  ASSERT_EQ(store().before(1).size(), 1u);
  EXPECT_EQ(store().before(1).front().image, image);
  store().PutBack(1);
  EXPECT_TRUE(store().IsGone(1));
}

TEST_F(StorageTest, WhatWasFormattedAnewIsBlank) {
  RegionImage image = Blank(1);
  const auto state = ReadRegionState(image, "blank");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(IsBlank(state->superline));
  EXPECT_EQ(state->superline.node, NodeId(2));
}

TEST_F(StorageTest, WhatIsLackingIsBackOnceAnEpochIsInstalled) {
  Hurt(1);
  EXPECT_TRUE(store().IsHurt(1));
  EXPECT_TRUE(store().MayLack(1, Lsn(7)));
  EXPECT_FALSE(store().MayLack(1, Lsn(8)));
  store().Installed(1);
  EXPECT_FALSE(store().IsHurt(1));
}

// Of three replicas with W = 2 one may be harmed.
TEST_F(StorageTest, BudgetIsUsedUp) {
  const FaultBudget budget(world_);
  EXPECT_TRUE(budget.MayLose(0));
  EXPECT_TRUE(budget.MayHurt(0));
  Hurt(0);
  EXPECT_TRUE(budget.MayLose(0));
  EXPECT_FALSE(budget.MayHurt(1));
  EXPECT_TRUE(budget.MustSurvive());
  Lose(0);
  EXPECT_FALSE(budget.MayHurt(1));
  EXPECT_FALSE(budget.MayLose(1));
  EXPECT_TRUE(budget.MustSurvive());
  Hurt(1);
  EXPECT_FALSE(budget.MustSurvive());
  store().Installed(1);
  EXPECT_TRUE(budget.MustSurvive());
}

TEST_F(StorageTest, BudgetFollowsTheQuorums) {
  struct Case {
    int nodes, write_quorum;
    bool may_lose, may_hurt;
  };
  for (const Case& c : {Case{1, 1, false, false}, Case{2, 1, false, false},
                        Case{2, 2, false, true}, Case{3, 1, false, false},
                        Case{3, 3, false, true}, Case{5, 3, true, true}}) {
    World world(Options(c.nodes, c.write_quorum));
    EXPECT_EQ(FaultBudget(world).MayLose(0), c.may_lose) << c.nodes;
    EXPECT_EQ(FaultBudget(world).MayHurt(0), c.may_hurt) << c.nodes;
  }
}

TEST_F(StorageTest, BeyondTheBudgetNothingIsSpared) {
  RunOptions options = Options(1, 1);
  options.is_beyond_budget = true;
  World world(options);
  const FaultBudget budget(world);
  EXPECT_TRUE(budget.MayLose(0));
  EXPECT_TRUE(budget.MayHurt(0));
  EXPECT_TRUE(budget.MustSurvive());
  world.CutPower(world.machine(0));
  world.store().Lose(0, Content::kBlank, Blank(0));
  EXPECT_FALSE(budget.MustSurvive());
  // What nobody could tell from a log that was never longer.
  const RegionImage image = ImageOf(1);
  EXPECT_FALSE(budget.MayRollBack(0, image, image));
}

TEST_F(StorageTest, OnlyWhatOthersHaveMayBeForgotten) {
  const RegionImage empty = ImageOf(0);
  EXPECT_TRUE(FaultBudget(world_).MayRollBack(0, empty, empty));
  World alone(Options(1, 1));
  const RegionImage only = alone.store().medium(0)->CutKeepingNone();
  EXPECT_FALSE(FaultBudget(alone).MayRollBack(0, only, only));
}

TEST_F(StorageTest, ImagesAreKeptAndTheOldestGo) {
  for (size_t i = 0; i <= RegionImages::kImagesMax; ++i) {
    world_.images().Take();
  }
  EXPECT_EQ(world_.images().of(0).size(), RegionImages::kImagesMax);
  EXPECT_EQ(world_.images().of(0).back(), ImageOf(0));
  EXPECT_TRUE(world_.images().of(3).empty());
}

// What the checkers make of it.

TEST_F(StorageTest, RegionOfAnotherNodeThatTakesPartViolatesA8) {
  Cut(0);
  Cut(2);
  store().Swap(0, 2);
  checkers().answers.Promised(0, Promise{});
  EXPECT_EQ(violated(), "A8");
}

TEST_F(StorageTest, OpeningAnAlienRegionViolatesA8) {
  world_.JudgeRefusal(world_.machine(0), absl::DataLossError("zeros"));
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(world_.counters().regions_refused, 1u);
  world_.JudgeRefusal(world_.machine(0), absl::OkStatus());
  EXPECT_EQ(violated(), "A8");
}

TEST_F(StorageTest, BlankReplicaThatKnowsViolatesInv16) {
  Lose(1);
  Answer answer;
  answer.blank = true;
  checkers().answers.Answered(1, answer);
  EXPECT_EQ(violated(), "");
  answer.blank = false;
  checkers().answers.Answered(1, answer);
  EXPECT_EQ(violated(), "INV-16");
}

TEST_F(StorageTest, InstallationOnABlankReplicaViolatesInv16) {
  Lose(1);
  checkers().answers.Installed(1, Epoch(5));
  EXPECT_EQ(violated(), "INV-16");
}

TEST_F(StorageTest, DenialOfWhatWasProvenViolatesInv9) {
  Hurt(1);
  Answer answer;
  answer.node = NodeId(2);
  answer.head.lsn = Lsn(1);
  checkers().answers.Answered(1, answer);
  EXPECT_EQ(violated(), "INV-9");
}

TEST_F(StorageTest, DenialOfWhatWasNotProvenIsAsTorn) {
  Hurt(1, /*is_proven=*/false);
  Answer answer;
  answer.head.lsn = Lsn(1);
  checkers().answers.Answered(1, answer);
  EXPECT_EQ(violated(), "");
}

// Of a record of zeros, which lies in every ring that was never written.
TEST_F(StorageTest, WhatWasOnALostMediumCountsUntilALaterEpoch) {
  const std::vector<std::byte> zeros(64);
  RecordView record;
  record.offset = RingOffset(128);
  checkers().holders.Learn(record, zeros.data(), Epoch(0));
  Lose(0);
  Lose(1);
  checkers().holders.Look();
  EXPECT_EQ(violated(), "");
  checkers().holders.Learn(record, zeros.data(), Epoch(1));
  checkers().holders.Look();
  EXPECT_EQ(violated(), "INV-22");
}

}  // namespace
}  // namespace alpheus::sim
