// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/rate_meter.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace alpheus::rpc {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNow = 1'000 * kSecond;

// Takes requests of so many bytes until one is refused.
int Burst(RateMeter& meter, uint64_t bytes, int64_t now_ns) {
  int taken = 0;
  while (meter.Take(bytes, now_ns)) ++taken;
  return taken;
}

TEST(RateMeterTest, SecondsWorthGoesAtOnceAndThenTheRate) {
  RateMeter meter({.requests = 10});
  // RTM1: the last one is paid for afterwards.
  EXPECT_EQ(Burst(meter, 1, kNow), 11);
  EXPECT_EQ(Burst(meter, 1, kNow + kSecond / 10 - 1), 0);
  EXPECT_EQ(Burst(meter, 1, kNow + kSecond / 10), 1);
  int taken = 0;
  for (int64_t ms = 101; ms <= 2'100; ++ms) {
    taken += Burst(meter, 1, kNow + ms * 1'000'000);
  }
  EXPECT_EQ(taken, 20);
}

TEST(RateMeterTest, TimeOfASecondIsKeptAndNoMore) {
  RateMeter meter({.requests = 10});
  EXPECT_EQ(Burst(meter, 1, kNow), 11);
  EXPECT_EQ(Burst(meter, 1, kNow + 100 * kSecond), 11);
}

TEST(RateMeterTest, BytesCountToo) {
  RateMeter meter({.requests = 1'000, .bytes = 100});
  EXPECT_EQ(Burst(meter, 50, kNow), 3);
  EXPECT_EQ(Burst(meter, 50, kNow + kSecond / 2), 1);
  // Requests without bytes are refused, too, while there is a debt.
  EXPECT_FALSE(meter.Take(0, kNow + kSecond / 2));
}

TEST(RateMeterTest, RequestLargerThanASecondAllowsGoesByItself) {
  RateMeter meter({.bytes = 100});
  EXPECT_TRUE(meter.Take(1'000, kNow));
  EXPECT_FALSE(meter.Take(1, kNow + 9 * kSecond - 1));
  EXPECT_TRUE(meter.Take(1, kNow + 9 * kSecond));
}

TEST(RateMeterTest, WithoutALimitAllGo) {
  RateMeter meter(Rates{});
  EXPECT_FALSE(meter.rates().is_limited());
  for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(meter.Take(1 << 20, kNow));
}

TEST(RateMeterTest, RefusedRequestTakesNothing) {
  RateMeter meter({.requests = 1});
  EXPECT_EQ(Burst(meter, 1, kNow), 2);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(meter.Take(1, kNow + 1));
  EXPECT_TRUE(meter.Take(1, kNow + kSecond));
}

}  // namespace
}  // namespace alpheus::rpc
