// SPDX-License-Identifier: Apache-2.0
// Is a process's clock its own, and are its deadlines turned into the world's
// time so that nobody is woken too early?
#include "tools/sim/world/process_clock.h"

#include <gtest/gtest.h>

#include <limits>

namespace alpheus::sim {
namespace {

constexpr int64_t kStart = 1'000'000;
constexpr int64_t kAhead = 77'000'000'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class WorldClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now; }
  int64_t now = kStart;
};

class ProcessClockTest : public ::testing::Test {
 protected:
  int64_t own() const { return clock_.NowNanos(); }

  WorldClock world_;
  ProcessClock clock_{world_, kAhead};
};

TEST_F(ProcessClockTest, GoesAsTheWorldDoesAheadOfIt) {
  EXPECT_EQ(own(), kStart + kAhead);
  world_.now += 5;
  EXPECT_EQ(own(), kStart + kAhead + 5);
}

TEST_F(ProcessClockTest, JumpsAheadAndNeverGoesBack) {
  world_.now += 10;
  const int64_t before = own();
  clock_.Jump(1'000);
  EXPECT_EQ(own(), before + 1'000);
  clock_.SetRate(20'000);
  EXPECT_EQ(own(), before + 1'000);
  world_.now += 3;
  EXPECT_EQ(own(), before + 1'060);
  clock_.SetRate(50);
  world_.now += 100;
  EXPECT_EQ(own(), before + 1'065);
}

// PC2, at every rate.
TEST_F(ProcessClockTest, ADeadlineHasPassedWhenTheWorldSaysSoAndNotBefore) {
  for (const int64_t rate : {1, 50, 333, 1'000, 7'000, 20'000}) {
    clock_.SetRate(rate);
    for (const int64_t left : {1, 2, 999, 12'345}) {
      const Deadline deadline = Deadline::AtNanos(own() + left);
      const int64_t until = clock_.InWorld(deadline).at_nanos();
      ASSERT_GT(until, world_.now);
      world_.now = until - 1;
      EXPECT_FALSE(deadline.HasPassed(own())) << rate << " " << left;
      world_.now = until;
      EXPECT_TRUE(deadline.HasPassed(own())) << rate << " " << left;
    }
  }
}

TEST_F(ProcessClockTest, WhatHasPassedAndWhatNeverComes) {
  EXPECT_FALSE(clock_.InWorld(Deadline()).is_set());
  const Deadline past = clock_.InWorld(Deadline::AtNanos(own() - 5));
  EXPECT_TRUE(past.HasPassed(world_.now));
  // Behind a jump of hours, too.
  const Deadline deadline = Deadline::AtNanos(own() + 5);
  clock_.Jump(7'200'000'000'000);
  EXPECT_TRUE(clock_.InWorld(deadline).HasPassed(world_.now));
}

TEST_F(ProcessClockTest, IsSteadyBehindItsLastChange) {
  world_.now += 100;
  EXPECT_EQ(clock_.SteadySince(kNever), kNever);
  EXPECT_EQ(clock_.SteadySince(kStart + 40), kStart + kAhead + 40);
  clock_.Jump(1'000);
  EXPECT_EQ(clock_.SteadySince(kStart + 40), own());
  clock_.SetRate(2'000);
  EXPECT_EQ(clock_.SteadySince(kStart + 40), kNever);
  world_.now += 100;
  clock_.SetRate(ProcessClock::kNormalRate);
  EXPECT_EQ(clock_.SteadySince(kStart + 40), own());
  world_.now += 100;
  EXPECT_EQ(clock_.SteadySince(world_.now - 30), own() - 30);
}

}  // namespace
}  // namespace alpheus::sim
