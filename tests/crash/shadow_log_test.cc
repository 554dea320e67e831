// SPDX-License-Identifier: Apache-2.0
// A log in a region that lands in memory: what the medium holds after a power
// cut at any moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "recovery/replica/local_opening.h"
#include "tests/support/fabrics/model_shadow.h"
#include "tests/support/fixtures/log_harness.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;

class ShadowLogTest : public ::testing::Test {
 protected:
  ShadowLogTest() : model_(layout_.region_bytes) {
    const absl::Status formatted = FormatRegion(
        model_, model_.region(), layout_, NewLocalIdentity(random_));
    EXPECT_TRUE(formatted.ok()) << formatted;
  }

  template <class P>
  absl::StatusOr<recovery::OpenedEpoch> OpenedOn(P& pmem,
                                                 std::span<std::byte> region) {
    recovery::LocalOpeningOptions opening;
    opening.name = "landed";
    return recovery::OpenEpochLocally(pmem, region, opening, random_);
  }

  // Each record that was acknowledged is there, none that was not appended,
  // in order, but for those that cleaning may have taken.
  void CheckImage(std::span<const std::byte> image) {
    model::ModelPersistence cut(image);
    const auto opened = OpenedOn(cut, cut.region());
    ASSERT_TRUE(opened.ok()) << opened.status();
    const std::vector<std::string> found = LivePayloads(cut.region());
    const size_t end = end_.value_or(appended_.size());
    ASSERT_LE(found.size(), end);
    size_t first = 0;
    while (first < end && !found.empty() && appended_[first] != found[0]) {
      ++first;
    }
    if (found.empty()) first = acknowledged_;
    EXPECT_LE(first, cleaned_);
    EXPECT_GE(first + found.size(), acknowledged_);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i], appended_[first + i]);
    }
    ++images_;
  }

  void CutEverywhere() {
    model_.SetHook([this](const model::ModelPersistence::Event& event) {
      if (event.primitive != model::ModelPersistence::Primitive::kFence) return;
      CheckImage(model_.CutKeepingNone());
      CheckImage(model_.CutKeepingAll());
      for (int i = 0; i < 4; ++i) CheckImage(model_.CutDrawing(random_));
    });
  }

  const Layout layout_ = *Layout::ForRing(2048, 16);
  Random random_{7};
  model::ModelPersistence model_;
  std::vector<std::string> appended_;
  std::optional<size_t> end_;
  size_t acknowledged_ = 0;
  size_t cleaned_ = 0;
  uint64_t images_ = 0;
};

// Goal: power cuts at every fence of a log that goes round its ring, seen from
// the medium's side alone.
TEST_F(ShadowLogTest, EveryCutKeepsWhatWasAcknowledged) {
  ShadowedModel shadowed(model_);
  CutEverywhere();
  const auto opened = OpenedOn(shadowed.pmem(), shadowed.bytes());
  ASSERT_TRUE(opened.ok()) << opened.status();
  SteppingClock clock;
  NoWaiter waiter;
  RingLog<ShadowPersistence> log(shadowed.pmem(), shadowed.bytes(),
                                 opened->start, RingLogOptions{"landed", 64},
                                 clock, waiter);
  for (int i = 0; i < 40; ++i) {
    appended_.push_back(
        absl::StrCat("record ", i, std::string(random_.Below(200), 'x')));
    const std::span<const std::byte> part = AsBytes(appended_.back());
    const absl::StatusOr<Lsn> lsn = log.Append({&part, 1}, 1, Deadline());
    ASSERT_TRUE(lsn.ok()) << lsn.status();
    acknowledged_ = appended_.size();
    if (i % 3 == 2) {
      cleaned_ = appended_.size();
      ASSERT_TRUE(log.CleanupThrough(*lsn).ok());
    }
  }
  ASSERT_TRUE(log.Close().ok());
  model_.SetHook({});
  CheckImage(model_.CutKeepingNone());
  EXPECT_GT(images_, 400u);
}

// Goal: the copy is no more than a cache: dropped, the medium has the log.
TEST_F(ShadowLogTest, WhatIsReadAgainIsWhatTheMediumHolds) {
  {
    ShadowedModel shadowed(model_);
    const auto opened = OpenedOn(shadowed.pmem(), shadowed.bytes());
    ASSERT_TRUE(opened.ok()) << opened.status();
    SteppingClock clock;
    NoWaiter waiter;
    RingLog<ShadowPersistence> log(shadowed.pmem(), shadowed.bytes(),
                                   opened->start, RingLogOptions{"landed", 64},
                                   clock, waiter);
    for (const std::string text : {"a", "b"}) {
      const std::span<const std::byte> part = AsBytes(text);
      ASSERT_TRUE(log.Append({&part, 1}, 1, Deadline()).ok());
    }
  }
  ShadowedModel shadowed(model_);
  const auto opened = OpenedOn(shadowed.pmem(), shadowed.bytes());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(LivePayloads(shadowed.bytes()), ElementsAre("a", "b"));
  EXPECT_THAT(LivePayloads(model_.region()), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace alpheus::testing
