// SPDX-License-Identifier: Apache-2.0
// Each rule of the crash model but those of devices, by a case that fails if
// the model is weaker.
#include "tools/model/memory/crash_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/random.h"
#include "tests/tools/model/memory/model_persistence_fixture.h"

namespace alpheus::model {
namespace {

TEST_F(ModelPersistenceTest, StartsZeroedAndPersisted) {
  EXPECT_TRUE(model_.DirtyWords().empty());
  EXPECT_TRUE(model_.IsPersisted(Word(0), model_.region().size()));
  EXPECT_EQ(model_.CutKeepingAll(), model_.CutKeepingNone());
}

TEST_F(ModelPersistenceTest, StoreIsOpenUntilFlushedAndFenced) {
  model_.Store8(Word(1), 7);
  EXPECT_EQ(Possible(1), (Values{0, 7}));
  model_.Flush(Word(1), 8);
  EXPECT_EQ(Possible(1), (Values{0, 7}));
  EXPECT_TRUE(model_.Fence());
  EXPECT_EQ(Possible(1), (Values{7}));
}

TEST_F(ModelPersistenceTest, FenceWithoutFlushPersistsNothing) {
  model_.Store8(Word(1), 7);
  EXPECT_TRUE(model_.Fence());
  EXPECT_EQ(Possible(1), (Values{0, 7}));
}

TEST_F(ModelPersistenceTest, FlushTakesTheWholeLineAndNoOther) {
  model_.Store8(Word(0), 1);
  model_.Store8(Word(7), 2);
  model_.Store8(Word(8), 3);
  FlushAs(0, 3);
  FenceAs(0);
  EXPECT_EQ(Possible(0), (Values{1}));
  EXPECT_EQ(Possible(7), (Values{2}));
  EXPECT_EQ(Possible(8), (Values{0, 3}));
}

TEST_F(ModelPersistenceTest, FlushOfARangeTakesEveryLineThatItTouches) {
  for (const size_t word : {7, 8, 16}) model_.Store8(Word(word), 5);
  model_.Flush(reinterpret_cast<std::byte*>(Word(7)) + 7, 2 + kLineBytes);
  model_.Fence();
  EXPECT_TRUE(model_.DirtyWords().empty());
}

// CM1.
TEST_F(ModelPersistenceTest, StoreBetweenFlushAndFenceIsNotCovered) {
  model_.Store8(Word(1), 7);
  model_.Flush(Word(1), 8);
  model_.Store8(Word(1), 8);
  model_.Store8(Word(2), 9);
  model_.Fence();
  EXPECT_EQ(Possible(1), (Values{7, 8}));
  EXPECT_EQ(Possible(2), (Values{0, 9}));
}

TEST_F(ModelPersistenceTest, HintPersistsNothing) {
  model_.Store8(Word(1), 7);
  model_.FlushHint(Word(1), 8);
  model_.Fence();
  EXPECT_EQ(Possible(1), (Values{0, 7}));
}

// CM1, for stores that no call of the primitive shows.
TEST_F(ModelPersistenceTest, UserStoreBetweenFlushAndFenceIsNotCovered) {
  *Word(1) = 7;
  model_.Flush(Word(1), 8);
  *Word(1) = 8;
  model_.Fence();
  EXPECT_EQ(Possible(1), (Values{7, 8}));
}

// CM2.
TEST_F(ModelPersistenceTest, FenceOfAnotherThreadDoesNotCoverAFlush) {
  model_.Store8(Word(1), 7);
  FlushAs(1, 1);
  FenceAs(2);
  EXPECT_EQ(Possible(1), (Values{0, 7}));
  FenceAs(1);
  EXPECT_EQ(Possible(1), (Values{7}));
}

TEST_F(ModelPersistenceTest, AnyThreadMayFlushACachedStore) {
  model_.SetThread(1);
  model_.Store8(Word(1), 7);
  FlushAs(2, 1);
  FenceAs(2);
  EXPECT_EQ(Possible(1), (Values{7}));
}

// CM2, P-F3: the store buffer of a non-temporal store belongs to its thread.
TEST_F(ModelPersistenceTest, OnlyTheOwnFencePersistsANonTemporalStore) {
  model_.SetThread(1);
  StoreNt(0, 7);
  FlushAs(2, 0);
  FenceAs(2);
  EXPECT_EQ(Possible(0), (Values{0, 7}));
  FenceAs(1);
  EXPECT_EQ(Possible(0), (Values{7}));
  EXPECT_EQ(Possible(7), (Values{7}));
}

TEST_F(ModelPersistenceTest, NonTemporalStoreNeedsNoFlush) {
  StoreNt(1, 7);
  EXPECT_EQ(Possible(8), (Values{0, 7}));
  model_.Fence();
  EXPECT_TRUE(model_.DirtyWords().empty());
}

// The value was the same before, but only the non-temporal store was fenced.
TEST_F(ModelPersistenceTest, NonTemporalStoreOfTheSameValueIsPersisted) {
  model_.Store8(Word(0), 7);
  StoreNt(0, 7);
  model_.Fence();
  EXPECT_EQ(Possible(0), (Values{7}));
}

TEST_F(ModelPersistenceTest, CachedStoreOfTheSameValueIsPersistedByItsFlush) {
  model_.SetThread(1);
  StoreNt(0, 7);
  model_.SetThread(2);
  model_.Store8(Word(0), 7);
  FlushAs(2, 0);
  FenceAs(2);
  EXPECT_EQ(Possible(0), (Values{7}));
  EXPECT_EQ(Possible(1), (Values{0, 7}));
}

TEST_F(ModelPersistenceTest, UnfencedNonTemporalStoreMayLandBehindANewerValue) {
  model_.SetThread(1);
  StoreNt(0, 7);
  model_.SetThread(2);
  model_.Store8(Word(0), 8);
  EXPECT_EQ(model_.lint().unfenced_words_overwritten, 1u);
  FlushAs(2, 0);
  FenceAs(2);
  EXPECT_EQ(Possible(0), (Values{8, 7}));
  FenceAs(1);
  EXPECT_EQ(Possible(0), (Values{8}));
}

TEST_F(ModelPersistenceTest, OwnCachedStoreBehindANonTemporalOneIsNoFinding) {
  StoreNt(0, 7);
  model_.Store8(Word(0), 8);
  EXPECT_EQ(model_.lint().unfenced_words_overwritten, 0u);
  model_.Fence();
  EXPECT_EQ(Possible(0), (Values{7, 8}));
}

TEST_F(ModelPersistenceTest, RewrittenWordMayHoldAnyOfItsValues) {
  for (const uint64_t value : {7, 8, 9}) model_.Store8(Word(1), value);
  EXPECT_EQ(Possible(1), (Values{0, 7, 8, 9}));
  model_.Store8(Word(1), 0);
  EXPECT_EQ(Possible(1), (Values{0, 7, 8, 9}));
  ASSERT_EQ(model_.DirtyWords().size(), 1u);
  EXPECT_EQ(model_.DirtyWords()[0].current, 0u);
}

TEST_F(ModelPersistenceTest, SnapshotBecomesTheFloorOfTheLaterValues) {
  model_.Store8(Word(1), 7);
  model_.Store8(Word(1), 8);
  model_.Flush(Word(1), 8);
  model_.Store8(Word(1), 9);
  model_.Store8(Word(1), 10);
  model_.Fence();
  EXPECT_EQ(Possible(1), (Values{8, 9, 10}));
}

// A word that went back to its old value holds the old value once that is
// fenced, and not what it had in between.
TEST_F(ModelPersistenceTest, FencedReturnToTheOldValueForgetsTheNewOne) {
  model_.Store8(Word(1), 7);
  model_.Store8(Word(1), 0);
  model_.Flush(Word(1), 8);
  model_.Fence();
  EXPECT_EQ(Possible(1), (Values{0}));
}

// CM3.
TEST_F(ModelPersistenceTest, OlderSnapshotFencedLaterDoesNotUndoANewerOne) {
  model_.Store8(Word(1), 7);
  FlushAs(1, 1);
  model_.Store8(Word(1), 8);
  FlushAs(2, 1);
  FenceAs(2);
  EXPECT_EQ(Possible(1), (Values{8}));
  FenceAs(1);
  EXPECT_EQ(Possible(1), (Values{8}));
}

TEST_F(ModelPersistenceTest, OlderSnapshotDoesNotCoverALaterStore) {
  model_.Store8(Word(1), 7);
  FlushAs(1, 1);
  FlushAs(2, 1);
  FenceAs(2);
  model_.Store8(Word(1), 8);
  FenceAs(1);
  EXPECT_EQ(Possible(1), (Values{7, 8}));
}

// CM4.
TEST_F(ModelPersistenceTest, FailedFencePersistsNothingEvenLater) {
  model_.Store8(Word(1), 7);
  model_.Flush(Word(1), 8);
  StoreNt(1, 9);
  model_.FailFence(1);
  EXPECT_FALSE(model_.Fence());
  EXPECT_EQ(model_.Error().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(model_.Fence());
  EXPECT_EQ(Possible(1), (Values{0, 7}));
  EXPECT_EQ(Possible(8), (Values{0, 9}));
  EXPECT_FALSE(model_.Error().ok());
}

TEST_F(ModelPersistenceTest, WhatAFailedFenceForgotCanBeFlushedAgain) {
  StoreNt(0, 9);
  model_.FailFence(1);
  EXPECT_FALSE(model_.Fence());
  FlushAs(0, 0);
  EXPECT_TRUE(model_.Fence());
  EXPECT_EQ(Possible(0), (Values{9}));
}

TEST_F(ModelPersistenceTest, TheChosenFenceFailsAndNoOther) {
  model_.FailFence(3);
  EXPECT_TRUE(model_.Fence());
  EXPECT_TRUE(model_.Fence());
  EXPECT_TRUE(model_.Error().ok());
  EXPECT_FALSE(model_.Fence());
  EXPECT_TRUE(model_.Fence());
  EXPECT_EQ(model_.fence_count(), 4u);
}

TEST_F(ModelPersistenceTest, UserStoreIsOpenWithoutAnyCall) {
  *Word(9) = 7;
  EXPECT_EQ(Possible(9), (Values{0, 7}));
  EXPECT_FALSE(model_.IsPersisted(Word(9), 8));
  EXPECT_TRUE(model_.IsPersisted(Word(10), 8));
}

TEST_F(ModelPersistenceTest, UserStoreUnderALibraryStoreIsNotForgotten) {
  *Word(1) = 7;
  model_.Store8(Word(1), 8);
  EXPECT_EQ(Possible(1), (Values{0, 7, 8}));
}

TEST_F(ModelPersistenceTest, CopyMayTearBetweenWordsOfOneRange) {
  const std::string text = "0123456789abcdef0123";
  model_.Copy(reinterpret_cast<std::byte*>(Word(0)) + 4, text.data(),
              text.size());
  EXPECT_EQ(model_.DirtyWords().size(), 3u);
  for (const auto& word : model_.DirtyWords()) {
    EXPECT_EQ(word.values.size(), 2u);
  }
}

TEST_F(ModelPersistenceTest, CutsAreMadeOfTheChosenValues) {
  model_.Store8(Word(1), 7);
  model_.Store8(Word(1), 8);
  model_.Store8(Word(2), 9);
  const auto words = model_.DirtyWords();
  ASSERT_EQ(words.size(), 2u);
  const std::vector<uint8_t> choices = {1, 0};
  std::vector<std::byte> expected(model_.region().size());
  expected[8] = std::byte{7};
  EXPECT_EQ(model_.CutChoosing(words, choices), expected);
  expected[8] = std::byte{8};
  expected[16] = std::byte{9};
  EXPECT_EQ(model_.CutKeepingAll(), expected);
  EXPECT_EQ(model_.CutKeepingNone(),
            std::vector<std::byte>(model_.region().size()));
}

TEST_F(ModelPersistenceTest, IsPersistedLooksAtTheBytesOfTheRangeOnly) {
  auto* bytes = reinterpret_cast<std::byte*>(Word(1));
  const std::byte one{1};
  model_.Copy(bytes + 3, &one, 1);
  EXPECT_FALSE(model_.IsPersisted(bytes, 8));
  EXPECT_FALSE(model_.IsPersisted(bytes + 3, 1));
  EXPECT_TRUE(model_.IsPersisted(bytes, 3));
  EXPECT_TRUE(model_.IsPersisted(bytes + 4, 4));
}

// The word is what it was, but may be lost to a value in between.
TEST_F(ModelPersistenceTest, WordThatWentBackIsNotPersistedUntilFenced) {
  model_.Store8(Word(1), 7);
  model_.Store8(Word(1), 0);
  EXPECT_FALSE(model_.IsPersisted(Word(1), 8));
}

TEST_F(ModelPersistenceTest, FlushesOfCleanLinesAreCounted) {
  model_.Store8(Word(0), 1);
  model_.Flush(Word(0), 2 * kLineBytes);
  EXPECT_EQ(model_.lint().flushed_lines, 2u);
  EXPECT_EQ(model_.lint().clean_lines_flushed, 1u);
  model_.Fence();
  model_.Flush(Word(0), 8);
  EXPECT_EQ(model_.lint().clean_lines_flushed, 2u);
}

TEST_F(ModelPersistenceTest, HookSeesEachCallBeforeItActs) {
  std::vector<std::string> names;
  model_.SetHook([&](const ModelPersistence::Event& event) {
    names.push_back(event.name);
    EXPECT_EQ(event.thread, 3u);
    if (event.primitive == ModelPersistence::Primitive::kStore8) {
      EXPECT_EQ(event.offset, 8u);
      EXPECT_EQ(*Word(1), 0u);
    }
    if (event.primitive == ModelPersistence::Primitive::kFence) {
      EXPECT_FALSE(model_.IsPersisted(Word(1), 8));
    }
  });
  model_.SetThread(3);
  model_.Store8(Word(1), 7);
  StoreNt(1, 1);
  model_.Copy(Word(2), Word(1), 8);
  model_.Flush(Word(1), 8);
  model_.Fence();
  model_.YieldPoint("here");
  EXPECT_EQ(names, (std::vector<std::string>{"store8", "copy_nt", "copy",
                                             "flush", "fence", "here"}));
}

// A fiber that is switched to inside the hook makes calls of its own.
TEST_F(ModelPersistenceTest, CallGoesOnAsTheThreadThatIsSetAfterTheHook) {
  bool inside = false;
  model_.SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kFence || inside) {
      return;
    }
    inside = true;
    model_.SetThread(2);
    StoreNt(1, 9);
    model_.SetThread(1);
  });
  model_.SetThread(1);
  StoreNt(0, 7);
  model_.Fence();
  EXPECT_EQ(Possible(0), (Values{7}));
  EXPECT_EQ(Possible(8), (Values{0, 9}));
}

