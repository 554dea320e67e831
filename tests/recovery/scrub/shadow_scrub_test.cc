// SPDX-License-Identifier: Apache-2.0
// A node scrubs a replica that lands in memory: what the medium holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/format/layout.h"
#include "recovery/scrub/scrubbing.h"
#include "recovery/server/served_log.h"
#include "tests/recovery/server/served_world.h"
#include "tests/support/fabrics/model_shadow.h"

namespace alpheus::testing {
namespace {

class ShadowScrubTest : public ::testing::Test {
 protected:
  static constexpr int kRecords = 6;

  ShadowScrubTest() {
    PrimaryLog log(kLogA);
    log.OpenEpoch(Epoch(5));
    for (int i = 1; i <= kRecords; ++i) {
      log.Append(absl::StrCat(std::string(100, 'x'), "record ", i));
    }
    log.OpenEpoch(Epoch(6));  // all of it is proven
    model_ = std::make_unique<model::ModelPersistence>(log.Image());
    shadowed_ = std::make_unique<ShadowedModel>(*model_);
    auto replica = recovery::LocalReplica<ShadowPersistence>::Open(
        shadowed_->pmem(), shadowed_->bytes(), {});
    EXPECT_TRUE(replica.ok()) << replica.status();
    served_ = std::make_unique<recovery::ServedReplica<ShadowPersistence>>(
        shadowed_->pmem(), *std::move(replica));
    scrubbing_ = std::make_unique<recovery::Scrubbing>(
        network_.fabric(0), network_.clock(),
        recovery::Scrubbing::Node{
            kCluster, kNode, {}, [](const std::string&) {}},
        recovery::ScrubbingOptions());
    scrubbing_->Watch(*served_);
  }

  recovery::ScrubCounts ScrubNow() {
    const uint64_t passes = scrubbing_->StateOf(kLogA).passes;
    scrubbing_->Ask(kLogA);
    for (int i = 0; i < 1'000; ++i) {
      scrubbing_->Poll([](Uuid) { return false; });
      if (scrubbing_->StateOf(kLogA).passes > passes) break;
    }
    EXPECT_GT(scrubbing_->StateOf(kLogA).passes, passes);
    return scrubbing_->StateOf(kLogA).pass;
  }
  // Flips a bit of the medium only.
  void Flip(std::byte* at) {
    std::byte* const place =
        model_->region().data() + (at - shadowed_->bytes().data());
    const std::byte flipped = *place ^ std::byte{4};
    model_->Copy(place, &flipped, 1);
    ASSERT_TRUE(Persist(*model_, place, 1));
  }
  void ExpectWhole() {
    EXPECT_TRUE(std::ranges::equal(model_->persistent(), shadowed_->bytes()));
  }

  model::SimNetwork network_{model::SimOptions()};
  std::unique_ptr<model::ModelPersistence> model_;
  std::unique_ptr<ShadowedModel> shadowed_;
  std::unique_ptr<recovery::ServedReplica<ShadowPersistence>> served_;
  std::unique_ptr<recovery::Scrubbing> scrubbing_;
};

// Goal: SCR8. Wherever a record is damaged on the medium it is found, though
// the bytes that peers see are good, and repaired with these: there is no peer.
TEST_F(ShadowScrubTest, DamageOfTheMediumIsFoundAndRepairedFromTheCopy) {
  EXPECT_EQ(ScrubNow().records, uint64_t{kRecords});
  const uint64_t record = RecordBytes(100 + std::string("record 1").size());
  for (uint64_t byte = 0; byte < kRecordHeaderBytes + 100; byte += 7) {
    SCOPED_TRACE(byte);
    Flip(served_->ring().data() + 2 * record + byte);
    const recovery::ScrubCounts counts = ScrubNow();
    EXPECT_EQ(counts.damaged, 1u);
    EXPECT_EQ(counts.repaired, 1u);
    ExpectWhole();
  }
}

TEST_F(ShadowScrubTest, RunOfDamagedRecordsIsRepaired) {
  for (size_t at = 0; at < 4 * kLineBytes; at += kLineBytes) {
    Flip(served_->ring().data() + at);
  }
  const recovery::ScrubCounts counts = ScrubNow();
  EXPECT_GE(counts.damaged, 1u);
  EXPECT_EQ(counts.repaired, counts.damaged);
  ExpectWhole();
}

// One copy of the superline, and of the table.
TEST_F(ShadowScrubTest, CopyThatTheMediumLostIsRepaired) {
  const RegionState state = *ReadRegionState(shadowed_->bytes(), "landed");
  Flip(SuperlinePlace(shadowed_->bytes()).copies[1] + 30);
  Flip(EpochTablePlace(shadowed_->bytes(), state.superline).copies[0] + 30);
  EXPECT_EQ(ScrubNow().repaired, 2u);
  ExpectWhole();
  EXPECT_EQ(ScrubNow().damaged, 0u);
}

// Goal: an update must not overwrite the only copy that the medium still has.
// Method: a power cut at every fence of it.
TEST_F(ShadowScrubTest, UpdateOverwritesNoLastGoodCopyOfTheMedium) {
  for (const int damaged : {0, 1}) {
    SCOPED_TRACE(damaged);
    Flip(SuperlinePlace(shadowed_->bytes()).copies[damaged] + 30);
    int cuts = 0;
    model_->SetHook([&](const model::ModelPersistence::Event& event) {
      if (event.primitive != model::ModelPersistence::Primitive::kFence) return;
      for (auto& image : {model_->CutKeepingNone(), model_->CutKeepingAll()}) {
        std::vector<std::byte> cut = image;
        EXPECT_TRUE(ReadRegionState(cut, "cut").ok());
        ++cuts;
      }
      Random random(9);
      for (int i = 0; i < 20; ++i) {
        std::vector<std::byte> cut = model_->CutDrawing(random);
        EXPECT_TRUE(ReadRegionState(cut, "cut").ok());
      }
    });
    const absl::StatusOr<quorum::PromiseVerdict> promised =
        served_->AcceptPromise(
            {Epoch(static_cast<uint64_t>(10 + damaged)), {NodeId(9), 9}});
    EXPECT_TRUE(promised.ok()) << promised.status();
    model_->SetHook({});
    EXPECT_GE(cuts, 4);
    ExpectWhole();
  }
}

// A node tells peers so of a replica that lands in memory.
TEST_F(ShadowScrubTest, PeersWriteToNoPersistentMemory) {
  EXPECT_FALSE(served_->is_persistent_memory());
  EXPECT_NE(served_->ring().data(), served_->ring_on_medium().data());
}

}  // namespace
}  // namespace alpheus::testing
