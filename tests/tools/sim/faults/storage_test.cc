// SPDX-License-Identifier: Apache-2.0
// Where are the regions, what do they lack, and who may be hurt? Freshly
// formatted replicas of a world in which nothing happens.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "recovery/protocol/state_report.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/fault_budget.h"
#include "tools/sim/faults/region_damage.h"
#include "tools/sim/faults/storage_faults.h"
#include "tools/sim/world/region_images.h"
#include "tools/sim/world/region_store.h"
#include "tools/sim/world/world.h"

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
    const auto& violation = world_.oracle().violation();
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
    const Lack lack{.is_proven = is_proven,
                    .epoch = Epoch(1),
                    .at = world_.layout().ring_offset,
                    .bytes = std::vector<std::byte>(kRecordHeaderBytes)};
    store().Damage(machine, ImageOf(machine), {{7, lack}});
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
  EndStorageFaults(world_);
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

TEST_F(StorageTest, WhatWasFormattedAgainIsBlank) {
  RegionImage image = Blank(1);
  const auto state = ReadRegionState(image, "blank");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(recovery::IsBlank(state->superline));
  EXPECT_EQ(state->superline.node, NodeId(2));
}

TEST_F(StorageTest, WhatIsLackingIsBackOnceAnEpochHasReadIt) {
  Hurt(1);
  EXPECT_TRUE(store().IsHurt(1));
  EXPECT_TRUE(store().MayLack(1, Lsn(7)));
  EXPECT_FALSE(store().MayLack(1, Lsn(8)));
  store().Installed(1, Lacks(store().lacks(1)));
  EXPECT_TRUE(store().IsHurt(1));
  store().Installed(1);
  EXPECT_FALSE(store().IsHurt(1));
  Hurt(1);
  store().Repaired(1, Lsn(7));
  EXPECT_FALSE(store().IsHurt(1));
}

// One of three replicas with W = 2 may be harmed.
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
  // Nobody could tell the older log from one that was never longer.
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

// Damage, in images of a log that clients have written.

