// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/format_region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/base/bytes.h"
#include "log/core/ring/region_state.h"
#include "log/core/ring/region_use.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/region.h"
#include "recovery/replica/local_opening.h"
#include "tests/support/oracles/crash_enumerator.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus {
namespace {

constexpr uint64_t kFormattedBytes = 1 << 17;

// Regions that a cut-off format left, and regions that hold a log.
class UseOfRegionTest : public ::testing::Test {
 protected:
  UseOfRegionTest() : region_(*Region::Anonymous(kFormattedBytes)) {}

  std::span<std::byte> bytes() { return region_.bytes(); }
  RegionUse UseOfFile() { return UseOfRegion(bytes(), /*is_device=*/false); }
  RegionUse UseOfDevice() { return UseOfRegion(bytes(), /*is_device=*/true); }
  void Format() {
    Random random(1);
    ASSERT_TRUE(FormatRegion(pmem_, bytes(),
                             *Layout::ForRegion(kFormattedBytes),
                             NewLocalIdentity(random))
                    .ok());
  }
  void OpenOnce() {
    Random random(2);
    ASSERT_TRUE(recovery::OpenEpochLocally(pmem_, bytes(), {}, random).ok());
  }
  void Wipe(uint64_t offset, uint64_t count) {
    std::ranges::fill(bytes().subspan(offset, count), std::byte{0});
  }
  void WipeBothSuperlines() { Wipe(0, 2 * kSuperlineCopyBytes); }

