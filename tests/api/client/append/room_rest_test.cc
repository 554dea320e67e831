// SPDX-License-Identifier: Apache-2.0
#include "api/client/append/room_rest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace alpheus::client {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> TakeMs(RoomRest& rest, int count) {
  std::vector<int64_t> taken;
  for (int i = 0; i < count; ++i) taken.push_back(rest.Take().count());
  return taken;
}

// RRT1.
TEST(RoomRestTest, RestsDoubleUpToTheirBound) {
  RoomRest rest;
  EXPECT_THAT(TakeMs(rest, 9),
              ElementsAre(20, 40, 80, 160, 320, 640, 1'000, 1'000, 1'000));
}

// RRT1.
TEST(RoomRestTest, AppendedRequestMakesTheNextOneShort) {
  RoomRest rest;
  EXPECT_THAT(TakeMs(rest, 3), ElementsAre(20, 40, 80));
  rest.BeginAgain();
  EXPECT_THAT(TakeMs(rest, 2), ElementsAre(20, 40));
}

}  // namespace
}  // namespace alpheus::client
