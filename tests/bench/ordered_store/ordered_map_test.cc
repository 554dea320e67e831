// SPDX-License-Identifier: Apache-2.0
// Is the concurrent B+-tree a map, first for one thread and then for several?
#include "bench/ordered_store/ordered_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "log/base/random.h"

namespace alpheus::bench::ordered_store {
namespace {

std::vector<uint64_t> KeysOf(const OrderedMap& map) {
  std::vector<uint64_t> keys;
  map.ForEach([&](const Record& record) { keys.push_back(record.key); });
  return keys;
}

std::vector<uint64_t> UpTo(uint64_t count) {
  std::vector<uint64_t> keys(count);
  for (uint64_t i = 0; i < count; ++i) keys[i] = i;
  return keys;
}

TEST(OrderedMapTest, EmptyMapHasNothing) {
  const OrderedMap map;
  EXPECT_EQ(map.Find(0), nullptr);
  EXPECT_TRUE(KeysOf(map).empty());
  EXPECT_TRUE(map.IsSound());
}

// Goal: every split, of leaves, of inner nodes and of the root, in each order
// of keys. Method: beside a std::set, after each key while there are few.
TEST(OrderedMapTest, KeysInAnyOrderAreFoundInOrder) {
  constexpr uint64_t kKeys = 3000;
  std::vector<uint64_t> up = UpTo(kKeys);
  std::vector<uint64_t> down(up.rbegin(), up.rend());
  std::vector<uint64_t> mixed = up;
  Random random(1);
  for (size_t i = mixed.size(); i > 1; --i) {
    std::swap(mixed[i - 1], mixed[random.Below(i)]);
  }
  for (const std::vector<uint64_t>& keys : {up, down, mixed}) {
    OrderedMap map;
    std::set<uint64_t> expected;
    for (const uint64_t key : keys) {
      ASSERT_EQ(map.Find(key), nullptr) << key;
      Record* const record = map.FindOrInsert(key);
      ASSERT_EQ(record->key, key);
      ASSERT_EQ(map.Find(key), record);
      expected.insert(key);
      if (expected.size() > 300) continue;
      ASSERT_TRUE(map.IsSound()) << expected.size();
      ASSERT_TRUE(std::ranges::equal(KeysOf(map), expected));
    }
    EXPECT_TRUE(map.IsSound());
    EXPECT_EQ(KeysOf(map), up);
  }
}

TEST(OrderedMapTest, ExtremeKeysAreKeys) {
  OrderedMap map;
  for (const uint64_t key : {~uint64_t{0}, uint64_t{0}, uint64_t{1} << 63}) {
    EXPECT_EQ(map.FindOrInsert(key), map.FindOrInsert(key));
  }
  EXPECT_EQ(KeysOf(map),
            (std::vector<uint64_t>{0, uint64_t{1} << 63, ~uint64_t{0}}));
}

// Goal: no key is lost or made twice while others split the same nodes, and
// readers see each key from its insertion on. Method: writers insert keys that
// lie between each other's, and ask for each at once; readers ask for keys
// below a mark that writers move.
TEST(OrderedMapTest, ThreadsInsertBetweenEachOthersKeys) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kKeysOfThread = 5000;
  OrderedMap map;
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> written[kThreads] = {};
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < kKeysOfThread; ++i) {
          const uint64_t key = i * kThreads + t;
          const Record* const record = map.FindOrInsert(key);
          if (record->key != key || map.FindOrInsert(key) != record) ++wrong;
          written[t].store(i + 1, std::memory_order_release);
        }
      });
      threads.emplace_back([&, t] {
        Random random(t + 1);
        uint64_t there = 0;
        while (there < kKeysOfThread) {
          there = written[t].load(std::memory_order_acquire);
          if (there == 0) continue;
          const uint64_t key = random.Below(there) * kThreads + t;
          const Record* const record = map.Find(key);
          if (record == nullptr || record->key != key) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_TRUE(map.IsSound());
  EXPECT_EQ(KeysOf(map), UpTo(kThreads * kKeysOfThread));
}

// All of them want the same new keys: each is made once.
TEST(OrderedMapTest, ThreadsThatInsertTheSameKeysGetTheSameRecords) {
  constexpr int kThreads = 4;
  constexpr uint64_t kKeys = 4000;
  OrderedMap map;
  std::vector<std::vector<Record*>> found(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t key = 0; key < kKeys; ++key) {
          found[t].push_back(map.FindOrInsert(key));
        }
      });
    }
  }
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(found[t], found[0]);
  EXPECT_EQ(KeysOf(map), UpTo(kKeys));
}

}  // namespace
}  // namespace alpheus::bench::ordered_store