TEST_F(ModelPersistenceTest, ResetForgetsWhatWasPending) {
  model_.Store8(Word(1), 7);
  model_.Flush(Word(1), 8);
  StoreNt(1, 9);
  std::vector<std::byte> image(model_.region().size(), std::byte{0x55});
  model_.Reset(image);
  model_.Fence();
  EXPECT_TRUE(model_.DirtyWords().empty());
  EXPECT_EQ(model_.CutKeepingNone(), image);
  model_.Store8(Word(1), 7);
  EXPECT_EQ(Possible(1), (Values{0x5555555555555555, 7}));
}

// P-H7: kill -9 leaves stores in the cache that a later power cut takes.
TEST_F(ModelPersistenceTest, KillKeepsMemoryButNoPromiseOfPersistence) {
  model_.Store8(Word(1), 7);
  model_.Store8(Word(1), 8);
  model_.Flush(Word(1), 8);
  StoreNt(1, 9);
  *Word(17) = 10;
  ModelPersistence next(model_.region().size());
  next.CopyAfterKill(model_);
  EXPECT_EQ(next.CutKeepingAll(), model_.CutKeepingAll());
  EXPECT_EQ(next.CutKeepingNone(), model_.CutKeepingNone());
  next.Fence();
  const auto words = next.DirtyWords();
  ASSERT_EQ(words.size(), 1u + 8 + 1);
  EXPECT_EQ(words[0].values, (Values{0, 7, 8}));
  next.Flush(next.region().data(), next.region().size());
  next.Fence();
  EXPECT_TRUE(next.DirtyWords().empty());
  EXPECT_EQ(model_.DirtyWords().size(), 10u);
}

