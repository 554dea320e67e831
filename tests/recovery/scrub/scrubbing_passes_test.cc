// SPDX-License-Identifier: Apache-2.0
// When a node scrubs, and what it leaves alone: what is not persisted, cleaned,
// or somebody else's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <variant>
#include <vector>

#include "tests/recovery/scrub/scrubbing_fixture.h"

namespace alpheus::testing {

using recovery::Scrub;
using recovery::Scrubbed;

namespace {

constexpr int64_t kSecond = 1'000 * kMillisecond;

// Goal: SCR1. A record that the session has written and not announced is not
// looked at, though its header holds.
TEST_F(ScrubbingTest, RecordThatIsNotPersistedIsNotLookedAt) {
  WriteWithPeer(4);
  log_->Append(LongText(5));
  log_->Append(LongText(6));
  peers_.clear();
  const std::byte* const there = log_->ring().At(OffsetOf(Lsn(6)));
  std::memcpy(Here(Lsn(6)), there, RecordBytes(LongText(1).size()));
  std::memcpy(Here(Lsn(5)), log_->ring().At(OffsetOf(Lsn(5))), 32);
  const std::vector<std::byte> before = RingNow();
  EXPECT_EQ(ScrubNow().pass.damaged, 0u);
  EXPECT_EQ(RingNow(), before);
}

// Goal: SCR1. While the peer is asked, the head passes the record.
TEST_F(ScrubbingTest, RecordThatTheHeadPassesIsNoDamage) {
  WriteWithPeer(6);
  Flip(Lsn(2), 0);
  Flip(Lsn(3), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  EXPECT_TRUE(AskFor(Scrub{}).is_running);
  LogPosition head = log_->installation().end;
  RecordCursor cursor(log_->ring(), log_->installation().table, head,
                      head.offset + kRingBytes);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(cursor.Next(), RecordCursor::Step::kRecord);
  }
  ASSERT_TRUE(session_->session
                  ->AdvanceBounds({cursor.position(),
                                   cursor.position().offset + kRingBytes})
                  .ok());
  world_->Run(kMillisecond);
  EXPECT_EQ(world_->State(kLogA).head(), cursor.position());
  are_peers_awake_ = true;
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.total.damaged, 0u);
  EXPECT_EQ(scrubbed.total.unrepairable, 0u);
}

// Goal: SCR2. Somebody holds the promise and has not installed; then he has.
TEST_F(ScrubbingTest, PassWaitsForWhoOpensAnEpoch) {
  WriteWithPeer(6);
  Flip(Lsn(2), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  log_->OpenEpoch(Epoch(7));
  Peer& next = world_->Connected(1, 2);
  world_->GetPromise(next, Epoch(7));
  are_peers_awake_ = true;
  world_->Run(10 * kMillisecond);
  EXPECT_EQ(world_->log(kLogA).restored, 0);
  EXPECT_TRUE(AskFor(Scrub{}).is_running);
  world_->GetRepairOpened(next, Epoch(7));
  world_->Run(10 * kMillisecond);
  EXPECT_EQ(world_->log(kLogA).restored, 0);
  ASSERT_TRUE(next.Close().ok());
  world_->Run(20 * kMillisecond);
  EXPECT_EQ(world_->log(kLogA).restored, 1);
  const Scrubbed scrubbed = AskFor(Scrub{});
  EXPECT_FALSE(scrubbed.is_running);
  EXPECT_EQ(scrubbed.pass.repaired, 1u);
  EXPECT_EQ(scrubbed.passes, 1u);
}

// Another epoch is opened and installed in the middle of a pass.
TEST_F(ScrubbingTest, PassBeginsAgainInANewEpoch) {
  WriteWithPeer(6);
  Flip(Lsn(6), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).total.records, 5u);
  log_->OpenEpoch(Epoch(7));
  world_->GetInstalled(world_->Connected(1, 2), *log_);
  are_peers_awake_ = true;
  world_->Run(10 * kMillisecond);
  const Scrubbed scrubbed = AskFor(Scrub{});
  EXPECT_EQ(scrubbed.passes, 1u);
  EXPECT_EQ(scrubbed.pass.records, 6u);
  // GetInstalled wrote the records again.
  EXPECT_EQ(scrubbed.total.damaged, 0u);
  EXPECT_EQ(scrubbed.total.records, 5u + 6u);
}

// A node closes a replica and opens it again between two turns.
TEST_F(ScrubbingTest, ReplicaThatIsClosedIsNotLookedAtAnyMore) {
  WriteWithPeer(6);
  Flip(Lsn(6), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).total.records, 5u);
  asker_ = nullptr;
  log_->Append(LongText(7));
  log_->Append(LongText(8));  // its watermark names the one before
  auto again = std::make_unique<model::ModelPersistence>(log_->Image());
  ASSERT_TRUE(world_->server().RemoveLog(kLogA).ok());
  ASSERT_TRUE(world_->server()
                  .AddLog(std::make_unique<WatchedLog>(*again, nullptr))
                  .ok());
  world_->Run(kMillisecond);
  const Scrubbed scrubbed = AskFor(Scrub{});
  EXPECT_EQ(scrubbed.passes, 1u);
  EXPECT_EQ(scrubbed.pass,
            (recovery::ScrubCounts{7, scrubbed.pass.bytes, 0, 0, 0}));
  ASSERT_TRUE(world_->server().RemoveLog(kLogA).ok());
}

