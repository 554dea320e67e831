// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/region_table.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <cstdint>
#include <limits>
#include <set>

namespace alpheus::fabric {
namespace {

class RegionTableTest : public ::testing::Test {
 protected:
  Random random_{7};
  RegionTable table_{random_};
  alignas(8) std::array<std::byte, 64> memory_{};
};

// Invariant 1: whatever is registered in between, an old key stays old.
TEST_F(RegionTableTest, KeysAreNeverZeroAndNeverIssuedTwice) {
  std::set<RegionKey> given;
  for (int i = 0; i < 10'000; ++i) {
    const RegionKey key = *table_.Register(memory_, RemoteAccess::kRead);
    EXPECT_NE(key, RegionKey());
    EXPECT_TRUE(given.insert(key).second);
    if (i % 3 != 0) {
      ASSERT_TRUE(table_.Deregister(key).ok());
    }
  }
}

// Invariant 1: a peer may have a region registered again and again.
TEST_F(RegionTableTest, DeregisteredKeysTakeNoMemory) {
  const auto cycle = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const RegionKey key = *table_.Register(memory_, RemoteAccess::kRead);
      ASSERT_TRUE(table_.Deregister(key).ok());
    }
  };
  cycle(10);
  const size_t before = mallinfo2().uordblks;
  cycle(100'000);
  EXPECT_LE(mallinfo2().uordblks, before + 64'000);
}

// Invariant 2, against a dumb check in wider numbers, at every edge.
TEST_F(RegionTableTest, BytesInsideTheRegionAreFoundAndNoOthers) {
  const RegionKey key = *table_.Register(memory_, RemoteAccess::kAll);
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  const std::set<uint64_t> numbers = {
      0,           1,  7,  8,       63,      64,  65,       max / 2,
      max / 2 + 1, 62, 66, max - 1, max - 7, max, max - 63, max - 64};
  for (const uint64_t offset : numbers) {
    for (const uint64_t bytes : numbers) {
      const bool inside =
          static_cast<unsigned __int128>(offset) + bytes <= memory_.size();
      const auto found = table_.Find({key, offset}, bytes, RemoteAccess::kRead);
      EXPECT_EQ(found.ok(), inside || bytes == 0) << offset << "+" << bytes;
      if (!found.ok()) {
        EXPECT_TRUE(absl::IsPermissionDenied(found.status()));
      } else if (bytes != 0) {
        EXPECT_EQ(found->data(), memory_.data() + offset);
        EXPECT_EQ(found->size(), bytes);
      }
    }
  }
}

TEST_F(RegionTableTest, AccessMustHaveBeenGranted) {
  using enum RemoteAccess;
  const std::array<RemoteAccess, 5> all = {kNone, kRead, kWrite, kReadWrite,
                                           kAll};
  for (const RemoteAccess granted : all) {
    const RegionKey key = *table_.Register(memory_, granted);
    for (const RemoteAccess needed : {kRead, kWrite, kAll}) {
      const bool allowed = granted == needed || granted == kAll ||
                           (granted == kReadWrite && needed != kAll);
      EXPECT_EQ(table_.Find({key, 0}, 8, needed).ok(), allowed)
          << static_cast<int>(granted) << " for " << static_cast<int>(needed);
    }
  }
}

TEST_F(RegionTableTest, KeyHoldsUntilItIsDeregistered) {
  const RegionKey other = *table_.Register(memory_, RemoteAccess::kRead);
  const RegionKey key = *table_.Register(memory_, RemoteAccess::kRead);
  EXPECT_TRUE(table_.Holds(key));
  EXPECT_FALSE(table_.Find({key + 1, 0}, 1, RemoteAccess::kRead).ok());
  EXPECT_TRUE(table_.Deregister(key).ok());
  EXPECT_FALSE(table_.Holds(key));
  EXPECT_FALSE(table_.Find({key, 0}, 1, RemoteAccess::kRead).ok());
  EXPECT_TRUE(absl::IsNotFound(table_.Deregister(key)));
  EXPECT_TRUE(table_.Find({other, 0}, 1, RemoteAccess::kRead).ok());
}

// Invariant 3, as InfiniBand has it.
TEST_F(RegionTableTest, NoBytesNeedNoKey) {
  EXPECT_TRUE(table_.Find({RegionKey(9), 1}, 0, RemoteAccess::kAll).ok());
  EXPECT_TRUE(table_.CheckLocal({RegionKey(9), {}}).ok());
}

TEST_F(RegionTableTest, OwnBytesMustLieInTheirRegion) {
  const std::span<std::byte> all(memory_);
  const RegionKey key =
      *table_.Register(all.subspan(8, 48), RemoteAccess::kNone);
  EXPECT_TRUE(table_.CheckLocal({key, all.subspan(8, 48)}).ok());
  EXPECT_TRUE(table_.CheckLocal({key, all.subspan(55, 1)}).ok());
  for (const auto& bytes : {all.subspan(7, 1), all.subspan(56, 1),
                            all.subspan(8, 49), all.subspan(7, 49)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(table_.CheckLocal({key, bytes})));
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(table_.CheckLocal({key + 1, all.subspan(8, 1)})));
}

TEST_F(RegionTableTest, RegionMustHaveBytesAndAtomicsAlignment) {
  const std::span<std::byte> all(memory_);
  EXPECT_TRUE(absl::IsInvalidArgument(
      table_.Register({}, RemoteAccess::kRead).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      table_.Register(all.subspan(4), RemoteAccess::kAll).status()));
  EXPECT_TRUE(table_.Register(all.subspan(4), RemoteAccess::kReadWrite).ok());
}

}  // namespace
}  // namespace alpheus::fabric
