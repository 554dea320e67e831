// SPDX-License-Identifier: Apache-2.0
// Power cuts at every step of what a replica writes while an epoch is opened.
//
// Method: a scenario is a list of calls. A first run notes the superline after
// each; in a second run, at every fence, every image that a power cut may leave
// is read: its superline is that before or after the call that runs, and its
// ring holds what the superline says. A scan from the proven place to the
// ceiling ends where one of the whole ring does (P-A3.7). Some of the images
// are then opened, and promise the next epoch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "log/core/read/scan.h"
#include "log/format/atomic_cell.h"
#include "tests/recovery/replica/replica_world.h"
#include "tests/support/fixtures/log_harness.h"
#include "tests/support/oracles/crash_enumerator.h"

namespace alpheus::recovery {

using model::ModelPersistence;

namespace {

using testing::CrashEnumerator;
using testing::CrashState;
using testing::LogImage;
using testing::ReplicaWorld;

constexpr uint64_t kRingCapacity = 1024;
constexpr ReplicaWorld::Options kSmall{kRingCapacity, /*table_capacity=*/16};
constexpr Epoch kNewEpoch(9);
constexpr Epoch kNextEpoch(1000);

using Step = std::function<absl::Status(ReplicaWorld&)>;

struct Scenario {
  std::string name = {};
  std::vector<std::byte> image = {};  // the region before
  LogImage before{kRingCapacity};
  LogImage after{kRingCapacity};
  bool destructive = false;
  bool damaged_pad = false;
  bool has_low_ceilings = false;

