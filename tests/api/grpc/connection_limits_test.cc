// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/connections/connection_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace alpheus::rpc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;  // ns

TEST(ConnectionLimitsTest, SoManyAreOpenAtMost) {
  ConnectionLimits limits({.open_max = 2, .of_host_max = 2, .per_second = 9});
  EXPECT_TRUE(limits.Enter("10.0.0.1:1").ok());
  EXPECT_TRUE(limits.Enter("10.0.0.2:1").ok());
  const absl::Status refused = limits.Enter("10.0.0.3:7");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("a connection from 10.0.0.3:7 is closed: 2 "
                        "connections of clients are open"));
  EXPECT_EQ(limits.open(), 2u);
  limits.Leave("10.0.0.1:1");
  EXPECT_TRUE(limits.Enter("10.0.0.3:7").ok());
}

// Each has its own number, network or machine.
TEST(ConnectionLimitsTest, OneHostHasItsShare) {
  const std::vector<std::vector<std::string>> hosts = {
      {"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"},
      {"10.0.0.2:1", "10.0.0.2:2", "10.0.0.2:3"},
      {"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8:0:0:ffff::1]:1"},
      {"[2001:db8:0:1::1]:1", "[2001:db8:0:1::2]:1", "[2001:db8:0:1::3]:1"},
      {"[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.1]:2", "[::ffff:192.0.2.1]:3"},
      {"[::ffff:192.0.2.2]:1", "[::ffff:192.0.2.2]:2", "[::ffff:192.0.2.2]:3"},
  };
  ConnectionLimits limits({.open_max = 99, .of_host_max = 2, .per_second = 9});
  for (const auto& peers : hosts) {
    EXPECT_TRUE(limits.Enter(peers[0]).ok());
    EXPECT_TRUE(limits.Enter(peers[1]).ok());
    const absl::Status refused = limits.Enter(peers[2]);
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << peers[2];
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("2 connections of its host are open"));
  }
  EXPECT_EQ(limits.open(), 2 * hosts.size());
  for (const auto& peers : hosts) {
    limits.Leave(peers[0]);
    EXPECT_TRUE(limits.Enter(peers[2]).ok()) << peers[2];
  }
}

TEST(ConnectionLimitsTest, ThisMachineHasAnyShare) {
  ConnectionLimits limits({.open_max = 99, .of_host_max = 1, .per_second = 9});
  for (const char* peer :
       {"127.0.0.1:1", "127.0.0.1:2", "[::1]:3", "[::1]:4"}) {
    EXPECT_TRUE(limits.Enter(peer).ok()) << peer;
  }
  limits.Leave("127.0.0.1:1");
  EXPECT_EQ(limits.open(), 3u);
}

TEST(ConnectionLimitsTest, SoManyComeInASecond) {
  constexpr int64_t kStart = 5 * kSecond;
  ConnectionLimits limits({.open_max = 99, .of_host_max = 99, .per_second = 4});
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(limits.RestNanos(kStart), 0) << i;
    limits.Come();
  }
  EXPECT_EQ(limits.RestNanos(kStart), kSecond / 4);
  EXPECT_EQ(limits.RestNanos(kStart + kSecond / 8), kSecond / 8);
  ASSERT_EQ(limits.RestNanos(kStart + kSecond / 4), 0);
  limits.Come();
  EXPECT_EQ(limits.RestNanos(kStart + kSecond / 4), kSecond / 4);
  // A quiet hour lets in no more at once than a quiet second.
  constexpr int64_t kLater = kStart + 3'600 * kSecond;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(limits.RestNanos(kLater), 0) << i;
    limits.Come();
  }
  EXPECT_GT(limits.RestNanos(kLater), 0);
}

}  // namespace
}  // namespace alpheus::rpc
