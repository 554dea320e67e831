// SPDX-License-Identifier: Apache-2.0
// An adapter stores into modelled memory (CM5); then come a power cut, the
// processor, a kill or the memory controller. Each rule has a case that fails
// if the model is weaker.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/tools/model/memory/model_persistence_fixture.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::model {
namespace {

using ModelDeviceTest = ModelPersistenceTest;

// CM5.
TEST_F(ModelDeviceTest, DeviceStoreIsOpenUntilItIsAccepted) {
  const uint64_t seven = 7;
  const uint64_t store = model_.StoreByDevice(Word(1), &seven, 8);
  EXPECT_EQ(*Word(1), 7u);
  EXPECT_EQ(Possible(1), (Values{0, 7}));
  EXPECT_TRUE(model_.Fence());
  EXPECT_EQ(Possible(1), (Values{0, 7}));
  model_.AcceptDeviceStore(Word(1), 8, store);
  EXPECT_EQ(Possible(1), (Values{7}));
  EXPECT_TRUE(model_.DirtyWords().empty());
}

TEST_F(ModelDeviceTest, DeviceStoreIsPersistedByTheProcessorsFlushToo) {
  const uint64_t seven = 7;
  model_.StoreByDevice(Word(1), &seven, 8);
  FlushAs(1, 1);
  EXPECT_EQ(Possible(1), (Values{0, 7}));
  FenceAs(1);
  EXPECT_EQ(Possible(1), (Values{7}));
}

// CM5: another word of the line, stored by the processor, stays open.
TEST_F(ModelDeviceTest, AcceptanceCoversNoOtherWord) {
  const uint64_t seven = 7;
  model_.Store8(Word(2), 8);
  model_.AcceptDeviceStore(Word(1), 8,
                           model_.StoreByDevice(Word(1), &seven, 8));
  EXPECT_EQ(Possible(1), (Values{7}));
  EXPECT_EQ(Possible(2), (Values{0, 8}));
}

// CM5: half of the word is the device's, the other half the processor's.
TEST_F(ModelDeviceTest, AcceptanceCoversTheDevicesBytesOfAWordOnly) {
  constexpr uint64_t kLow = 0x11;
  constexpr uint64_t kHigh = uint64_t{0x22} << 32;
  model_.Store8(Word(1), 0x10);
  model_.Store8(Word(1), kLow);
  auto* high = reinterpret_cast<std::byte*>(Word(1)) + 4;
  const uint32_t bytes = 0x22;
  const uint64_t store = model_.StoreByDevice(high, &bytes, 4);
  EXPECT_EQ(Possible(1), (Values{0, 0x10, kLow, kHigh | kLow}));
  model_.AcceptDeviceStore(high, 4, store);
  EXPECT_EQ(Possible(1), (Values{kHigh, kHigh | 0x10, kHigh | kLow}));
  EXPECT_FALSE(model_.IsPersisted(Word(1), 4));
  EXPECT_TRUE(model_.IsPersisted(high, 4));
  FlushAs(0, 1);
  FenceAs(0);
  EXPECT_EQ(Possible(1), (Values{kHigh | kLow}));
  EXPECT_TRUE(model_.DirtyWords().empty());
}

// In whichever order: both halves are there once both were accepted.
TEST_F(ModelDeviceTest, TwoDeviceStoresOfOneWordAreAcceptedInAnyOrder) {
  for (const bool first_goes_first : {true, false}) {
    model_.Reset(std::vector<std::byte>(model_.region().size()));
    auto* bytes = reinterpret_cast<std::byte*>(Word(1));
    const uint32_t low = 1;
    const uint32_t high = 2;
    const uint64_t stores[] = {model_.StoreByDevice(bytes, &low, 4),
                               model_.StoreByDevice(bytes + 4, &high, 4)};
    const int first = first_goes_first ? 0 : 1;
    model_.AcceptDeviceStore(bytes + 4 * first, 4, stores[first]);
    EXPECT_EQ(Possible(1), first_goes_first
                               ? (Values{1, 0x2'0000'0001})
                               : (Values{0x2'0000'0000, 0x2'0000'0001}));
    model_.AcceptDeviceStore(bytes + 4 * (1 - first), 4, stores[1 - first]);
    EXPECT_EQ(Possible(1), (Values{0x2'0000'0001}));
    EXPECT_TRUE(model_.DirtyWords().empty());
  }
}

// CM3.
TEST_F(ModelDeviceTest, LateAcceptanceDoesNotUndoANewerStore) {
  const uint64_t seven = 7;
  const uint64_t store = model_.StoreByDevice(Word(1), &seven, 8);
  model_.Store8(Word(1), 8);
  model_.AcceptDeviceStore(Word(1), 8, store);
  EXPECT_EQ(Possible(1), (Values{7, 8}));
  FlushAs(0, 1);
  FenceAs(0);
  EXPECT_EQ(Possible(1), (Values{8}));
  model_.AcceptDeviceStore(Word(1), 8, store);
  EXPECT_EQ(Possible(1), (Values{8}));
  model_.Store8(Word(1), 9);
  model_.AcceptDeviceStore(Word(1), 8, store);
  EXPECT_EQ(Possible(1), (Values{8, 9}));
}

// CM3 the other way round: a snapshot from before the device's store.
TEST_F(ModelDeviceTest, OlderSnapshotDoesNotUndoWhatWasAccepted) {
  model_.Store8(Word(1), 6);
  FlushAs(1, 1);
  const uint64_t seven = 7;
  model_.AcceptDeviceStore(Word(1), 8,
                           model_.StoreByDevice(Word(1), &seven, 8));
  FenceAs(1);
  EXPECT_EQ(Possible(1), (Values{7}));
}

// It may land behind the device's, as behind any store.
TEST_F(ModelDeviceTest, UnfencedNonTemporalStoreOutlivesAnAcceptance) {
  StoreNt(0, 5);
  const uint64_t seven = 7;
  model_.AcceptDeviceStore(Word(1), 8,
                           model_.StoreByDevice(Word(1), &seven, 8));
  EXPECT_EQ(Possible(1), (Values{7, 5}));
}

TEST_F(ModelDeviceTest, PersistVisibleLeavesNothingOpen) {
  model_.Store8(Word(1), 7);
  StoreNt(1, 9);
  *Word(17) = 10;
  const uint64_t seven = 7;
  const uint64_t store = model_.StoreByDevice(Word(18), &seven, 8);
  const std::vector<std::byte> visible = model_.CutKeepingAll();
  model_.PersistVisible();
  EXPECT_TRUE(model_.DirtyWords().empty());
  EXPECT_EQ(model_.CutKeepingNone(), visible);
  model_.AcceptDeviceStore(Word(18), 8, store);
  EXPECT_EQ(model_.CutKeepingNone(), visible);
}

// The same memory, for the next process.
TEST_F(ModelDeviceTest, KillInPlaceKeepsWhatDevicesHaveOnTheirWay) {
  model_.Store8(Word(1), 7);
  model_.Flush(Word(1), 8);
  StoreNt(1, 9);
  const uint64_t eight = 8;
  const uint64_t store = model_.StoreByDevice(Word(2), &eight, 8);
  const auto all = model_.CutKeepingAll();
  const auto none = model_.CutKeepingNone();
  model_.KeepAfterKill();
  EXPECT_EQ(model_.CutKeepingAll(), all);
  EXPECT_EQ(model_.CutKeepingNone(), none);
  EXPECT_TRUE(model_.Fence());
  EXPECT_EQ(Possible(1), (Values{0, 7})) << "nobody waits for that flush";
  model_.AcceptDeviceStore(Word(2), 8, store);
  EXPECT_TRUE(model_.IsPersisted(Word(2), 8));
}

using ModelDeviceDeathTest = ModelDeviceTest;

TEST_F(ModelDeviceDeathTest, DeviceStoresOfTwoWordsAbort) {
  auto* bytes = reinterpret_cast<std::byte*>(Word(0));
  EXPECT_DEATH(model_.StoreByDevice(bytes + 4, Word(2), 8), "of one word");
  EXPECT_DEATH(model_.StoreByDevice(bytes, Word(2), 0), "not none");
}

}  // namespace
}  // namespace alpheus::model
