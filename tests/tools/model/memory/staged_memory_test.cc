// SPDX-License-Identifier: Apache-2.0
// Each stage by itself, and each way from one to the next: SM1 to SM6.
#include "tools/model/memory/staged_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "tests/tools/model/methods/staged_world.h"

namespace alpheus::testing {

using model::StagedMemory;
using replication::PersistenceDomain;

namespace {

using Stage = StagedMemory::Stage;
using Images = std::set<std::string>;

const Images kAnyImage = {"00", "01", "10", "11"};

// The first move that is possible from this stage.
std::optional<size_t> FindMove(const StagedMemory& staged, Stage from) {
  for (size_t i = 0; i < staged.move_count(); ++i) {
    if (staged.MoveAt(i).from == from) return i;
  }
  return std::nullopt;
}

// All words that are at `from` go to the next stage.
void MoveAll(StagedMemory& staged, Stage from) {
  while (const auto move = FindMove(staged, from)) staged.Make(*move);
}

// Takes two words that were just received to a stage.
void BringTo(StagedMemory& staged, Stage stage) {
  for (const Stage from : {Stage::kAdapter, Stage::kIio, Stage::kVisible}) {
    if (from < stage) MoveAll(staged, from);
  }
}

class StagedPlatformTest
    : public ::testing::TestWithParam<StagedMemory::Options> {
 protected:
  PersistenceDomain domain() const { return GetParam().domain; }
  StagedWorld world_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Staged, StagedPlatformTest,
                         ::testing::ValuesIn(StagedPlatforms()),
                         [](const auto& info) {
                           return StagedPlatformName(info.param);
                         });

// §3.1.1: each domain is "this part of the memory hierarchy" and what is
// behind.
TEST_P(StagedPlatformTest, ReceivedWordsOutliveThePowerWithWholeSystemOnly) {
  world_.Receive(0, 2);
  EXPECT_EQ(world_.staged.WordsAt(Stage::kAdapter), 2u);
  EXPECT_EQ(world_.Visible(), "00");
  EXPECT_EQ(world_.Cut(), domain() == PersistenceDomain::kSystem
                              ? Images{"11"}
                              : Images{"00"});
}

TEST_P(StagedPlatformTest, PostedWordsOutliveThePowerWithWholeSystemOnly) {
  world_.Receive(0, 2);
  BringTo(world_.staged, Stage::kIio);
  EXPECT_EQ(world_.staged.WordsAt(Stage::kIio), 2u);
  EXPECT_EQ(world_.Visible(), "00");
  EXPECT_EQ(world_.Cut(), domain() == PersistenceDomain::kSystem
                              ? Images{"11"}
                              : Images{"00"});
}

// §3.1.2: DMP keeps neither the cache nor what is on its way to the controller.
TEST_P(StagedPlatformTest, VisibleWordsAreOpenWithMemoryPersistenceOnly) {
  world_.Receive(0, 2);
  BringTo(world_.staged, Stage::kVisible);
  EXPECT_EQ(world_.staged.WordsAt(Stage::kVisible), GetParam().ddio ? 0u : 2u);
  EXPECT_EQ(world_.Visible(), "11");
  EXPECT_EQ(world_.Cut(),
            domain() == PersistenceDomain::kMemory ? kAnyImage : Images{"11"});
}

TEST_P(StagedPlatformTest, WordsGoToTheControllerByThemselvesWithDdioOff) {
  world_.Receive(0, 2);
  BringTo(world_.staged, Stage::kController);
  EXPECT_EQ(world_.staged.move_count(), 0u);
  const bool is_open =
      domain() == PersistenceDomain::kMemory && GetParam().ddio;
  EXPECT_EQ(world_.Cut(), is_open ? kAnyImage : Images{"11"});
}

TEST_P(StagedPlatformTest, FlushedAndFencedWordsOutliveThePower) {
  world_.Receive(0, 2);
  BringTo(world_.staged, Stage::kVisible);
  world_.FlushAndFence();
  EXPECT_EQ(world_.Cut(), Images{"11"});
}

// The processor's own stores: no peer's, and no domain but the cache's.
TEST_P(StagedPlatformTest, StoresOfTheProcessorAreInTheCache) {
  *reinterpret_cast<uint64_t*>(world_.model.region().data()) = 1;
  EXPECT_EQ(world_.Cut(), domain() == PersistenceDomain::kMemory
                              ? (Images{"00", "10"})
                              : Images{"10"});
}

// SM4.
TEST_P(StagedPlatformTest, ReceiveCompletionTakesAllToVisibleAndNoFurther) {
  world_.Receive(0, 1);
  world_.Receive(1, 1);
  world_.staged.PushForReceive(1);
  EXPECT_TRUE(world_.staged.IsVisible(1));
  EXPECT_EQ(world_.Visible(), "11");
  EXPECT_EQ(world_.staged.WordsAt(Stage::kVisible), GetParam().ddio ? 0u : 2u);
}

// SM5.
TEST_P(StagedPlatformTest, ReadTakesAllToTheControllerWithDdioOff) {
  world_.Receive(0, 1);
  world_.Receive(1, 1);
  world_.staged.PushForRead(1);
  EXPECT_EQ(world_.Visible(), "11");
  EXPECT_EQ(world_.staged.move_count(), 0u);
  const bool is_open =
      domain() == PersistenceDomain::kMemory && GetParam().ddio;
  EXPECT_EQ(world_.Cut(), is_open ? kAnyImage : Images{"11"});
}

// SM4, SM5: other connections' writes stay where they are.
TEST_P(StagedPlatformTest, PushesAreOfOneChannel) {
  world_.Receive(0, 1, /*channel=*/1);
  world_.Receive(1, 1, /*channel=*/2);
  world_.staged.PushForReceive(1);
  EXPECT_EQ(world_.Visible(), "10");
  EXPECT_TRUE(world_.staged.IsVisible(1));
  EXPECT_FALSE(world_.staged.IsVisible(2));
  world_.staged.PushForRead(2);
  EXPECT_EQ(world_.Visible(), "11");
  // The first channel's visible word is still on its way.
  EXPECT_EQ(world_.staged.WordsAt(Stage::kVisible), GetParam().ddio ? 0u : 1u);
}

class StagedMemoryTest : public ::testing::Test {
 protected:
  StagedWorld world_{{.ddio = false}};
};

// SM1: 8-byte words of the memory, whatever the write's own first byte is.
TEST_F(StagedMemoryTest, WordsAreTheMemorysWords) {
  StagedWorld world({}, 4);
  const std::vector<std::byte> bytes(21, std::byte{0xff});
  std::byte* start = world.model.region().data();
  world.staged.Receive({.channel = 1}, {start + 3, 21}, bytes);
  ASSERT_EQ(world.staged.move_count(), 3u);
  std::set<std::pair<size_t, size_t>> words;
  for (MoveAll(world.staged, Stage::kAdapter); world.staged.move_count() > 0;) {
    const size_t at = static_cast<size_t>(world.staged.MoveAt(0).word - start);
    const auto count = [&] {
      return static_cast<size_t>(
          std::count(start, start + 32, std::byte{0xff}));
    };
    const size_t before = count();
    world.staged.Make(0);
    words.emplace(at, count() - before);
  }
  EXPECT_EQ(words,
            (std::set<std::pair<size_t, size_t>>{{3, 5}, {8, 8}, {16, 8}}));
  EXPECT_EQ(start[2], std::byte{0});
  EXPECT_EQ(start[24], std::byte{0});
}

TEST_F(StagedMemoryTest, WritesInsideOneWordAreOneMove) {
  const std::vector<std::byte> bytes(2, std::byte{1});
  std::byte* start = world_.model.region().data();
  world_.staged.Receive({.channel = 1}, {start + 5, 2}, bytes);
  EXPECT_EQ(world_.staged.move_count(), 1u);
  world_.staged.Receive({.channel = 1}, {start, 0}, {});
  EXPECT_EQ(world_.staged.move_count(), 1u);
  world_.staged.PushForRead(1);
  EXPECT_EQ(start[4], std::byte{0});
  EXPECT_EQ(start[5], std::byte{1});
  EXPECT_EQ(start[6], std::byte{1});
  EXPECT_EQ(start[7], std::byte{0});
}

// SM2, at both places.
TEST_F(StagedMemoryTest, LaterWriteWaitsForAllWordsOfTheEarlierOne) {
  StagedWorld world({}, 3);
  world.Receive(0, 2);
  world.Receive(2, 1);
  const std::byte* last = world.Words(2, 1).data();
  const auto last_may_move = [&] {
    for (size_t i = 0; i < world.staged.move_count(); ++i) {
      if (world.staged.MoveAt(i).word == last) return true;
    }
    return false;
  };
  EXPECT_FALSE(last_may_move());
  world.staged.Make(*FindMove(world.staged, Stage::kAdapter));
  EXPECT_FALSE(last_may_move()) << "one word is still in the adapter";
  world.staged.Make(*FindMove(world.staged, Stage::kAdapter));
  EXPECT_TRUE(last_may_move());
  MoveAll(world.staged, Stage::kAdapter);
  EXPECT_FALSE(last_may_move());
  world.staged.Make(*FindMove(world.staged, Stage::kIio));
  EXPECT_FALSE(last_may_move()) << "one word is still on PCIe";
  world.staged.Make(*FindMove(world.staged, Stage::kIio));
  EXPECT_TRUE(last_may_move());
}

// SM2: not between channels, and not with relaxed ordering.
TEST_F(StagedMemoryTest, OrderIsOfAChannelAndMayBeRelaxed) {
  world_.Receive(0, 1, /*channel=*/1);
  world_.Receive(1, 1, /*channel=*/2);
  EXPECT_EQ(world_.staged.move_count(), 2u);
  StagedWorld relaxed({.relaxed_ordering = true});
  relaxed.Receive(0, 1);
  relaxed.Receive(1, 1);
  EXPECT_EQ(relaxed.staged.move_count(), 2u);
  relaxed.staged.PushForReceive(1);
  EXPECT_EQ(relaxed.Visible(), "11") << "SM4: a completion is never relaxed";
}

// SM3.
TEST_F(StagedMemoryTest, VisibleWordsAreAcceptedInAnyOrder) {
  world_.Receive(0, 1);
  world_.Receive(1, 1);
  BringTo(world_.staged, Stage::kVisible);
  ASSERT_EQ(world_.staged.move_count(), 2u);
  EXPECT_EQ(world_.staged.MoveAt(1).word, world_.Words(1, 1).data());
  world_.staged.Make(1);
  EXPECT_EQ(world_.Cut(), (Images{"01", "11"}));
}

// The older one of two writes of a word, accepted last, does not come back.
TEST_F(StagedMemoryTest, WordThatWasWrittenTwiceEndsWithTheLaterWrite) {
  for (const size_t first : {size_t{0}, size_t{1}}) {
    StagedWorld world({.ddio = false}, 1);
    const std::vector<uint64_t> two = {2};
    world.Receive(0, 1);
    world.staged.Receive({.channel = 1}, world.Words(0, 1),
                         std::as_bytes(std::span(two)));
    BringTo(world.staged, Stage::kVisible);
    ASSERT_EQ(world.staged.move_count(), 2u);
    world.staged.Make(first);
    world.staged.Make(0);
    EXPECT_EQ(world.Cut(), Images{"2"});
  }
}

// Memory that is not modelled: the same order, and nothing that stays.
TEST_F(StagedMemoryTest, OtherMemoryIsPassedInOrderToo) {
  alignas(8) std::byte dram[8] = {};
  const std::vector<std::byte> bytes(8, std::byte{1});
  EXPECT_FALSE(world_.staged.Models(dram));
  EXPECT_TRUE(world_.staged.Models(world_.model.region()));
  EXPECT_FALSE(world_.staged.Models(world_.model.region().first(0)));
  EXPECT_FALSE(world_.staged.Models(
      {world_.model.region().data() + 8, world_.model.region().size()}));
  world_.Receive(0, 1);
  world_.staged.Receive({.channel = 1}, dram, bytes);
  EXPECT_EQ(world_.staged.move_count(), 1u);
  MoveAll(world_.staged, Stage::kAdapter);
  MoveAll(world_.staged, Stage::kIio);
  EXPECT_EQ(dram[0], std::byte{1});
  EXPECT_EQ(world_.staged.WordsAt(Stage::kVisible), 1u);
}

// SM6.
TEST_F(StagedMemoryTest, EndDropsWhatTheAdapterHasNotAcknowledged) {
  world_.Receive(0, 1);
  world_.staged.Acknowledge(1);
  world_.Receive(1, 1);
  world_.staged.EndChannel(1);
  EXPECT_EQ(world_.Visible(), "10");
  EXPECT_TRUE(world_.staged.IsVisible(1));
}

TEST_F(StagedMemoryTest, EndLandsWhatIsOnPcie) {
  world_.Receive(0, 2);
  world_.staged.Make(0);
  world_.staged.EndAll();
  EXPECT_EQ(world_.Visible(), "10");
  EXPECT_EQ(world_.staged.WordsAt(Stage::kAdapter), 0u);
  EXPECT_EQ(world_.staged.WordsAt(Stage::kIio), 0u);
}

TEST_F(StagedMemoryTest, EndIsOfOneChannel) {
  world_.Receive(0, 1, /*channel=*/1);
  world_.Receive(1, 1, /*channel=*/2);
  world_.staged.EndChannel(1);
  EXPECT_EQ(world_.staged.move_count(), 1u);
  world_.staged.PushForReceive(2);
  EXPECT_EQ(world_.Visible(), "01");
}

// Words before it in the channel come first (SM2); those behind it stay.
TEST_F(StagedMemoryTest, EndOfARegionKeepsTheOrder) {
  StagedWorld world({}, 4);
  world.Receive(0, 1, 1, /*region=*/7);
  world.Receive(1, 1, 1, /*region=*/8);
  world.staged.Acknowledge(1);
  world.Receive(2, 1, 1, /*region=*/7);
  world.Receive(3, 1, 2, /*region=*/8);
  world.staged.EndRegion(8);
  EXPECT_EQ(world.Visible(), "1100");
  EXPECT_TRUE(world.staged.IsVisible(2));
  world.staged.PushForReceive(1);
  EXPECT_EQ(world.Visible(), "1110");
}

// FB5: a part lands late, another never does.
TEST_F(StagedMemoryTest, BrokenChannelLosesAPartThatIsDrawn) {
  std::map<std::string, int> seen;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    Random random(seed);
    StagedWorld world({}, 3);
    world.Receive(2, 1);
    world.staged.Acknowledge(1);
    world.Receive(0, 2);
    world.staged.Abandon(1, random);
    world.staged.PushForReceive(1);
    ++seen[world.Visible()];
  }
  EXPECT_EQ(seen.size(), 4u);
  for (const char* image : {"001", "011", "101", "111"}) {
    EXPECT_GT(seen[image], 0) << image;
  }
}

TEST_F(StagedMemoryTest, DetachLosesWhatIsInFlight) {
  world_.Receive(0, 1);
  world_.Receive(1, 1, /*channel=*/2);
  world_.staged.PushForReceive(2);
  EXPECT_EQ(world_.staged.move_count(), 2u);
  world_.staged.Detach(world_.model);
  EXPECT_EQ(world_.staged.move_count(), 0u);
  EXPECT_TRUE(world_.staged.IsVisible(1));
  EXPECT_FALSE(world_.staged.Models(world_.model.region()));
}

// Same seed, same way.
TEST_F(StagedMemoryTest, DrawnMovesAreRepeatable) {
  const auto run = [](uint64_t seed) {
    Random random(seed);
    StagedWorld world({.ddio = false}, 8);
    world.Receive(0, 8);
    std::string trace;
    while (world.staged.MakeSome(1, random) == 1) trace += world.Visible();
    EXPECT_EQ(world.Visible(), "11111111");
    EXPECT_EQ(world.staged.move_count(), 0u);
    return trace;
  };
  EXPECT_EQ(run(1).size(), 3u * 8 * 8);
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

using StagedMemoryDeathTest = StagedMemoryTest;

TEST_F(StagedMemoryDeathTest, MovesThatAreNotPossibleAbort) {
  EXPECT_DEATH(world_.staged.Make(0), "a move that is possible");
}

TEST_F(StagedMemoryDeathTest, WritesOfTwoLengthsAbort) {
  const std::vector<std::byte> bytes(7);
  EXPECT_DEATH(world_.staged.Receive({}, world_.Words(0, 1), bytes),
               "one length");
}

}  // namespace
}  // namespace alpheus::testing
