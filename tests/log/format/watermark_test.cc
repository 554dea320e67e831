// SPDX-License-Identifier: Apache-2.0
#include "log/format/watermark.h"

#include <gtest/gtest.h>

#include <cstring>

namespace alpheus {
namespace {

constexpr Uuid kLog{1, 2};

const std::byte* Bytes(const WatermarkFormat& f) {
  return reinterpret_cast<const std::byte*>(&f);
}

TEST(WatermarkTest, SurvivesEncoding) {
  const Watermark watermark{Epoch(3), Lsn(4), {RingOffset(5), 6}};
  const WatermarkFormat f = EncodeWatermark(kLog, 1, watermark);
  EXPECT_EQ(DecodeWatermark(kLog, 1, Bytes(f)), watermark);
}

TEST(WatermarkTest, EncoderOfOneEpochWritesTheSameLine) {
  for (const int line : {0, 1}) {
    const WatermarkEncoder encoder(kLog, line, Epoch(3));
    for (const uint64_t lsn : {uint64_t{0}, uint64_t{4}, ~uint64_t{0}}) {
      const WatermarkPlace place{RingOffset(lsn * 64), ~lsn};
      const LineWords words = encoder.Encode(Lsn(lsn), place);
      const WatermarkFormat f =
          EncodeWatermark(kLog, line, {Epoch(3), Lsn(lsn), place});
      EXPECT_EQ(std::memcmp(&words, &f, sizeof(f)), 0) << lsn;
    }
  }
}

TEST(WatermarkTest, OtherLineOrLogDoesNotValidate) {
  const WatermarkFormat f = EncodeWatermark(kLog, 1, {Epoch(3), Lsn(4)});
  EXPECT_FALSE(DecodeWatermark(kLog, 0, Bytes(f)));
  EXPECT_FALSE(DecodeWatermark({1, 3}, 1, Bytes(f)));
}

TEST(WatermarkTest, EveryFlippedBitIsSeen) {
  WatermarkFormat f =
      EncodeWatermark(kLog, 0, {Epoch(3), Lsn(4), {RingOffset(64), 7}});
  auto* bytes = reinterpret_cast<std::byte*>(&f);
  for (size_t bit = 0; bit < 8 * sizeof(f); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(DecodeWatermark(kLog, 0, bytes)) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

// WMK3 (watermark.h).
TEST(WatermarkTest, OnlyLinesOfTheAskedEpochProveAnything) {
  WatermarkPair pair;
  EXPECT_EQ(pair.Proven(Epoch(3)), Lsn(0));
  pair.lines[0] = {Epoch(2), Lsn(100)};
  pair.lines[1] = {Epoch(3), Lsn(50)};
  EXPECT_EQ(pair.Proven(Epoch(3)), Lsn(50));
  pair.lines[0] = {Epoch(3), Lsn(51)};
  EXPECT_EQ(pair.Proven(Epoch(3)), Lsn(51));
}

TEST(WatermarkTest, LatestIsTheHighestOfTheAskedEpoch) {
  WatermarkPair pair;
  EXPECT_EQ(pair.Latest(Epoch(3)), nullptr);
  pair.lines[0] = {Epoch(2), Lsn(100)};
  EXPECT_EQ(pair.Latest(Epoch(3)), nullptr);
  pair.lines[1] = {Epoch(3), Lsn(50)};
  EXPECT_EQ(pair.Latest(Epoch(3)), &*pair.lines[1]);
  pair.lines[0] = {Epoch(3), Lsn(49)};
  EXPECT_EQ(pair.Latest(Epoch(3)), &*pair.lines[1]);
  pair.lines[0] = {Epoch(3), Lsn(51)};
  EXPECT_EQ(pair.Latest(Epoch(3)), &*pair.lines[0]);
}

// WMK2: the line that holds is written last.
TEST(WatermarkTest, NextLineIsNeverTheOneThatHolds) {
  WatermarkPair pair;
  pair.lines[0] = {Epoch(3), Lsn(50)};
  EXPECT_EQ(pair.NextLine(Epoch(3)), 1);
  pair.lines[1] = {Epoch(2), Lsn(70)};
  EXPECT_EQ(pair.NextLine(Epoch(3)), 1);
  pair.lines[1] = {Epoch(3), Lsn(60)};
  EXPECT_EQ(pair.NextLine(Epoch(3)), 0);
}

}  // namespace
}  // namespace alpheus
