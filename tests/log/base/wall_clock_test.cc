// SPDX-License-Identifier: Apache-2.0
// The time of day, as people are told it.
#include "log/base/wall_clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace alpheus {
namespace {

TEST(UtcTextTest, IsToTheMinute) {
  EXPECT_EQ(UtcText(0), "1970-01-01 00:00 UTC");
  EXPECT_EQ(UtcText(1'801'379'159), "2027-01-31 07:05 UTC");
  EXPECT_EQ(UtcText(32'472'144'000), "2999-01-01 00:00 UTC");
}

TEST(UtcTextTest, TimeWithoutAYearIsInSeconds) {
  EXPECT_EQ(UtcText(std::numeric_limits<int64_t>::max()),
            "9223372036854775807 s");
}

}  // namespace
}  // namespace alpheus