  LocalReplicaOptions ToOpen() const {
    LocalReplicaOptions options;
    options.name = "model";
    if (has_low_ceilings) options.read_whole_bytes_max = 0;
    return options;
  }
};

std::vector<std::string> PayloadsOf(const LogImage& log) {
  std::vector<std::string> payloads;
  RecordCursor cursor(log.ring(), log.table(), log.head(), log.end().offset);
  while (cursor.Next() == RecordCursor::Step::kRecord) {
    payloads.emplace_back(AsText(cursor.record().payload));
  }
  return payloads;
}

// Installs `log`, then lets `more` happen to the ring.
std::vector<std::byte> Installed(
    const LogImage& log, const std::function<void(ReplicaWorld&)>& more) {
  ReplicaWorld world(kSmall);
  EXPECT_TRUE(world.Open().ok());
  EXPECT_TRUE(world.InstallAll(log).ok());
  more(world);
  return world.Snapshot();
}

LogImage TwoRecords() {
  LogImage log(kRingCapacity);
  log.OpenEpoch(Epoch(5));
  log.Append("a");
  log.Append("b");
  log.OpenEpoch(Epoch(6));
  return log;
}

// The replica lacks records.
Scenario Extension() {
  Scenario scenario{.name = "extension", .before = TwoRecords()};
  scenario.image = Installed(scenario.before, [](ReplicaWorld&) {});
  scenario.after = scenario.before;
  scenario.after.Append("c");
  scenario.after.Append(std::string(100, 'd'));
  return scenario;
}

// It has a part of the next record.
Scenario TornTail() {
  Scenario scenario = Extension();
  scenario.name = "torn tail";
  scenario.image = Installed(scenario.before, [&](ReplicaWorld& world) {
    std::byte* const at =
        world.replica().ring().At(scenario.before.end().offset);
    std::memcpy(at, scenario.after.ring().At(scenario.before.end().offset), 24);
  });
  return scenario;
}

// It has valid records of a history that lost, where others go.
Scenario Destructive() {
  Scenario scenario{.name = "destructive", .before = TwoRecords()};
  scenario.destructive = true;
  scenario.after = scenario.before;
  scenario.before.Append("stale");
  scenario.before.Append("tail");
  scenario.image = Installed(TwoRecords(), [&](ReplicaWorld& world) {
    world.CopyAll(scenario.before);
  });
  scenario.after.OpenEpoch(Epoch(7));
  scenario.after.Append(std::string(20, 'y'));
  return scenario;
}

// The missing record lies behind a PAD, which was not copied.
Scenario WrapAround() {
  Scenario scenario{.name = "wrap-around"};
  scenario.damaged_pad = true;
  LogImage& before = scenario.before;
  before.OpenEpoch(Epoch(5));
  before.Append(std::string(400, 'a'));
  before.Append(std::string(400, 'b'));
  before.OpenEpoch(Epoch(6));
  before.CleanThrough(Lsn(1));
  scenario.image = Installed(before, [](ReplicaWorld&) {});
  scenario.after = before;
  scenario.after.Append(std::string(200, 'c'));
  return scenario;
}

// The replica with its ceiling shortly after what it has. Reports and
// installations begin at the proven place.
Scenario WithLowCeilings(Scenario scenario) {
  scenario.name += " with low ceilings";
  scenario.has_low_ceilings = true;
  ReplicaWorld world(kSmall);
  world.Reset(scenario.image);
  Superline superline = world.State().superline;
  superline.ceiling = scenario.before.end().offset + kLineBytes;
  EXPECT_TRUE(WriteCell(world.pmem(), SuperlinePlace(world.region()), 0, 1000,
                        EncodeSuperline(superline)));
  scenario.image = world.Snapshot();
  return scenario;
}

std::vector<Scenario> Scenarios() {
  std::vector<Scenario> scenarios = {Extension(), TornTail(), Destructive(),
                                     WrapAround()};
  for (Scenario& scenario : scenarios) scenario.after.OpenEpoch(kNewEpoch);
  const std::vector<Scenario> with_a_lap = scenarios;
  for (const Scenario& scenario : with_a_lap) {
    scenarios.push_back(WithLowCeilings(scenario));
  }
  return scenarios;
}

std::vector<Step> StepsOf(const Scenario& scenario) {
  const LogImage& log = scenario.after;
  std::vector<Step> steps;
  steps.emplace_back(
      [](ReplicaWorld& world) { return world.AcceptPromise(kNewEpoch); });
  steps.emplace_back([](ReplicaWorld& world) {
    return world.replica().MakeStateReport().status();
  });
  if (scenario.destructive) {
    steps.emplace_back([](ReplicaWorld& world) {
      return world.replica().BeginRepair(kNewEpoch);
    });
  }
  if (scenario.has_low_ceilings) {
    steps.emplace_back([&log](ReplicaWorld& world) {
      return world.replica().RaiseCeiling(kNewEpoch, log.end().offset);
    });
  }
  steps.emplace_back([&scenario, &log](ReplicaWorld& world) {
    world.CopyAll(log);
    if (scenario.damaged_pad) {
      const uint64_t zero = 0;
      std::byte* const pad =
          world.replica().ring().At(log.PositionOf(log.end().lsn - 1).offset);
      world.pmem().Copy(pad + 24, &zero, sizeof(zero));
    }
    Installation installation = log.ToInstall();
    if (scenario.has_low_ceilings) {
      installation.ceiling =
          std::min(installation.ceiling, log.end().offset + kLineBytes);
    }
    return world.replica().Install(installation);
  });
  steps.emplace_back([&log](ReplicaWorld& world) {
    return world.replica().PublishBounds(kNewEpoch, log.BoundsWith(log.end()));
  });
  return steps;
}

// Runs the steps and has every possible cut judged.
class Cutter {
 public:
  Cutter(const Scenario& scenario, std::span<const std::byte> image)
      : scenario_(scenario),
        steps_(StepsOf(scenario)),
        payloads_before_(PayloadsOf(scenario.before)),
        payloads_after_(PayloadsOf(scenario.after)),
        region_(image.begin(), image.end()) {
    reopened_.Reset(image);
    table_before_ = ReadState(image).table.entries();
    watermark_before_ = ReadState(image).ProvenLsn();
    NoteSuperlines(image);
  }

