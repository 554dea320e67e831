// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/crash_enumerator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "log/base/bytes.h"

namespace alpheus::testing {
namespace {

class CrashEnumeratorTest : public ::testing::Test {
 protected:
  uint64_t* Word(size_t index) {
    return reinterpret_cast<uint64_t*>(model_.region().data()) + index;
  }
  void Store(size_t first, size_t count, uint64_t value = 1) {
    for (size_t i = first; i < first + count; ++i) {
      model_.Store8(Word(i), value);
    }
  }

  // Visits everything; checks each image against a second way to make it.
  std::set<std::vector<std::byte>> Images(CrashEnumerator& enumerator,
                                          uint64_t context = 0) {
    std::set<std::vector<std::byte>> images;
    enumerator.Enumerate(model_, context, [&](const CrashState& state) {
      const std::vector<std::byte> image(state.image.begin(),
                                         state.image.end());
      EXPECT_EQ(image, model_.CutChoosing(state.words, state.choices));
      EXPECT_EQ(state.hash, CrashEnumerator::HashOf(image));
      EXPECT_TRUE(images.insert(image).second) << "visited twice";
    });
    return images;
  }

  model::ModelPersistence model_{64 * kLineBytes};
  CrashEnumerator enumerator_{CrashEnumerator::Options()};
};

TEST_F(CrashEnumeratorTest, CleanModelHasOneImage) {
  EXPECT_EQ(Images(enumerator_).size(), 1u);
}

TEST_F(CrashEnumeratorTest, TwelveWordsAreTriedInFull) {
  Store(3, 12);
  EXPECT_EQ(Images(enumerator_).size(), 1u << 12);
  EXPECT_EQ(enumerator_.counts().exhaustive_points, 1u);
}

TEST_F(CrashEnumeratorTest, HistoriesMultiply) {
  Store(0, 2, 1);
  Store(0, 2, 2);
  Store(5, 1, 9);
  EXPECT_EQ(Images(enumerator_).size(), 3u * 3 * 2);
}

TEST_F(CrashEnumeratorTest, ManyWordsAreTriedByPatterns) {
  Store(3, 40);
  const auto images = Images(enumerator_);
  EXPECT_EQ(enumerator_.counts().exhaustive_points, 0u);
  EXPECT_EQ(enumerator_.counts().words_max, 40u);
  std::vector<std::byte> image = model_.CutKeepingNone();
  EXPECT_EQ(images.count(image), 1u);
  EXPECT_EQ(images.count(model_.CutKeepingAll()), 1u);
  for (size_t i = 3; i < 43; ++i) {
    std::vector<std::byte> dropped = model_.CutKeepingAll();
    dropped[i * 8] = std::byte{0};
    EXPECT_EQ(images.count(dropped), 1u) << i;
    std::vector<std::byte> kept = model_.CutKeepingNone();
    kept[i * 8] = std::byte{1};
    EXPECT_EQ(images.count(kept), 1u) << i;
    image[i * 8] = std::byte{1};
    EXPECT_EQ(images.count(image), 1u) << "prefix up to " << i;
  }
}

TEST_F(CrashEnumeratorTest, PairsAreTriedUpToThirtyTwoWords) {
  Store(0, 20);
  const auto images = Images(enumerator_);
  for (size_t i = 0; i < 20; ++i) {
    for (size_t j = i + 1; j < 20; ++j) {
      std::vector<std::byte> kept = model_.CutKeepingNone();
      kept[i * 8] = kept[j * 8] = std::byte{1};
      EXPECT_EQ(images.count(kept), 1u) << i << " " << j;
    }
  }
}

TEST_F(CrashEnumeratorTest, SubsetsOfWholeLinesAreTried) {
  Store(0, 40);  // five lines
  const auto images = Images(enumerator_);
  for (uint32_t kept = 0; kept < 32; ++kept) {
    std::vector<std::byte> image = model_.CutKeepingNone();
    for (size_t i = 0; i < 40; ++i) {
      if ((kept >> (i / 8) & 1) != 0) image[i * 8] = std::byte{1};
    }
    EXPECT_EQ(images.count(image), 1u) << kept;
  }
}

TEST_F(CrashEnumeratorTest, ValuesInBetweenAreTriedAmongManyWords) {
  Store(0, 30, 1);
  Store(0, 30, 2);
  const auto images = Images(enumerator_);
  for (size_t i = 0; i < 30; ++i) {
    std::vector<std::byte> image = model_.CutKeepingAll();
    image[i * 8] = std::byte{1};
    EXPECT_EQ(images.count(image), 1u) << i;
  }
}

// Keeping a word that went back to its old value is not keeping the value that
// it had in between.
TEST_F(CrashEnumeratorTest, KeepingAllIsWhatMemoryHolds) {
  Store(0, 30, 1);
  Store(0, 1, 0);
  EXPECT_EQ(Images(enumerator_).count(model_.CutKeepingAll()), 1u);
}

TEST_F(CrashEnumeratorTest, AnImageIsVisitedOncePerContext) {
  Store(0, 3);
  EXPECT_EQ(Images(enumerator_, 1).size(), 8u);
  EXPECT_EQ(Images(enumerator_, 1).size(), 0u);
  EXPECT_EQ(Images(enumerator_, 2).size(), 8u);
  // A word more: only the images with it are new.
  Store(3, 1);
  EXPECT_EQ(Images(enumerator_, 2).size(), 8u);
  EXPECT_EQ(enumerator_.counts().points, 4u);
  EXPECT_EQ(enumerator_.counts().images, 8u + 8 + 8 + 16);
  EXPECT_EQ(enumerator_.counts().distinct, 24u);
}

TEST_F(CrashEnumeratorTest, AnotherFloorIsAnotherImage) {
  Store(0, 1);
  EXPECT_EQ(Images(enumerator_).size(), 2u);
  model_.Store8(Word(9), 4);
  model_.Flush(Word(9), 8);
  model_.Fence();
  EXPECT_EQ(Images(enumerator_).size(), 2u);
}

TEST_F(CrashEnumeratorTest, TheSameSeedDrawsTheSameImages) {
  Store(0, 40);
  CrashEnumerator other{CrashEnumerator::Options()};
  EXPECT_EQ(Images(enumerator_), Images(other));
  CrashEnumerator::Options options;
  options.seed = 2;
  CrashEnumerator differs(options);
  EXPECT_NE(Images(other, 7), Images(differs, 7));
}

TEST_F(CrashEnumeratorTest, StateSaysWhichWordsWereKept) {
  model_.Store8(Word(2), 7);
  std::string text;
  enumerator_.Enumerate(model_, 0, [&](const CrashState& state) {
    if (state.choices[0] == 1) text = state.Describe();
  });
  EXPECT_NE(text.find("word at     16:"), std::string::npos) << text;
  EXPECT_NE(text.find("[0000000000000007]"), std::string::npos) << text;
  EXPECT_NE(text.find("kept"), std::string::npos) << text;
}

}  // namespace
}  // namespace alpheus::testing
