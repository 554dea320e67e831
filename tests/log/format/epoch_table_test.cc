// SPDX-License-Identifier: Apache-2.0
#include "log/format/epoch_table.h"

#include <gtest/gtest.h>

namespace alpheus {
namespace {

constexpr Uuid kLogOfTable{1, 2};

EpochEntry Entry(uint64_t epoch, uint64_t start_lsn) {
  return {Epoch(epoch), epoch * 1000, Lsn(start_lsn),
          RingOffset(start_lsn * 64), epoch * 77};
}

EpochTable Table() {
  return EpochTable::Empty(kLogOfTable)
      .With(Entry(1, 1), Lsn(1))
      .With(Entry(4, 10), Lsn(1))
      .With(Entry(6, 20), Lsn(1));
}

// ET2 (epoch_table.h).
TEST(EpochTableTest, OwnerIsTheNewestEntryAtOrBelowTheLsn) {
  const EpochTable table = Table();
  EXPECT_EQ(table.Owner(Lsn(0)), nullptr);
  EXPECT_EQ(table.Owner(Lsn(1))->epoch, Epoch(1));
  EXPECT_EQ(table.Owner(Lsn(9))->epoch, Epoch(1));
  EXPECT_EQ(table.Owner(Lsn(10))->epoch, Epoch(4));
  EXPECT_EQ(table.Owner(Lsn(20))->epoch, Epoch(6));
  EXPECT_EQ(table.Owner(Lsn(1000))->epoch, Epoch(6));
}

TEST(EpochTableTest, SurvivesEncoding) {
  const EpochTable table = Table();
  const auto decoded = EpochTable::Decode(kLogOfTable, table.Encode());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->entries(), table.entries());
}

// ET3: an epoch whose last LSN is cleaned owns nothing any more.
TEST(EpochTableTest, EntriesWithoutLiveRecordsLeave) {
  EXPECT_EQ(Table().With(Entry(7, 30), Lsn(9)).entries().size(), 4u);
  EXPECT_EQ(Table().With(Entry(7, 30), Lsn(10)).entries().size(), 3u);
  EXPECT_EQ(Table().With(Entry(7, 30), Lsn(30)).entries().size(), 1u);
}

TEST(EpochTableTest, EpochsThatWroteNothingLeave) {
  const EpochTable table =
      Table().With(Entry(7, 20), Lsn(1)).With(Entry(8, 20), Lsn(1));
  ASSERT_EQ(table.entries().size(), 3u);
  EXPECT_EQ(table.entries().back().epoch, Epoch(8));
}

TEST(EpochTableTest, EntriesOutOfOrderAreRefused) {
  std::vector<std::byte> content = Table().Encode();
  std::vector<std::byte> swapped(content.begin() + 40, content.begin() + 80);
  swapped.insert(swapped.end(), content.begin(), content.begin() + 40);
  EXPECT_EQ(EpochTable::Decode(kLogOfTable, swapped).status().code(),
            absl::StatusCode::kDataLoss);
  content.pop_back();
  EXPECT_EQ(EpochTable::Decode(kLogOfTable, content).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(EpochTableTest, KeysDifferByLogEpochAndNonce) {
  const EpochKey key({1, 2}, Epoch(3), 4);
  const uint64_t seed = key.Seed(Lsn(5), RingOffset(64));
  EXPECT_NE(seed, EpochKey({1, 3}, Epoch(3), 4).Seed(Lsn(5), RingOffset(64)));
  EXPECT_NE(seed, EpochKey({1, 2}, Epoch(4), 4).Seed(Lsn(5), RingOffset(64)));
  EXPECT_NE(seed, EpochKey({1, 2}, Epoch(3), 5).Seed(Lsn(5), RingOffset(64)));
  EXPECT_NE(seed, key.Seed(Lsn(6), RingOffset(64)));
  EXPECT_NE(seed, key.Seed(Lsn(5), RingOffset(128)));
}

}  // namespace
}  // namespace alpheus