  void Run(std::span<const std::byte> image) {
    ReplicaWorld world(kSmall);
    world.Reset(image);
    ASSERT_TRUE(world.Open(scenario_.ToOpen()).ok());
    world.pmem().SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive != ModelPersistence::Primitive::kFence) return;
      Enumerate(world);
    });
    for (step_ = 0; step_ < steps_.size(); ++step_) {
      const absl::Status done = steps_[step_](world);
      ASSERT_TRUE(done.ok()) << done;
    }
    // The last step is acknowledged now: its result is there in any case.
    --step_;
    superlines_[step_] = superlines_[step_ + 1];
    Enumerate(world);
  }

  const CrashEnumerator::Counts& counts() const { return enumerator_.counts(); }
  int opened() const { return opened_; }
  int repairing_seen() const { return repairing_seen_; }

 private:
  RegionState ReadState(std::span<const std::byte> image) {
    std::memcpy(region_.data(), image.data(), image.size());
    auto state = ReadRegionState(region_, "cut");
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *std::move(state) : RegionState();
  }

  void NoteSuperlines(std::span<const std::byte> image) {
    ReplicaWorld world(kSmall);
    world.Reset(image);
    EXPECT_TRUE(world.Open(scenario_.ToOpen()).ok());
    superlines_.push_back(world.replica().superline());
    for (const Step& step : steps_) {
      const absl::Status done = step(world);
      EXPECT_TRUE(done.ok()) << done;
      superlines_.push_back(world.replica().superline());
    }
  }

  void Enumerate(const ReplicaWorld& world) {
    enumerator_.Enumerate(const_cast<ReplicaWorld&>(world).pmem(), step_,
                          [this](const CrashState& cut) {
                            if (::testing::Test::HasFailure()) return;
                            Judge(cut);
                            if (::testing::Test::HasFailure()) {
                              ADD_FAILURE() << "step " << step_ << "\n"
                                            << cut.Describe();
                            }
                          });
  }

  void Judge(const CrashState& cut) {
    const RegionState state = ReadState(cut.image);
    const Superline& superline = state.superline;
    EXPECT_TRUE(superline == superlines_[step_] ||
                superline == superlines_[step_ + 1])
        << "neither before nor after";
    if (superline.log_epoch == kNewEpoch) {
      JudgeNew(state);
    } else {
      JudgeOld(state);
    }
    if (!superline.repairing) {
      EXPECT_EQ(ScanLog(OpeningScanOf(region_, state, {}, 0)).end,
                ScanLog(ScanInputOf(region_, state)).end)
          << "P-A3.7";
    }
    if (cut.hash % 2 == 0) Reopen(cut.image, superline);
  }

  // P-H3: all of it, whatever the cut took.
  void JudgeNew(const RegionState& state) {
    const LogPosition& end = scenario_.after.end();
    EXPECT_EQ(state.table.entries(), scenario_.after.table().entries());
    EXPECT_FALSE(state.superline.repairing);
    EXPECT_EQ(state.ProvenLsn(), end.lsn - 1);
    EXPECT_LT(state.watermarks.Proven(kNewEpoch), end.lsn);
    const ScanResult scan = ScanLog(ScanInputOf(region_, state));
    EXPECT_EQ(scan.end, end);
    if (state.head() == scenario_.after.head()) {
      EXPECT_EQ(testing::LivePayloads(region_), payloads_after_);
    }
  }

  // Expects all that it had before, unless it says that it knows nothing
  // (P-H12).
  void JudgeOld(const RegionState& state) {
    EXPECT_EQ(state.table.entries(), table_before_);
    EXPECT_EQ(state.ProvenLsn(), watermark_before_);
    if (state.superline.repairing) {
      ++repairing_seen_;
      return;
    }
    const std::vector<std::string> payloads = testing::LivePayloads(region_);
    ASSERT_GE(payloads.size(), payloads_before_.size());
    EXPECT_TRUE(std::equal(payloads_before_.begin(), payloads_before_.end(),
                           payloads.begin()));
  }

  void Reopen(std::span<const std::byte> image, const Superline& superline) {
    ++opened_;
    reopened_.Reset(image);
    ASSERT_TRUE(reopened_.Open().ok());
    EXPECT_EQ(reopened_.replica().superline(), superline);
    ASSERT_TRUE(reopened_.AcceptPromise(kNextEpoch).ok());
    ASSERT_TRUE(reopened_.replica().MakeStateReport().ok());
    const RegionState state = reopened_.State();
    EXPECT_TRUE(state.superline_cell.copies_agree());
    EXPECT_TRUE(state.table_cell.copies_agree());
    EXPECT_EQ(state.superline.log_epoch, superline.log_epoch);
    EXPECT_EQ(state.superline.repairing, superline.repairing);
  }

  const Scenario& scenario_;
  const std::vector<Step> steps_;
  const std::vector<std::string> payloads_before_;
  const std::vector<std::string> payloads_after_;
  std::vector<std::byte> region_;  // of the image that is judged
  std::vector<EpochEntry> table_before_;
  Lsn watermark_before_;
  std::vector<Superline> superlines_;  // [i]: before step i
  size_t step_ = 0;
  CrashEnumerator enumerator_{{.product_max = 1 << 13, .random_images = 2000}};
  ReplicaWorld reopened_{kSmall};
  int opened_ = 0;
  int repairing_seen_ = 0;
};

// Which copies can't be read beforehand: none, or those of this index.
class ReplicaCrashTest : public ::testing::TestWithParam<int> {};

