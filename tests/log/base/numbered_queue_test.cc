// SPDX-License-Identifier: Apache-2.0
#include "log/base/numbered_queue.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>

#include "log/base/random.h"

namespace alpheus {
namespace {

TEST(NumberedQueueTest, NumbersGoOnWhenItIsEmpty) {
  NumberedQueue<int> queue(1);
  for (uint64_t number = 0; number < 10; ++number) {
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.next(), number);
    queue.Push(static_cast<int>(number) + 7);
    EXPECT_EQ(queue.first(), number);
    EXPECT_EQ(queue.Pop(), static_cast<int>(number) + 7);
  }
}

// Grown from wherever its first entry is.
TEST(NumberedQueueTest, FullOneGrowsAndKeepsNumbers) {
  for (uint64_t begin = 0; begin < 5; ++begin) {
    NumberedQueue<uint64_t> queue(4);
    for (uint64_t i = 0; i < begin; ++i) {
      queue.Push(i);
      queue.Pop();
    }
    for (uint64_t i = begin; i < begin + 21; ++i) queue.Push(i);
    EXPECT_EQ(queue.size(), 21u);
    for (uint64_t i = begin; i < begin + 21; ++i) EXPECT_EQ(queue.At(i), i);
    EXPECT_EQ(queue.room(), 32u);
    EXPECT_EQ(queue.back(), begin + 20);
  }
}

TEST(NumberedQueueTest, DoesAsADequeDoes) {
  Random random(1);
  NumberedQueue<uint64_t> queue(3);
  std::deque<uint64_t> deque;
  for (uint64_t step = 0; step < 20'000; ++step) {
    // Mostly more comes, then mostly more leaves, by turns.
    const bool pushes = random.Next() % 4 < (step / 200 % 2 == 0 ? 3 : 1);
    if (pushes) {
      queue.Push(step);
      deque.push_back(step);
    } else if (!deque.empty()) {
      ASSERT_EQ(queue.Pop(), deque.front());
      deque.pop_front();
    }
    ASSERT_EQ(queue.size(), deque.size());
    ASSERT_EQ(queue.next() - queue.first(), deque.size());
    if (deque.empty()) continue;
    ASSERT_EQ(queue.At(queue.first()), deque.front());
    ASSERT_EQ(queue.back(), deque.back());
  }
}

}  // namespace
}  // namespace alpheus
