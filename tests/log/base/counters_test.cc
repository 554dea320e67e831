// SPDX-License-Identifier: Apache-2.0
#include "log/base/counters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace alpheus {
namespace {

TEST(CountersTest, SumIsThatOfAllThreads) {
  // More threads than there are shards.
  constexpr int kThreads = 20;
  constexpr uint64_t kRounds = 1'000;
  Counters<3> counters;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (uint64_t round = 0; round < kRounds; ++round) {
        counters.Add(0);
        counters.Add(2, 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters.Sum(0), kThreads * kRounds);
  EXPECT_EQ(counters.Sum(1), 0U);
  EXPECT_EQ(counters.Sum(2), 3 * kThreads * kRounds);
}

// CNT1.
TEST(CountersTest, ReadingsNeverGoBack) {
  constexpr uint64_t kAdded = 10'000;
  Counters<1> counters;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (uint64_t added = 0; added < kAdded; ++added) counters.Add(0);
    });
  }
  uint64_t last = 0;
  while (last < 3 * kAdded) {
    const uint64_t now = counters.Sum(0);
    ASSERT_GE(now, last);
    ASSERT_LE(now, 3 * kAdded);
    last = now;
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace alpheus
