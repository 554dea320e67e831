// SPDX-License-Identifier: Apache-2.0
// Openings that meet a replica of the highest epoch that lags so far that
// chosen records go where it still has valid ones, while members go at any
// point. No power fails: the log must open once all are back.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "recovery/opening/opening_quorums.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {
namespace {

using Images = std::vector<std::vector<std::byte>>;
using ::testing::HasSubstr;
using Primary = OpeningWorld::Primary;

void AppendTo(Primary& primary, size_t bytes) {
  const std::string text(bytes, 'x');
  const std::span<const std::byte> part = AsBytes(text);
  const absl::StatusOr<Lsn> lsn = primary.log->Append({&part, 1}, 1, {});
  ASSERT_TRUE(lsn.ok()) << lsn.status();
}

struct Size {
  int members;
  int write_quorum;
  int laggards;
  int stride;  // events between two points
};

// All members of one epoch; the last ones have a few records at the ring's
// start, the others have more than a lap of later ones.
Images MakeLag(const OpeningWorld::Options& options, int laggards) {
  OpeningWorld world(options);
  std::unique_ptr<Primary> primary = world.Open(0);
  EXPECT_TRUE(primary->status().ok()) << primary->status();
  world.StartLog(*primary);
  for (int i = 0; i < 3; ++i) AppendTo(*primary, 100);
  for (int i = 0; i < 300; ++i) {
    world.StepOthers(0);
    primary->log->Poll();
  }
  for (int lags = options.members - laggards; lags < options.members; ++lags) {
    for (int host = 0; host < options.members + 2; ++host) {
      if (host != lags) world.network().Cut(lags, host);
    }
  }
  AppendTo(*primary, 100);
  // Given up, so that its records hold nobody's space back.
  for (int i = 0; i < 40; ++i) {
    const Lsn durable = primary->log->durable_lsn();
    // Most of a lap stays.
    if (durable > Lsn(7)) {
      EXPECT_TRUE(primary->log->CleanupThrough(durable - 7).ok());
    }
    AppendTo(*primary, 100);
  }
  // More than a lap ahead, with most of a lap alive.
  EXPECT_GT(primary->log->head().offset.value, options.ring_capacity);
  for (int lags = options.members - laggards; lags < options.members; ++lags) {
    EXPECT_LE(world.Payloads(lags + 1).size(), 3u);
    EXPECT_GT(world.Payloads(lags + 1).size(), 0u);
  }
  Images images;
  for (int node = 1; node <= options.members; ++node) {
    images.push_back(world.pmem(node).CutKeepingAll());
  }
  return images;
}

absl::Status OpenAgain(OpeningWorld& world, int host,
                       recovery::EpochOpeningOptions options) {
  for (int tries = 0;; ++tries) {
    const std::unique_ptr<Primary> primary = world.Begin(host, options);
    world.Drive({primary.get()});
    if (!primary->opening->lost_race() || tries == 3) {
      return primary->status();
    }
    options.above = primary->opening->refused_by()->epoch;
  }
}

absl::Status OpenAgain(OpeningWorld& world, int host) {
  return OpenAgain(world, host, world.OpeningOptions(host));
}

class LaggingReplicaTest : public ::testing::TestWithParam<Size> {};

TEST_P(LaggingReplicaTest, MemberThatGoesAtAnyPointLeavesALogThatOpens) {
  OpeningWorld::Options options;
  options.members = GetParam().members;
  options.write_quorum = GetParam().write_quorum;
  options.real_server = true;
  const Images images = MakeLag(options, GetParam().laggards);
  ASSERT_FALSE(HasFailure());
  int points = 0;
  // Opened by a process that has the replica that lags, or none.
  for (const int host : {options.members - 1, options.members}) {
    for (int gone = 1; gone <= options.members; ++gone) {
      if (gone == host + 1) continue;
      for (int steps = 0;; steps += GetParam().stride) {
        OpeningWorld world(options, images);
        for (int node = 1; node <= options.members; ++node) world.Restart(node);
        auto primary = world.Begin(host, world.OpeningOptions(host));
        bool is_over = false;
        for (int i = 0; i < steps && !is_over; ++i) {
          is_over = !world.Step({primary.get()});
        }
        if (is_over) break;
        world.Crash(gone, /*power_cut=*/false);
        world.Drive({primary.get()});
        primary.reset();
        world.Restart(gone);
        if (host < options.members) {
          // Its process ends with the opening.
          world.Crash(host + 1, /*power_cut=*/false);
          world.Restart(host + 1);
        }
        const absl::Status opened = OpenAgain(world, options.members + 1);
        ASSERT_TRUE(opened.ok())
            << "host " << host << " opens, node " << gone << " goes after "
            << steps << " events: " << opened;
        ++points;
      }
    }
  }
  EXPECT_GT(points, 50);
}

INSTANTIATE_TEST_SUITE_P(Sizes, LaggingReplicaTest,
                         ::testing::Values(Size{2, 1, 1, 3}, Size{3, 1, 1, 3},
                                           Size{3, 2, 1, 3}, Size{3, 1, 2, 5},
                                           Size{5, 2, 3, 13}),
                         [](const auto& size) {
                           return "N" + std::to_string(size.param.members) +
                                  "W" +
                                  std::to_string(size.param.write_quorum) +
                                  "Lag" + std::to_string(size.param.laggards);
                         });

// Node 2 stays. Cut off in the middle of its repair it would know nothing, and
// all have to say that they never acknowledged what comes next (W = 1).
TEST(LaggingReplicaChangeTest, ChangeWaitsUntilTheOnlyHolderMayLeave) {
  OpeningWorld::Options options;
  options.members = 2;
  options.write_quorum = 1;
  options.real_server = true;
  const Images images = MakeLag(options, 1);
  ASSERT_FALSE(HasFailure());
  OpeningWorld world(options, images);
  for (const int node : {1, 2}) world.Restart(node);
  const std::vector<std::string> held = world.Payloads(1);
  recovery::EpochOpeningOptions change =
      world.OpeningOptions(world.outsider(), 2, {1, 2}, {1, 1, 1});
  change.change = recovery::MembersChange{
      1, {2, 1, 2}, {NodeId(1), NodeId(2)}, 2, {1, 1, 1}, {NodeId(2)}, {}};
  const absl::Status refused = OpenAgain(world, world.outsider(), change);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr("The replica that holds the log leaves"));
  EXPECT_FALSE(world.replica(2).superline().repairing);
  // The error's advice is taken: both have the log then.
  const absl::Status opened = OpenAgain(world, world.outsider());
  ASSERT_TRUE(opened.ok()) << opened;
  EXPECT_EQ(world.Payloads(2), held);
  const absl::Status changed = OpenAgain(world, world.outsider(), change);
  ASSERT_TRUE(changed.ok()) << changed;
  EXPECT_EQ(world.replica(2).superline().configuration.id, 2u);
  EXPECT_EQ(world.Payloads(2), held);
}

}  // namespace
}  // namespace alpheus::testing
