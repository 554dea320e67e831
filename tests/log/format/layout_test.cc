// SPDX-License-Identifier: Apache-2.0
#include "log/format/layout.h"

#include <gtest/gtest.h>

#include "log/base/random.h"

namespace alpheus {
namespace {

Superline SuperlineFor(const Layout& layout) {
  Superline superline;
  superline.region_bytes = layout.region_bytes;
  superline.ring_offset = layout.ring_offset;
  superline.ring_capacity = layout.ring_capacity;
  superline.table_capacity = layout.table_capacity;
  return superline;
}

TEST(LayoutTest, RingFillsTheRegionInWholePages) {
  const auto layout = Layout::ForRegion(1 << 20);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->ring_offset % kPageBytes, 0u);
  EXPECT_EQ(layout->ring_capacity % kPageBytes, 0u);
  EXPECT_EQ(layout->region_bytes, 1u << 20);
}

TEST(LayoutTest, SmallestRegionIsNamedInTheRefusal) {
  const auto refused = Layout::ForRegion(4096);
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("minimum is 110592"),
            absl::string_view::npos)
      << refused.status();
  EXPECT_TRUE(Layout::ForRegion(110592).ok());
  EXPECT_FALSE(Layout::ForRegion(110591).ok());
}

TEST(RingTest, PlaceIsTheOffsetModuloTheCapacity) {
  Random random(1);
  for (const uint64_t lines : {uint64_t{4}, uint64_t{5}, uint64_t{64},
                               uint64_t{1023}, (uint64_t{1} << 39) - 1}) {
    const uint64_t capacity = lines * kLineBytes;
    const Ring ring(nullptr, capacity);
    for (int i = 0; i < 10000; ++i) {
      // Offsets of every magnitude, and on both sides of a lap's end.
      uint64_t offset = random.Next() >> (1 + random.Below(62));
      if (i % 3 != 0) offset -= offset % capacity;
      if (i % 3 == 2 && offset != 0) --offset;
      EXPECT_EQ(ring.Place(RingOffset(offset)), offset % capacity) << offset;
    }
  }
}

TEST(LayoutTest, RingOfPartialLinesIsRefused) {
  EXPECT_FALSE(Layout::ForRing(100, 16).ok());
  EXPECT_FALSE(Layout::ForRing(3 * kLineBytes, 16).ok());
  EXPECT_FALSE(Layout::ForRing(4 * kLineBytes, 0).ok());
  EXPECT_TRUE(Layout::ForRing(4 * kLineBytes, 16).ok());
}

TEST(LayoutTest, TruncatedRegionIsDataLossWithBothSizes) {
  const Layout layout = *Layout::ForRing(4096, 16);
  std::vector<std::byte> region(layout.region_bytes - 1);
  const absl::Status status = CheckGeometry(region, SuperlineFor(layout));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("truncated"), absl::string_view::npos);
  region.resize(layout.region_bytes);
  EXPECT_TRUE(CheckGeometry(region, SuperlineFor(layout)).ok());
}

// Every geometry field that could send a reader out of bounds.
TEST(LayoutTest, ContradictoryGeometryIsRefused) {
  const Layout layout = *Layout::ForRing(4096, 16);
  const std::vector<std::byte> region(layout.region_bytes);
  for (const uint64_t bad : {uint64_t{0}, uint64_t{1}, ~uint64_t{0},
                             uint64_t{1} << 63, layout.region_bytes}) {
    Superline superline = SuperlineFor(layout);
    superline.ring_offset = bad;
    EXPECT_FALSE(CheckGeometry(region, superline).ok()) << bad;
    superline = SuperlineFor(layout);
    superline.ring_capacity = bad;
    EXPECT_FALSE(CheckGeometry(region, superline).ok()) << bad;
    if (bad == 1) continue;  // fits the same pages
    superline = SuperlineFor(layout);
    superline.table_capacity = bad;
    EXPECT_FALSE(CheckGeometry(region, superline).ok()) << bad;
  }
}

// P-S3: one bad page never takes both of two copies.
TEST(LayoutTest, CopiesLieOnPagesOfTheirOwn) {
  const Layout layout = *Layout::ForRing(4096, 16);
  std::vector<std::byte> region(layout.region_bytes);
  const auto page_of = [&region](const std::byte* address) {
    return static_cast<uint64_t>(address - region.data()) / kPageBytes;
  };
  for (const CellPlace& place :
       {SuperlinePlace(region),
        EpochTablePlace(region, SuperlineFor(layout))}) {
    const std::byte* last_of_first = place.copies[0] + place.capacity_bytes - 1;
    EXPECT_LT(page_of(last_of_first), page_of(place.copies[1]));
  }
  EXPECT_LT(page_of(WatermarkLine(region, 0)),
            page_of(WatermarkLine(region, 1)));
}

TEST(LayoutTest, LargestPayloadLeavesHalfTheRing) {
  EXPECT_EQ(PayloadBytesMax(4096), 2048 - kRecordHeaderBytes);
  EXPECT_EQ(RecordBytes(PayloadBytesMax(4096)), 2048u);
  EXPECT_EQ(PayloadBytesMax(uint64_t{1} << 40), 0xffffffffu);
}

TEST(RingTest, OffsetsWrapAtTheCapacity) {
  const Ring ring(nullptr, 640);
  EXPECT_EQ(ring.Place(RingOffset(0)), 0u);
  EXPECT_EQ(ring.Place(RingOffset(640)), 0u);
  EXPECT_EQ(ring.Place(RingOffset(6400 + 64)), 64u);
  EXPECT_EQ(ring.UntilEnd(RingOffset(640)), 640u);
  EXPECT_EQ(ring.UntilEnd(RingOffset(639)), 1u);
}

}  // namespace
}  // namespace alpheus