class DamageTest : public StorageTest {
 protected:
  void SetUp() override {
    world_.StartPrimary(world_.machine(0));
    const auto enough = [this] {
      return world_.history().records_acknowledged() >= 60;
    };
    for (int i = 0; i < 100'000 && !enough(); ++i) world_.network().Step();
    ASSERT_TRUE(enough());
    ASSERT_EQ(violated(), "");
    image_ = ImageOf(1);
    const auto log = ReadImage(image_);
    ASSERT_TRUE(log);
    log_ = *log;
    ASSERT_GT(log_.records.size(), 5u);
  }
  std::set<uint64_t> LsnsIn(const RegionImage& image) {
    std::set<uint64_t> lsns;
    const std::optional<ImageLog> log = ReadImage(image);
    EXPECT_TRUE(log);
    for (const ImageRecord& record : log->records) {
      lsns.insert(record.lsn.value);
    }
    return lsns;
  }

  RegionImage image_;
  ImageLog log_;
};

TEST_F(DamageTest, RecordsOfTheImageAreThoseOfTheLog) {
  for (size_t i = 0; i < log_.records.size(); ++i) {
    EXPECT_EQ(log_.records[i].lsn, log_.head.lsn + i);
  }
  EXPECT_EQ(LacksOf(log_, image_, image_), Lacks{});
}

// Each record that the damaged image does not show any more is said to lack,
// and each that lacks is not shown or has another byte.
TEST_F(DamageTest, WhatIsDamagedIsSaidToLack) {
  const std::set<uint64_t> before = LsnsIn(image_);
  Random random(1);
  for (const ByteDamage damage :
       {ByteDamage::kFlipBit, ByteDamage::kPoison, ByteDamage::kLostLine,
        ByteDamage::kMisdirectLine, ByteDamage::kMisdirectRecord}) {
    int lacking = 0;
    for (int i = 0; i < 200; ++i) {
      RegionImage damaged = image_;
      Damage(damage, log_, world_.layout(), RegionImage(image_.size()), random,
             damaged);
      const auto lacks = LacksOf(log_, image_, damaged);
      if (!lacks) continue;
      const std::set<uint64_t> after = LsnsIn(damaged);
      for (const uint64_t lsn : before) {
        EXPECT_TRUE(after.contains(lsn) || lacks->contains(lsn)) << lsn;
      }
      lacking += lacks->empty() ? 0 : 1;
    }
    EXPECT_GT(lacking, 20) << static_cast<int>(damage);
  }
}

TEST_F(DamageTest, WhatTheWatermarkCoversIsProven) {
  const ImageRecord& first = log_.records.front();
  ASSERT_LE(first.lsn, log_.proven);
  RegionImage damaged = image_;
  damaged[first.at] ^= std::byte{1};
  const std::byte* const bytes = image_.data() + first.at;
  const Lack lack{.is_proven = true,
                  .epoch = first.epoch,
                  .at = first.at,
                  .bytes = {bytes, bytes + first.said}};
  EXPECT_EQ(LacksOf(log_, image_, damaged), (Lacks{{first.lsn.value, lack}}));
}

// Both copies of the superline, or the newer one of two.
TEST_F(DamageTest, SuperlineThatIsGoneIsNoDamage) {
  RegionImage damaged = image_;
  damaged[30] ^= std::byte{1};
  EXPECT_EQ(LacksOf(log_, image_, damaged), Lacks{});
  damaged[kSuperlineCopyBytes + 30] ^= std::byte{1};
  EXPECT_EQ(LacksOf(log_, image_, damaged), std::nullopt);
}

TEST_F(DamageTest, OtherFormatsAreNotRead) {
  const auto state = OfAnotherFormat(image_);
  EXPECT_EQ(ReadImage(state), std::nullopt);
}

TEST_F(DamageTest, RecordThatOthersHaveIsSpare) {
  const FaultBudget budget(world_);
  const ImageRecord& first = log_.records.front();
  EXPECT_TRUE(budget.IsSpare(1, image_, first, log_.log_epoch));
  RegionImage other = image_;
  other[first.at + 1] ^= std::byte{1};
  EXPECT_FALSE(budget.IsSpare(1, other, first, log_.log_epoch));
  Lose(2);
  EXPECT_FALSE(budget.IsSpare(1, image_, first, log_.log_epoch));
}

// The checkers' verdicts on it.

TEST_F(StorageTest, RegionOfAnotherNodeThatTakesPartViolatesA8) {
  Cut(0);
  Cut(2);
  store().Swap(0, 2);
  checkers().reports.Promised(0, quorum::Promise{});
  EXPECT_EQ(violated(), "P-A8");
}

TEST_F(StorageTest, OpeningAnAlienRegionViolatesA8) {
  world_.JudgeRefusal(world_.machine(0), absl::DataLossError("zeros"));
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(world_.counters().regions_refused, 1u);
  world_.JudgeRefusal(world_.machine(0), absl::OkStatus());
  EXPECT_EQ(violated(), "P-A8");
}

TEST_F(StorageTest, BlankReplicaThatKnowsViolatesInv16) {
  Lose(1);
  recovery::StateReport report;
  report.blank = true;
  checkers().reports.Reported(1, report);
  EXPECT_EQ(violated(), "");
  report.blank = false;
  checkers().reports.Reported(1, report);
  EXPECT_EQ(violated(), "P-INV-16");
}

TEST_F(StorageTest, InstallationOnABlankReplicaViolatesInv16) {
  Lose(1);
  checkers().reports.Installed(1, Epoch(5));
  EXPECT_EQ(violated(), "P-INV-16");
}

TEST_F(StorageTest, DenialOfWhatWasProvenViolatesInv9) {
  Hurt(1);
  recovery::StateReport report;
  report.node = NodeId(2);
  report.table = EpochTable::Empty(kLogId);
  checkers().reports.Reported(1, report);
  EXPECT_EQ(violated(), "P-INV-9");
}

TEST_F(StorageTest, DenialOfWhatWasNotProvenIsAsTorn) {
  Hurt(1, /*is_proven=*/false);
  recovery::StateReport report;
  report.table = EpochTable::Empty(kLogId);
  checkers().reports.Reported(1, report);
  EXPECT_EQ(violated(), "");
}

TEST_F(StorageTest, ReportOfASuspectReplicaThatKnowsViolatesInv25) {
  store().Suspect(1, Epoch());
  recovery::StateReport report;
  report.table = EpochTable::Empty(kLogId);
  report.suspect = true;
  checkers().reports.Reported(1, report);
  EXPECT_EQ(violated(), "");
  EXPECT_TRUE(store().IsSuspect(1));
  report.suspect = false;
  checkers().reports.Reported(1, report);
  EXPECT_EQ(violated(), "P-INV-25");
}

TEST_F(StorageTest, SuspectReplicaIsTrustedOnceItSaysThatItHasInstalled) {
  store().Suspect(1, Epoch());
  store().Installed(1);
  EXPECT_TRUE(store().IsSuspect(1));
  checkers().reports.Installed(1, Epoch(0));
  EXPECT_FALSE(store().IsSuspect(1));
}

// The process that knew of the error was killed while it wrote the superline
// that ends the installation: that may be on the medium.
TEST_F(StorageTest, SuspicionThatIsForgottenEndsWithTheInstallation) {
  store().Suspect(1, Epoch());
  store().Forget(1, /*is_marked=*/true);
  EXPECT_TRUE(store().IsSuspect(1));
  store().Installed(1);
  EXPECT_FALSE(store().IsSuspect(1));
  store().Suspect(1, Epoch());
  store().Installed(1);
  EXPECT_TRUE(store().IsSuspect(1));
  EXPECT_TRUE(store().WasSuspect(1));
  store().Forget(1, /*is_marked=*/false);
  EXPECT_FALSE(store().IsSuspect(1));
}

// A record of zeros, which lies in every ring that was never written.
TEST_F(StorageTest, WhatWasOnALostMediumCountsUntilALaterEpoch) {
  const std::vector<std::byte> zeros(64);
  RecordView record;
  record.offset = RingOffset(128);
  checkers().durability.Learn(record, zeros.data(), Epoch(0));
  Lose(0);
  Lose(1);
  checkers().durability.Check();
  EXPECT_EQ(violated(), "");
  checkers().durability.Learn(record, zeros.data(), Epoch(1));
  checkers().durability.Check();
  EXPECT_EQ(violated(), "P-INV-22");
}

}  // namespace
}  // namespace alpheus::sim