// Goal: SCR3.
TEST_F(ScrubbingTest, ReplicaThatRepairsHoldsNothingToBeScrubbed) {
  WriteWithPeer(6);
  Peer& next = world_->Connected(1, 2);
  world_->GetPromise(next, Epoch(7));
  ASSERT_TRUE(
      world_->Ask(next, recovery::OpenForRepair{Epoch(7), true}).has_value());
  ASSERT_TRUE(next.Close().ok());
  Flip(Lsn(2), 80);
  world_->Run(kMillisecond);
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_TRUE(scrubbed.is_empty);
  EXPECT_EQ(scrubbed.total, recovery::ScrubCounts());
}

TEST_F(ScrubbingTest, NewReplicaIsEmpty) {
  Start();
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_TRUE(scrubbed.is_empty);
  EXPECT_EQ(scrubbed.passes, 1u);
}

TEST_F(ScrubbingTest, PassesComeByTheClockAndKeepTheirRate) {
  recovery::ScrubbingOptions scrubbing;
  scrubbing.interval_ns = 100 * kMillisecond;
  scrubbing.slice_bytes = 512;
  scrubbing.bytes_per_second = 51'200;  // ten milliseconds a slice
  Start(WithPeers(scrubbing));
  ASSERT_NO_FATAL_FAILURE(WriteRecords(16));  // some six slices
  AddPeer(kPeerHost, log_->Image());
  Flip(Lsn(16), 80);
  world_->Run(80 * kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).total.records, 0u);
  world_->Run(50 * kMillisecond);
  const Scrubbed running = AskFor(Scrub{});
  EXPECT_FALSE(running.is_running);  // nobody asked
  EXPECT_GT(running.pass.records, 0u);
  EXPECT_LT(running.pass.records, 16u);
  EXPECT_EQ(running.passes, 0u);
  world_->Run(60 * kMillisecond);
  const Scrubbed done = AskFor(Scrub{});
  EXPECT_EQ(done.passes, 1u);
  EXPECT_EQ(done.pass.repaired, 1u);
  // The next one ends about an interval and a pass later.
  world_->Run(100 * kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).passes, 1u);
  world_->Run(100 * kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).passes, 2u);
}

TEST_F(ScrubbingTest, NodeSleepsUntilThereIsSomethingToScrub) {
  recovery::ScrubbingOptions scrubbing;
  scrubbing.interval_ns = 10 * kSecond;
  scrubbing.bytes_per_second = 1 << 20;
  Start(WithPeers(scrubbing));
  world_->Run(kMillisecond);
  EXPECT_LE(world_->server().NextPoll().at_nanos(), 10 * kSecond + kSecond);
  Start();
  world_->Run(kMillisecond);
  EXPECT_FALSE(world_->server().NextPoll().is_set());
}

TEST_F(ScrubbingTest, WhatIsAskedForGoesBeforeWhatTheClockBegan) {
  recovery::ScrubbingOptions scrubbing;
  scrubbing.interval_ns = 100 * kMillisecond;
  scrubbing.slice_bytes = 512;
  scrubbing.bytes_per_second = 1;
  Start(WithPeers(scrubbing));
  ASSERT_NO_FATAL_FAILURE(WriteRecords(16));
  world_->Run(100 * kMillisecond);
  const Scrubbed slow = AskFor(Scrub{});
  EXPECT_EQ(slow.passes, 0u);
  EXPECT_GT(slow.pass.records, 0u);
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.passes, 1u);
  EXPECT_EQ(scrubbed.pass.records, 16u);
}

// The log was removed on all nodes, and made again by the same name.
TEST_F(ScrubbingTest, CountsOfAReplicaEndWithIt) {
  Start();
  ASSERT_NO_FATAL_FAILURE(WriteRecords(6));
  Flip(Lsn(6), 80);
  EXPECT_EQ(ScrubNow().total.unrepairable, 1u);
  EXPECT_EQ(AskFor(Scrub{}).unrepairable.size(), 1u);
  asker_ = nullptr;
  auto again = std::make_unique<model::ModelPersistence>(log_->Image());
  ASSERT_TRUE(world_->server().RemoveLog(kLogA).ok());
  ASSERT_TRUE(world_->server()
                  .AddLog(std::make_unique<WatchedLog>(*again, nullptr))
                  .ok());
  const Scrubbed scrubbed = AskFor(Scrub{});
  EXPECT_EQ(scrubbed.passes, 0u);
  EXPECT_EQ(scrubbed.total, recovery::ScrubCounts());
  EXPECT_TRUE(scrubbed.unrepairable.empty());
  ASSERT_TRUE(world_->server().RemoveLog(kLogA).ok());
}

TEST_F(ScrubbingTest, CountsAreShownToWhoeverLooks) {
  WriteWithPeer(4);
  Flip(Lsn(2), 80);
  const Scrubbed scrubbed = ScrubNow();
  const auto viewed = world_->Ask(*asker_, recovery::View{});
  ASSERT_TRUE(viewed && std::holds_alternative<recovery::Viewed>(*viewed));
  EXPECT_EQ(std::get<recovery::Viewed>(*viewed).scrubbed, scrubbed.total);
}

}  // namespace
}  // namespace alpheus::testing