  Region region_;
  LibpmemPersistence pmem_{{}};
};

TEST_F(UseOfRegionTest, ZerosHoldNothing) {
  EXPECT_EQ(UseOfFile(), RegionUse::kNothing);
  EXPECT_EQ(UseOfDevice(), RegionUse::kNothing);
  EXPECT_EQ(UseOfRegion(bytes().first(0), false), RegionUse::kNothing);
  EXPECT_EQ(UseOfRegion(bytes().first(100), false), RegionUse::kNothing);
  EXPECT_EQ(UseOfRegion(bytes().first(kTableOffset + 1), false),
            RegionUse::kNothing);
}

TEST_F(UseOfRegionTest, AnythingElseIsUsed) {
  for (const uint64_t offset :
       {uint64_t{99}, kTableOffset, kFormattedBytes - 1}) {
    bytes()[offset] = std::byte{1};
    EXPECT_EQ(UseOfRegion(bytes().first(offset + 1), false), RegionUse::kUsed)
        << offset;
    bytes()[offset] = std::byte{0};
  }
}

TEST_F(UseOfRegionTest, FormattedRegionIsUnopenedUntilItIsOpened) {
  Format();
  EXPECT_EQ(UseOfFile(), RegionUse::kUnopened);
  EXPECT_EQ(UseOfDevice(), RegionUse::kUnopened);
  OpenOnce();
  EXPECT_EQ(UseOfFile(), RegionUse::kUsed);
  EXPECT_EQ(UseOfDevice(), RegionUse::kUsed);
}

// Damage has taken both copies; ring, table or watermarks still show a log.
TEST_F(UseOfRegionTest, LogWithoutSuperlineIsUsed) {
  Format();
  OpenOnce();
  WipeBothSuperlines();
  EXPECT_EQ(UseOfFile(), RegionUse::kUsed) << "its table has an epoch";
  EXPECT_EQ(UseOfDevice(), RegionUse::kUsed) << "so has its watermark";
  Wipe(kWatermarkOffset, 2 * kPageBytes);
  EXPECT_EQ(UseOfFile(), RegionUse::kUsed);
  Wipe(kTableOffset,
       Layout::ForRegion(kFormattedBytes)->ring_offset - kTableOffset);
  EXPECT_EQ(UseOfFile(), RegionUse::kNothing) << "its ring is empty";
  bytes().back() = std::byte{1};
  EXPECT_EQ(UseOfFile(), RegionUse::kUsed);
}

TEST_F(UseOfRegionTest, OneDamagedCopyIsUsed) {
  Format();
  OpenOnce();
  Wipe(0, kSuperlineCopyBytes);
  EXPECT_EQ(UseOfFile(), RegionUse::kUsed);
  bytes()[kSuperlineCopyBytes + 30] ^= std::byte{1};
  EXPECT_EQ(UseOfFile(), RegionUse::kUsed) << "the other can't be read";
  EXPECT_EQ(UseOfDevice(), RegionUse::kUsed);
}

// A user who wipes the beginning of a device wants it used again. A file can be
// removed instead.
TEST_F(UseOfRegionTest, DeviceWithAWipedBeginningHoldsNothing) {
  Format();
  OpenOnce();
  bytes().back() = std::byte{1};
  Wipe(0, kTableOffset);
  EXPECT_EQ(UseOfDevice(), RegionUse::kNothing);
  EXPECT_EQ(UseOfFile(), RegionUse::kUsed);
}

// Goal: no power cut in a format leaves anything but a log that opens, or what
// the next format takes for nothing. Method: at each fence, images of the crash
// model.
TEST(UseOfRegionCrashTest, PowerCutInAFormatLeavesNothingOrALog) {
  model::ModelPersistence model(kFormattedBytes);
  testing::CrashEnumerator enumerator({.product_max = 64});
  uint64_t nothing = 0;
  uint64_t logs = 0;
  const auto judge = [&](const testing::CrashState& state) {
    std::vector<std::byte> image(state.image.begin(), state.image.end());
    const RegionUse use = UseOfRegion(image, /*is_device=*/false);
    ASSERT_NE(use, RegionUse::kUsed) << state.Describe();
    ASSERT_NE(UseOfRegion(image, /*is_device=*/true), RegionUse::kUsed);
    (use == RegionUse::kNothing ? nothing : logs) += 1;
    if (use == RegionUse::kNothing) return;
    model::ModelPersistence found(image);
    Random random(3);
    const auto opened =
        recovery::OpenEpochLocally(found, found.region(), {}, random);
    ASSERT_TRUE(opened.ok()) << opened.status();
  };
  model.SetHook([&](const model::ModelPersistence::Event& event) {
    if (event.primitive != model::ModelPersistence::Primitive::kFence) return;
    enumerator.Enumerate(model, 0, judge);
  });
  Random random(1);
  ASSERT_TRUE(FormatRegion(model, model.region(),
                           *Layout::ForRegion(kFormattedBytes),
                           NewLocalIdentity(random))
                  .ok());
  EXPECT_GT(nothing, 0u);
  EXPECT_GT(logs, 0u);
}

// Goal: whatever a power cut in a removal leaves under the working name, the
// next removal makes it again. Method: as above.
TEST(UseOfRegionCrashTest, PowerCutInARemovalLeavesWhatIsMadeAgain) {
  model::ModelPersistence of(kFormattedBytes);
  Random random(1);
  ASSERT_TRUE(FormatRegion(of, of.region(), *Layout::ForRegion(kFormattedBytes),
                           NewLocalIdentity(random))
                  .ok());
  const auto found = ReadRegionState(of.region(), "of");
  ASSERT_TRUE(found.ok()) << found.status();
  model::ModelPersistence left(LayoutOfRemoved().region_bytes);
  testing::CrashEnumerator enumerator({.product_max = 64});
  uint64_t nothing = 0;
  uint64_t whole = 0;
  const auto judge = [&](const testing::CrashState& state) {
    std::vector<std::byte> image(state.image.begin(), state.image.end());
    const RegionUse use = UseOfRemoved(image, /*is_device=*/false);
    ASSERT_NE(use, RegionUse::kUsed) << state.Describe();
    (use == RegionUse::kNothing ? nothing : whole) += 1;
  };
  left.SetHook([&](const model::ModelPersistence::Event& event) {
    if (event.primitive != model::ModelPersistence::Primitive::kFence) return;
    enumerator.Enumerate(left, 0, judge);
  });
  ASSERT_TRUE(FormatRemoved(left, left.region(), found->superline).ok());
  EXPECT_GT(nothing, 0u);
  EXPECT_GT(whole, 0u);
}

// Whatever holds records is not taken for the remains of a removal, also if it
// is as small.
TEST(UseOfRemovedTest, LogsAreUsed) {
  const Layout layout = LayoutOfRemoved();
  model::ModelPersistence log(layout.region_bytes);
  Random random(1);
  ASSERT_TRUE(
      FormatRegion(log, log.region(), layout, NewLocalIdentity(random)).ok());
  EXPECT_EQ(UseOfRemoved(log.region(), /*is_device=*/false), RegionUse::kUsed);
  ASSERT_TRUE(recovery::OpenEpochLocally(log, log.region(), {}, random).ok());
  EXPECT_EQ(UseOfRemoved(log.region(), /*is_device=*/false), RegionUse::kUsed);
  model::ModelPersistence larger(kFormattedBytes);
  ASSERT_TRUE(FormatRegion(larger, larger.region(),
                           *Layout::ForRegion(kFormattedBytes),
                           NewLocalIdentity(random))
                  .ok());
  ASSERT_TRUE(
      recovery::OpenEpochLocally(larger, larger.region(), {}, random).ok());
  EXPECT_EQ(UseOfRemoved(larger.region(), /*is_device=*/false),
            RegionUse::kUsed);
}

}  // namespace
}  // namespace alpheus
