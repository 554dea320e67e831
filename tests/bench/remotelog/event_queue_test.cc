// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace alpheus::bench::remotelog {
namespace {

using ::testing::ElementsAre;

// Goal: EQ1. Method: put in out of order, two at the same time, one from
// within another.
TEST(EventQueueTest, EventsHappenByTimeAndThenAsTheyWerePutIn) {
  EventQueue queue;
  std::vector<int> seen;
  queue.At(2, [&] { seen.push_back(3); });
  queue.At(1, [&] {
    seen.push_back(1);
    queue.After(1, [&] { seen.push_back(5); });
  });
  queue.At(2, [&] { seen.push_back(4); });
  queue.At(1, [&] { seen.push_back(2); });
  while (queue.RunOne()) {
  }
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(queue.now(), 2);
}

TEST(EventQueueDeathTest, NothingHappensInThePast) {
  EventQueue queue;
  queue.At(2, [] {});
  queue.RunOne();
  EXPECT_DEATH(queue.At(1, [] {}), "EQ2");
}

TEST(LaneTest, WhatComesWhileItIsBusyWaits) {
  Lane lane;
  EXPECT_EQ(lane.Begin(5, 10), 5);
  EXPECT_EQ(lane.Begin(6, 10), 15);
  EXPECT_EQ(lane.Begin(40, 10), 40);
}

}  // namespace
}  // namespace alpheus::bench::remotelog
