// SPDX-License-Identifier: Apache-2.0
#include "log/base/waiter.h"

#include <gtest/gtest.h>

#include <thread>

namespace alpheus {
namespace {

TEST(FutexWaiterTest, SpinsForAWhileThenAsksToSleep) {
  FutexWaiter waiter(Clock::Real());
  int round = 0;
  while (waiter.Spin(round)) ++round;
  EXPECT_GT(round, 0);
  EXPECT_FALSE(waiter.Spin(round + 1));
}

// No notice is lost, whichever side pays for the barrier.
class ProgressTest : public ::testing::TestWithParam<Progress::PaidBy> {};

INSTANTIATE_TEST_SUITE_P(, ProgressTest,
                         ::testing::Values(Progress::PaidBy::kRareSide,
                                           Progress::PaidBy::kBothSides));

TEST_P(ProgressTest, ReturnsAtOnceWhenProgressCameFirst) {
  FutexWaiter waiter(Clock::Real());
  Progress progress(waiter, GetParam());
  const uint32_t seen = progress.Announce();
  progress.Notify();
  progress.Wait(seen, Deadline());  // would hang if the notice were lost
  progress.Withdraw();
}

TEST_P(ProgressTest, ReturnsAtTheDeadline) {
  FutexWaiter waiter(Clock::Real());
  Progress progress(waiter, GetParam());
  const uint32_t seen = progress.Announce();
  progress.Wait(seen, Deadline::In(std::chrono::milliseconds(1)));
  progress.Wait(seen, Deadline::AtNanos(0));
  progress.Withdraw();
}

TEST_P(ProgressTest, SleeperIsWoken) {
  FutexWaiter waiter(Clock::Real());
  Progress progress(waiter, GetParam());
  std::atomic<int> value{0};
  for (int i = 1; i <= 1000; ++i) {
    std::jthread sleeper([&] {
      while (true) {
        const uint32_t seen = progress.Announce();
        if (value.load() >= i) break;
        progress.Wait(seen, Deadline());
        progress.Withdraw();
      }
      progress.Withdraw();
    });
    value.fetch_add(1);
    progress.Notify();
  }
}

TEST(DeadlineTest, UnsetNeverPasses) {
  EXPECT_FALSE(Deadline().is_set());
  EXPECT_FALSE(Deadline().HasPassed(std::numeric_limits<int64_t>::max()));
  EXPECT_TRUE(Deadline::AtNanos(5).HasPassed(5));
  EXPECT_FALSE(Deadline::AtNanos(5).HasPassed(4));
}

}  // namespace
}  // namespace alpheus
