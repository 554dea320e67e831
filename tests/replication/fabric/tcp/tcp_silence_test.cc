// SPDX-License-Identifier: Apache-2.0
// LVT2 (liveness_timers.h): the time in which nobody looked is no silence, and
// whoever is gone is noticed all the same.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/replication/fabric/tcp/tcp_fabric_fixture.h"

namespace alpheus::testing {
namespace {

class TcpSilenceTest : public TcpFabricTest {
 protected:
  int64_t retry_ns() const { return world_.options().limits.retry_ns; }
  int64_t receiver_wait_ns() const { return world_.options().receiver_wait_ns; }
  void Forward(int64_t nanos) { world_.clock().Forward(nanos); }

  // Long enough after the last time for timers to have their turn.
  void Look(int host) {
    Forward(retry_ns() / 16);
    Poll(host);
  }
  // It has left when this returns, and host 1 did not look.
  void PostWrite() {
    ASSERT_TRUE(
        fabric(0)
            .PostWrite(at_[0], fabric::WorkId(1), Local(0, 0, 64), At(0))
            .ok());
    Poll(0);
  }
  // Host 1 has no receive for a send of host 0.
  void Park() {
    memory_[0][0] = 7;
    PostWrite();
    ASSERT_TRUE(
        fabric(0).PostSend(at_[0], fabric::WorkId(2), Local(0, 0, 20)).ok());
    Poll(0);
    // The answer to host 1's read comes behind the send.
    ASSERT_TRUE(fabric(1)
                    .PostRead(at_[1], fabric::WorkId(9), Local(1, 1024, 8),
                              {key_[0], 0})
                    .ok());
    ASSERT_TRUE(AwaitCompletions(1, 1));
    completions_[1].clear();
    EXPECT_EQ(memory_[1][0], 7U);
  }
  // Looks `step_ns` apart until host 0 takes host 1 for gone.
  int LooksUntilGone(int64_t step_ns) {
    Connect();
    world_.Cut(0, 1);
    Forward(10 * retry_ns());  // idle: does not count for what is asked then
    PostWrite();
    EXPECT_TRUE(completions_[0].empty());
    int looks = 0;
    while (completions_[0].empty() && looks < 100) {
      Forward(step_ns);
      Poll(0);
      ++looks;
    }
    EXPECT_EQ(completions_[0].size(), 1U);
    EXPECT_EQ(completions_[0][0].status, fabric::CompletionStatus::kPeerGone);
    return looks;
  }
  // Whether it would sleep now, rather than have timers looked at.
  bool Sleeps(int host) {
    const uint64_t before = fabric(host).counters().wait_calls;
    fabric(host).WaitForActivity(Deadline::AtNanos(world_.NowNanos() + 1000));
    return fabric(host).counters().wait_calls != before;
  }
};

// Both stood still, and the one that asked goes on first.
TEST_F(TcpSilenceTest, PauseWithARequestInFlightIsNobodysSilence) {
  Connect();
  PostWrite();
  Forward(10 * retry_ns());
  Poll(0);
  EXPECT_TRUE(events_[0].empty());
  EXPECT_TRUE(completions_[0].empty());
  ASSERT_TRUE(AwaitCompletions(0, 1));
  EXPECT_EQ(completions_[0][0].status, fabric::CompletionStatus::kOk);
  ExpectWorks();
}

TEST_F(TcpSilenceTest, PauseWhileASendWaitsIsNotTheReceivers) {
  Connect();
  Park();
  Forward(10 * retry_ns());
  Poll(1);
  EXPECT_TRUE(events_[1].empty());
  ASSERT_TRUE(fabric(1)
                  .PostReceive(at_[1], fabric::WorkId(10), Local(1, 2048, 64))
                  .ok());
  ASSERT_TRUE(AwaitCompletions(0, 2));
  EXPECT_EQ(completions_[0][1].status, fabric::CompletionStatus::kOk);
  ExpectWorks();
}

TEST_F(TcpSilenceTest, PeerThatIsGoneIsNoticedInFourLooksFarApart) {
  EXPECT_EQ(LooksUntilGone(10 * retry_ns()), 4);
}

TEST_F(TcpSilenceTest, PeerThatIsGoneIsNoticedInTimeByWhoLooksOften) {
  EXPECT_EQ(LooksUntilGone(retry_ns() / 8), 8);
}

// A sleeper that wakes a little late looks so.
TEST_F(TcpSilenceTest, PeerThatIsGoneIsNoticedInTimeByWhoLooksFourTimes) {
  EXPECT_EQ(LooksUntilGone(retry_ns() / 4 + 1'000'000), 4);
}

TEST_F(TcpSilenceTest, SleeperLooksFourTimesWhileItAsks) {
  Connect();
  Look(0);
  PostWrite();
  Forward(retry_ns() / 4 - 1);
  EXPECT_TRUE(Sleeps(0));
  Forward(1);
  EXPECT_FALSE(Sleeps(0));
  Poll(0);
  EXPECT_TRUE(Sleeps(0));
}

TEST_F(TcpSilenceTest, SleeperLooksFourTimesWhileASendWaits) {
  Connect();
  Park();
  Look(1);
  Forward(receiver_wait_ns() / 4 - 1);
  EXPECT_TRUE(Sleeps(1));
  Forward(1);
  EXPECT_FALSE(Sleeps(1));
  Poll(1);
  EXPECT_TRUE(Sleeps(1));
}

}  // namespace
}  // namespace alpheus::testing
