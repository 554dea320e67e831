// SPDX-License-Identifier: Apache-2.0
// Openings in which replicas name only what lies after their proven places
// (docs/design/recovery.md#short-reports).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/mix.h"
#include "log/base/random.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {
namespace {

using Primary = OpeningWorld::Primary;
using ::testing::ElementsAre;

uint64_t Seed() {
  const char* seed = std::getenv("ALPHEUS_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

// Two worlds in which the same happens; the replicas of one report all.
class Twins {
 public:
  explicit Twins(uint64_t seed) : random_(seed) {
    for (const bool is_short : {false, true}) {
      worlds_.push_back(std::make_unique<OpeningWorld>(OpeningWorld::Options{
          .members = kMembers,
          .seed = seed,
          .read_whole_bytes_max = is_short ? 0 : kReadWholeBytesMax}));
    }
  }

  // Opens an epoch on a member, and writes records, each on any members.
  void Round() {
    const int host = static_cast<int>(random_.Below(kMembers));
    std::vector<std::unique_ptr<Primary>> primaries;
    for (const auto& world : worlds_) primaries.push_back(world->Open(host));
    const absl::Status& whole = primaries[0]->status();
    ASSERT_EQ(whole.ok(), primaries[1]->status().ok())
        << whole << "\n"
        << primaries[1]->status();
    if (!whole.ok()) return;
    EXPECT_EQ(primaries[0]->opened->head, primaries[1]->opened->head);
    EXPECT_EQ(primaries[0]->opened->end, primaries[1]->opened->end);
    for (int node = 1; node <= kMembers; ++node) {
      EXPECT_EQ(worlds_[0]->Payloads(node), worlds_[1]->Payloads(node))
          << "node " << node;
    }
    const uint64_t records = random_.Below(4);
    for (uint64_t i = 0; i < records; ++i) {
      std::vector<int> nodes;
      for (int node = 1; node <= kMembers; ++node) {
        if (random_.Below(3) != 0) nodes.push_back(node);
      }
      const std::string payload(1 + random_.Below(90), 'x');
      for (size_t w = 0; w < worlds_.size(); ++w) {
        worlds_[w]->Append(*primaries[w], payload, nodes);
      }
    }
  }

 private:
  static constexpr int kMembers = 3;
  Random random_;
  std::vector<std::unique_ptr<OpeningWorld>> worlds_;
};

TEST(ShortReportsTest, OpeningsChooseWhatWholeReportsSay) {
  for (uint64_t run = 0; run < 40; ++run) {
    SCOPED_TRACE(absl::StrCat("ALPHEUS_SEED ", Seed(), ", run ", run));
    Twins twins(Mix(Seed(), run));
    for (int round = 0; round < 6 && !::testing::Test::HasFailure(); ++round) {
      twins.Round();
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// A member that was away gets what lies before the others' places as bytes.
TEST(ShortReportsTest, MemberThatWasAwayGetsWhatNobodyNames) {
  OpeningWorld world({.read_whole_bytes_max = 0});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  for (const char* text : {"a", "b", "c"}) {
    world.Append(*primary, text, {1, 2});
  }
  primary.reset();
  world.Crash(3);
  primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  world.Append(*primary, "d", {1, 2});
  primary.reset();
  world.Restart(3);
  primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  for (const int node : {1, 2, 3}) {
    EXPECT_THAT(world.Payloads(node), ElementsAre("a", "b", "c", "d"));
  }
}

// Three records on all members, whose watermarks name the last one.
std::unique_ptr<OpeningWorld> WithThreeRecords() {
  auto world = std::make_unique<OpeningWorld>(
      OpeningWorld::Options{.read_whole_bytes_max = 0});
  auto primary = world->Open(0);
  EXPECT_TRUE(primary->status().ok()) << primary->status();
  for (const char* text : {"a", "b", "c"}) {
    world->Append(*primary, text, {1, 2, 3});
  }
  primary.reset();
  primary = world->Open(0);
  EXPECT_TRUE(primary->status().ok()) << primary->status();
  return world;
}

// Before the place a member says that it has what it can't read any more: no
// nack, so that the log ends where it did (P-C6). A scrub repairs it.
TEST(ShortReportsTest, DamageBeforeThePlaceShortensNoLog) {
  const std::unique_ptr<OpeningWorld> world = WithThreeRecords();
  world->Damage(2, world->positions[1]);
  const auto primary = world->Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_EQ(primary->opened->end.lsn, Lsn(4));
  for (const int node : {1, 3}) {
    EXPECT_THAT(world->Payloads(node), ElementsAre("a", "b", "c"));
  }
}

// A member that installs reads what was copied to it, and finds damage that no
// report named. The next opening asks for all, and repairs it (P-C8).
TEST(ShortReportsTest, DamageThatACopyMeetsIsLookedForByTheNextOpening) {
  OpeningWorld world({.read_whole_bytes_max = 0});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  for (const char* text : {"a", "b", "c"}) {
    world.Append(*primary, text, {1, 2});
  }
  primary.reset();
  world.Crash(3);
  primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  primary.reset();
  world.Restart(3);
  world.Damage(1, world.positions[1]);
  // Node 2, which has all, does not open its ring, so that node 1 is read.
  world.server(2).on_request = [](const recovery::Message& request) {
    return !std::holds_alternative<recovery::OpenForRepair>(request);
  };
  recovery::EpochOpeningOptions options = world.OpeningOptions(2);
  const auto failed = world.Open(2, options);
  EXPECT_TRUE(absl::IsDataLoss(failed->status())) << failed->status();
  EXPECT_TRUE(failed->opening->wants_whole_reports());
  EXPECT_TRUE(failed->opening->may_try_again());

  world.server(2).on_request = {};
  options.whole_reports = true;
  const auto next = world.Open(2, options);
  ASSERT_TRUE(next->status().ok()) << next->status();
  for (const int node : {1, 2, 3}) {
    EXPECT_THAT(world.Payloads(node), ElementsAre("a", "b", "c"));
  }
}

// RPL4. The only good copy is not overwritten by one that nobody has read.
TEST(ShortReportsTest, SuspectReplicaGetsOnlyRecordsThatWereRead) {
  const std::unique_ptr<OpeningWorld> world = WithThreeRecords();
  for (const int node : {1, 2}) world->Damage(node, world->positions[1]);
  world->Crash(3);
  world->Restart(3, /*suspect=*/true);
  recovery::EpochOpeningOptions options = world->OpeningOptions(0);
  const auto refused = world->Open(0, options);
  EXPECT_TRUE(absl::IsUnavailable(refused->status())) << refused->status();
  EXPECT_TRUE(refused->opening->wants_whole_reports());
  EXPECT_TRUE(refused->opening->may_try_again());
  EXPECT_THAT(world->Payloads(3), ElementsAre("a", "b", "c"));

  options.whole_reports = true;
  const auto lost = world->Open(0, options);
  EXPECT_TRUE(absl::IsDataLoss(lost->status())) << lost->status();
  EXPECT_THAT(world->Payloads(3), ElementsAre("a", "b", "c"));
}

TEST(ShortReportsTest, SuspectReplicaIsFilledAgain) {
  const std::unique_ptr<OpeningWorld> world = WithThreeRecords();
  world->Damage(1, world->positions[1]);
  world->Crash(3);
  world->Restart(3, /*suspect=*/true);
  recovery::EpochOpeningOptions options = world->OpeningOptions(0);
  EXPECT_TRUE(world->Open(0, options)->opening->wants_whole_reports());
  options.whole_reports = true;
  const auto primary = world->Open(0, options);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  for (const int node : {1, 2, 3}) {
    EXPECT_THAT(world->Payloads(node), ElementsAre("a", "b", "c"));
  }
}

// The working copy is read before anything is copied from it.
TEST(ShortReportsTest, PrimaryWithoutReplicaReadsWhatASuspectOneGets) {
  const std::unique_ptr<OpeningWorld> world = WithThreeRecords();
  world->Crash(3);
  world->Restart(3, /*suspect=*/true);
  const auto primary = world->Open(world->outsider());
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_THAT(world->Payloads(3), ElementsAre("a", "b", "c"));
}

// The record at the place is read: its damage is seen, and repaired.
TEST(ShortReportsTest, DamageAtThePlaceIsRepaired) {
  const std::unique_ptr<OpeningWorld> world = WithThreeRecords();
  world->Damage(2, world->positions[2]);
  const auto primary = world->Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_EQ(primary->opened->end.lsn, Lsn(4));
  for (const int node : {1, 2, 3}) {
    EXPECT_THAT(world->Payloads(node), ElementsAre("a", "b", "c"));
  }
}

}  // namespace
}  // namespace alpheus::testing
