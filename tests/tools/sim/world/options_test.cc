// SPDX-License-Identifier: Apache-2.0
// Does a seed decide a run, and does fixing a part of it leave the rest alone?
#include "tools/sim/world/options.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "tools/sim/faults/faults.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kSeeds = 500;

TEST(SimOptionsTest, NamesOfFaultsGoBothWays) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kFaultKinds; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    EXPECT_EQ(FaultOfName(FaultName(kind)), kind);
    names.insert(FaultName(kind));
  }
  EXPECT_EQ(names.size(), kFaultKinds);
  EXPECT_EQ(FaultOfName("meteorite"), std::nullopt);
}

TEST(SimOptionsTest, TheSeedDecidesAll) {
  std::set<std::string> vectors;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string vector = Describe(DrawOptions(seed, {}));
    EXPECT_EQ(vector, Describe(DrawOptions(seed, {})));
    vectors.insert(vector);
  }
  EXPECT_GT(vectors.size(), kSeeds * 9 / 10);
}

TEST(SimOptionsTest, AllSizesAndClassesAreDrawn) {
  std::set<std::pair<int, int>> sizes;
  std::set<size_t> on;
  std::set<size_t> off;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunOptions options = DrawOptions(seed, {});
    ASSERT_LE(options.write_quorum, options.members());
    sizes.emplace(options.members(), options.write_quorum);
    for (size_t i = 0; i < kFaultKinds; ++i) {
      (options.weights[i] != 0 ? on : off).insert(i);
    }
  }
  EXPECT_EQ(sizes.size(), 15u);
  EXPECT_EQ(on.size(), kFaultKinds);
  EXPECT_EQ(off.size(), kFaultKinds);
}

TEST(SimOptionsTest, WhatIsFixedChangesNothingElse) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunOptions drawn = DrawOptions(seed, {});
    Fixed fixed;
    fixed.nodes = drawn.members();
    fixed.write_quorum = drawn.write_quorum;
    fixed.clients = 17;
    fixed.payload_bytes_max = 9;
    fixed.without_breaks = true;
    fixed.without_yields = true;
    RunOptions expected = drawn;
    expected.clients = 17;
    expected.payload_bytes_max = 9;
    expected.break_probability = 0;
    expected.yield_odds = 0;
    expected.switch_odds = 0;
    EXPECT_EQ(Describe(DrawOptions(seed, fixed)), Describe(expected)) << seed;
  }
}

// A quarter writes as RocksDB does, in a ring with room for its metadata; what
// others do is drawn as it was before there were any of these.
TEST(SimOptionsTest, EachWorkloadIsDrawn) {
  std::map<Workload, uint64_t> drawn;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunOptions options = DrawOptions(seed, {});
    ++drawn[options.workload];
    if (options.workload == Workload::kRocksDb) {
      EXPECT_GE(options.ring_capacity, 32768u) << seed;
    } else {
      EXPECT_LE(options.ring_capacity, 16384u) << seed;
    }
    Fixed fixed;
    fixed.workload = options.workload;
    EXPECT_EQ(Describe(DrawOptions(seed, fixed)), Describe(options)) << seed;
  }
  EXPECT_GT(drawn[Workload::kMixed], kSeeds / 4);
  EXPECT_GT(drawn[Workload::kWal], kSeeds / 4);
  EXPECT_GT(drawn[Workload::kRocksDb], kSeeds / 6);
  EXPECT_LT(drawn[Workload::kRocksDb], kSeeds / 3);
}

TEST(SimOptionsTest, WorkloadNamesGoBothWays) {
  for (const Workload workload : {Workload::kMixed, Workload::kWal,
                                  Workload::kRocksDb, Workload::kService}) {
    EXPECT_EQ(WorkloadOfName(WorkloadName(workload)), workload);
  }
  EXPECT_EQ(WorkloadOfName("sqlite"), std::nullopt);
}

// Only a scrub repairs what an opening does not read.
bool NeedsScrubs(const RunOptions& options) {
  return HasStorageFaults(options) &&
         options.read_whole_bytes_max < options.ring_capacity;
}

