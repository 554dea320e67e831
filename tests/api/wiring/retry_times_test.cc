// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/retry_times.h"

#include <gtest/gtest.h>

namespace alpheus {
namespace {

TEST(RetryTimesTest, TimesDoubleUpToTheBound) {
  RetryTimes times(100, 500);
  int64_t now = 7;
  for (const int64_t wait : {100, 200, 400, 500, 500}) {
    EXPECT_EQ(times.AfterFailureAt(now), now + wait);
    now += wait;
  }
}

TEST(RetryTimesTest, TimesAreShortAgainAfterALongGoodTime) {
  RetryTimes times(100, 500);
  int64_t now = times.AfterFailureAt(0);
  now = times.AfterFailureAt(now);
  EXPECT_EQ(times.AfterFailureAt(now + 5000), now + 5000 + 400);
  now += 5400;
  EXPECT_EQ(times.AfterFailureAt(now + 5001), now + 5001 + 100);
}

}  // namespace
}  // namespace alpheus