TEST_F(ModelPersistenceTest, RegionIsAlignedAndStays) {
  const std::byte* at = model_.region().data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % kPageBytes, 0u);
  model_.Reset(std::vector<std::byte>(model_.region().size()));
  EXPECT_EQ(model_.region().data(), at);
}

// All images of two open words, and no other, are drawn.
TEST_F(ModelPersistenceTest, DrawnCutsAreAllThatAreAllowed) {
  model_.Store8(Word(1), 7);
  model_.Store8(Word(1), 8);
  model_.Store8(Word(9), 9);
  Random random(1);
  std::set<std::pair<uint64_t, uint64_t>> drawn;
  for (int i = 0; i < 100; ++i) {
    const std::vector<std::byte> image = model_.CutDrawing(random);
    uint64_t words[2];
    std::memcpy(&words[0], image.data() + 8, 8);
    std::memcpy(&words[1], image.data() + 72, 8);
    drawn.emplace(words[0], words[1]);
  }
  EXPECT_EQ(drawn, (std::set<std::pair<uint64_t, uint64_t>>{
                       {0, 0}, {0, 9}, {7, 0}, {7, 9}, {8, 0}, {8, 9}}));
}

using ModelPersistenceDeathTest = ModelPersistenceTest;

TEST_F(ModelPersistenceDeathTest, StoresOutsideTheRegionAbort) {
  EXPECT_DEATH(model_.Store8(Word(4 * 8), 1), "lie in the region");
  EXPECT_DEATH(model_.Flush(Word(3 * 8), 2 * kLineBytes), "lie in the region");
}

TEST_F(ModelPersistenceDeathTest, UnalignedStoresAbort) {
  auto* odd = reinterpret_cast<std::byte*>(Word(0)) + 8;
  EXPECT_DEATH(model_.CopyLinesNt(odd, Word(0), 1), "whole lines");
}

}  // namespace
}  // namespace alpheus::model