TEST(SimOptionsTest, ShortReadingsAreDrawnWithStorageFaultsAsWithout) {
  std::map<bool, uint64_t> runs;
  std::map<bool, uint64_t> of_nothing;  // before the place
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunOptions options = DrawOptions(seed, {});
    const bool has_storage_faults = HasStorageFaults(options);
    ++runs[has_storage_faults];
    if (options.read_whole_bytes_max == 0) ++of_nothing[has_storage_faults];
    EXPECT_TRUE(options.background_actors.scrub || !NeedsScrubs(options));
    EXPECT_LE(options.read_whole_bytes_max, options.ring_capacity);
  }
  for (const bool has_storage_faults : {false, true}) {
    EXPECT_GT(of_nothing[has_storage_faults], runs[has_storage_faults] / 3);
    EXPECT_LT(of_nothing[has_storage_faults], runs[has_storage_faults] * 2 / 3);
  }
}

TEST(SimOptionsTest, BackgroundActorsComeByLotOrAsTheyAreFixed) {
  std::set<std::tuple<bool, bool, bool, bool, bool>> drawn;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const BackgroundActors background_actors =
        DrawOptions(seed, {}).background_actors;
    drawn.emplace(background_actors.tail, background_actors.unauthenticated,
                  background_actors.changes, background_actors.scrub,
                  background_actors.claim);
    Fixed fixed;
    fixed.background_actors = {.tail = true};
    const RunOptions options = DrawOptions(seed, fixed);
    EXPECT_TRUE(options.background_actors.tail);
    EXPECT_FALSE(options.background_actors.unauthenticated);
    EXPECT_FALSE(options.background_actors.changes);
    EXPECT_EQ(options.background_actors.scrub, NeedsScrubs(options)) << seed;
    EXPECT_FALSE(options.background_actors.claim);
    EXPECT_EQ(options.spares, 0);
    EXPECT_LE(options.tail_machine, options.nodes);
  }
  EXPECT_EQ(drawn.size(), 32u);
}

// Machines that may become members; whoever was drawn before is as it was.
TEST(SimOptionsTest, AnOperatorBringsMachines) {
  std::set<int> spares;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Fixed fixed;
    fixed.background_actors = {.changes = true};
    const RunOptions options = DrawOptions(seed, fixed);
    fixed.background_actors = BackgroundActors{};
    const RunOptions without = DrawOptions(seed, fixed);
    EXPECT_EQ(options.members(), without.nodes) << seed;
    EXPECT_EQ(options.weights, without.weights) << seed;
    EXPECT_EQ(options.platforms.size(), static_cast<size_t>(options.nodes));
    EXPECT_GE(options.nodes, 2) << seed;
    EXPECT_FALSE(IsCalm(options)) << seed;
    spares.insert(options.spares);
  }
  EXPECT_EQ(spares.size(), 4u);
}

TEST(SimOptionsTest, OnlyTheClassesThatAreFixedAreOn) {
  Fixed fixed;
  fixed.faults = {FaultKind::kPowerCut, FaultKind::kRival};
  const RunOptions options = DrawOptions(3, fixed);
  for (const Fault& fault : DrawFaults(options)) {
    EXPECT_TRUE(fixed.faults->contains(fault.kind)) << Describe(fault);
  }
  fixed.faults->clear();
  EXPECT_TRUE(DrawFaults(DrawOptions(3, fixed)).empty());
}

TEST(SimFaultsTest, APlanIsNumberedInTheOrderOfTime) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunOptions options = DrawOptions(seed, {});
    int64_t before = 0;
    uint32_t number = 0;
    const std::vector<Fault> faults = DrawFaults(options);
    for (const Fault& fault : faults) {
      EXPECT_EQ(fault.number, number++);
      EXPECT_GE(fault.at_ns, before);
      EXPECT_GT(fault.lasts_ns, 0);
      EXPECT_NE(options.weights[static_cast<size_t>(fault.kind)], 0u);
      before = fault.at_ns;
    }
    EXPECT_GE(faults.size(), 30u) << seed;
  }
}

TEST(SimFaultsTest, AFaultSaysWhatItIs) {
  const Fault fault{
      .number = 4, .kind = FaultKind::kIsolate, .at_ns = 12, .lasts_ns = 34};
  EXPECT_EQ(Describe(fault), "#4 isolate at 12 ns for 34 ns");
}

}  // namespace
}  // namespace alpheus::sim