// P-A4.5, P-H3, P-H12, P-S1, P-S2.
TEST_P(ReplicaCrashTest, EveryCutLeavesTheStateBeforeOrAfter) {
  const int damaged = GetParam();
  for (const Scenario& scenario : Scenarios()) {
    SCOPED_TRACE(scenario.name);
    std::vector<std::byte> image = scenario.image;
    if (damaged >= 0) {
      const Superline superline = ReadRegionState(image, "model")->superline;
      SuperlinePlace(image).copies[damaged][30] ^= std::byte{1};
      EpochTablePlace(image, superline).copies[damaged][30] ^= std::byte{1};
      WatermarkLine(image, damaged)[3] ^= std::byte{1};
    }
    Cutter cutter(scenario, image);
    cutter.Run(image);
    EXPECT_GT(cutter.counts().distinct, 2000u);
    EXPECT_GT(cutter.opened(), 1000);
    EXPECT_EQ(cutter.repairing_seen() > 0, scenario.destructive);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(CopiesDamagedBefore, ReplicaCrashTest,
                         ::testing::Values(-1, 0, 1));

// P-H7: a copy that a killed process left in the caches is not on the medium.
// The next process must not overwrite the other copy before it is. Kill at each
// fence of a promise, cut the power at each fence of the same promise in the
// next process.
TEST(ReplicaKillTest, PromiseOfAKilledProcessIsPersistedFirst) {
  struct Killed {
    std::vector<std::byte> visible;
    std::vector<std::byte> persistent;
  };
  std::vector<Killed> kills;
  ReplicaWorld world(kSmall);
  world.Reset(Installed(TwoRecords(), [](ReplicaWorld&) {}));
  ASSERT_TRUE(world.Open().ok());
  world.pmem().SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kFence) return;
    kills.push_back({world.Snapshot(), world.pmem().CutKeepingNone()});
  });
  ASSERT_TRUE(world.AcceptPromise(kNewEpoch).ok());
  world.pmem().SetHook({});
  EXPECT_THAT(kills, ::testing::SizeIs(2));

  CrashEnumerator enumerator({.product_max = 1 << 14});
  for (const Killed& killed : kills) {
    world.Reset(killed.persistent);
    std::memcpy(world.region().data(), killed.visible.data(),
                killed.visible.size());
    world.pmem().SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive != ModelPersistence::Primitive::kFence) return;
      enumerator.Enumerate(world.pmem(), 0, [](const CrashState& cut) {
        std::vector<std::byte> region(cut.image.begin(), cut.image.end());
        const auto state = ReadRegionState(region, "cut");
        EXPECT_TRUE(state.ok()) << state.status();
      });
    });
    ASSERT_TRUE(world.Open().ok());
    ASSERT_TRUE(world.AcceptPromise(kNewEpoch).ok());
    world.pmem().SetHook({});
    world.PowerCut();
    EXPECT_EQ(world.State().superline.promised_epoch, kNewEpoch);
    EXPECT_TRUE(world.State().superline_cell.copies_agree());
  }
}

// REP8, WMK2: a cut while the place is forgotten leaves it, or leaves none; the
// same is proven. Once that has returned no cut brings it back.
TEST(ReplicaForgetsTest, NoCutBringsThePlaceBack) {
  const LogImage log = TwoRecords();
  ReplicaWorld world(kSmall);
  world.Reset(Installed(log, [](ReplicaWorld&) {}));
  const LogPosition place = world.State().proven_place();
  ASSERT_EQ(place.lsn, Lsn(2));
  ASSERT_TRUE(world.Open().ok());
  ASSERT_TRUE(world.AcceptPromise(kNewEpoch).ok());
  ASSERT_TRUE(world.replica().MakeStateReport(/*from_head=*/true).ok());
  bool is_forgotten = false;
  CrashEnumerator enumerator({.product_max = 1 << 14});
  const auto judge = [&](const CrashState& cut) {
    std::vector<std::byte> region(cut.image.begin(), cut.image.end());
    const auto state = ReadRegionState(region, "cut");
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->ProvenLsn(), place.lsn);
    const LogPosition left = state->proven_place();
    EXPECT_TRUE(left == log.head() || (left == place && !is_forgotten));
  };
  int fences = 0;
  world.pmem().SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kFence) return;
    ++fences;
    enumerator.Enumerate(world.pmem(), 0, judge);
  });
  ASSERT_TRUE(world.replica().RaiseCeiling(kNewEpoch, log.end().offset).ok());
  world.pmem().SetHook({});
  EXPECT_EQ(fences, 2) << "one line after the other";
  is_forgotten = true;
  enumerator.Enumerate(world.pmem(), 1, judge);
}

}  // namespace
}  // namespace alpheus::recovery
