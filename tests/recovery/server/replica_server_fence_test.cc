// SPDX-License-Identifier: Apache-2.0
// Fences: what an old primary may still do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <variant>
#include <vector>

#include "log/base/random.h"
#include "recovery/server/replica_server.h"
#include "tests/recovery/server/replica_server_fixture.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(ReplicaServerTest, RingIsOnlyReadableUntilRepairIsOpened) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  const recovery::Promised promised = world.GetPromise(peer, Epoch(5));
  std::vector<std::byte> bytes(64, std::byte{1});
  ASSERT_TRUE(peer.Write(promised.ring_key, 0, bytes).ok());
  world.Run(kMillisecond);
  EXPECT_THAT(peer.done, ElementsAre(fabric::CompletionStatus::kRemoteAccess));
  EXPECT_EQ(world.RingBytes(kLogA)[0], std::byte{0});
}

// P-R2: the connection was closed, and still its key must not open the ring on
// another one.
TEST(ReplicaServerTest, KeyOfAFencedSessionOpensNothing) {
  ServedWorld world({});
  Peer& old = world.Connected(1, 1);
  world.GetPromise(old, Epoch(5));
  const recovery::RepairOpened opened = world.GetRepairOpened(old, Epoch(5));
  Peer& holder = world.Connected(2, 1);
  world.GetPromise(holder, Epoch(6));
  Peer& again = world.Connected(1, 1);
  std::vector<std::byte> bytes(64, std::byte{1});
  ASSERT_TRUE(again.Write(opened.ring_key, 0, bytes).ok());
  world.Run(kMillisecond);
  EXPECT_THAT(again.done, ElementsAre(fabric::CompletionStatus::kRemoteAccess));
  EXPECT_EQ(world.RingBytes(kLogA)[0], std::byte{0});
}

// P-H6, P-R2, P-INV-6: an old primary is in the middle of writing, some of it
// late on broken connections, when the next one gets the promise. The ring
// stays as the scan saw it.
TEST(ReplicaServerTest, NoByteOfTheRingChangesOnceItIsLookedAt) {
  int cut_off = 0;
  int landed = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    ServedWorld::Options options = Seeded(seed);
    options.network.packet_bytes = 64;
    options.scan_ns = 30'000;
    ServedWorld world(options);
    Peer& old = world.Connected(1, 1);
    world.GetPromise(old, Epoch(5));
    const recovery::RepairOpened opened = world.GetRepairOpened(old, Epoch(5));
    Peer& next = world.Connected(2, 1);
    next.Send(recovery::Prepare{{Epoch(6), next.self()}});
    world.Run(static_cast<int64_t>(random.Below(4'000)));
    std::vector<std::byte> bytes(kRingBytes, std::byte{0x5a});
    for (uint64_t at = 0; at < kRingBytes; at += 2048) {
      // The old connection may be gone already.
      old.Write(opened.ring_key, at, std::span(bytes).subspan(at, 2048))
          .IgnoreError();
    }
    if (random.Below(4) == 0) {
      world.network().Run(static_cast<int64_t>(random.Below(3'000)));
      old.Close().IgnoreError();
    }
    while (next.replies.empty()) world.Run(1'000);
    world.Run(kMillisecond);
    const std::vector<std::byte>& seen = world.log(kLogA).seen;
    ASSERT_TRUE(std::ranges::equal(seen, world.RingBytes(kLogA)))
        << "seed " << seed;
    const auto count = std::ranges::count(seen, std::byte{0x5a});
    if (count > 0) ++landed;
    if (count > 0 && static_cast<uint64_t>(count) < kRingBytes) ++cut_off;
  }
  // Otherwise nothing was tried.
  EXPECT_GT(landed, 20);
  EXPECT_GT(cut_off, 10);
}

// P-A4.2: same process, same epoch.
TEST(ReplicaServerTest, PromiseOfTheSameProcessEndsItsEarlierSession) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  Peer& first = SessionWithOneRecord(world, log);
  EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(0));
  Peer& again = world.Connected(1, 1);
  world.GetPromise(again, Epoch(5));
  world.Run(kMillisecond);
  EXPECT_TRUE(first.ended);
  EXPECT_EQ(world.server().counters().fenced, 1u);
  // The session that ended left its watermark.
  EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(1));
  EXPECT_EQ(world.server().connection_count(), 1u);
}

// Goal: PCN4. The next promise comes right behind the Install.
TEST(ReplicaServerTest, FencedPrimaryIsToldWhileItsInstallIsAnswered) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& old = world.Connected(1, 1);
  world.GetPromise(old, Epoch(5));
  world.GetRepairOpened(old, Epoch(5));
  Peer& next = world.Connected(2, 1);
  const uint64_t sent_before = world.adapter().sends();
  old.Send(recovery::Install{log.installation(), kTheSession, /*credits=*/4});
  const auto run_until = [&](const uint64_t& counter) {
    for (int i = 0; i < 100'000 && counter == 0; ++i) {
      world.PollNode();
      world.network().Run(100);
    }
    ASSERT_EQ(counter, 1U);
  };
  run_until(world.server().counters().installed);
  next.Send(recovery::Prepare{{Epoch(6), next.self()}});
  run_until(world.server().counters().fenced);
  // Installed and, before that was sent, the reason; Promised to the next one.
  EXPECT_EQ(world.adapter().sends() - sent_before, 3U);
}

TEST(ReplicaServerTest, OfTwoThatRaceTheHigherOneStays) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    ServedWorld world(Seeded(seed));
    Peer& low = world.Connected(1, 1);
    Peer& high = world.Connected(2, 1);
    low.Send(recovery::Prepare{{Epoch(5), low.self()}});
    high.Send(recovery::Prepare{{Epoch(6), high.self()}});
    world.Run(kMillisecond);
    ASSERT_THAT(high.replies, SizeIs(1)) << seed;
    EXPECT_TRUE(
        std::holds_alternative<recovery::Promised>(high.replies.front()));
    if (!low.ended) {
      ASSERT_THAT(low.replies, SizeIs(1)) << seed;
      EXPECT_EQ(low.replies.front(),
                recovery::Message(recovery::Refused{{Epoch(6), high.self()}}));
    }
    high.replies.clear();
    world.GetRepairOpened(high, Epoch(6));
  }
}

// OSV3: it decided to open the log before it could know of the first one.
TEST(ReplicaServerTest, LateOpenerDeposesNobodyThatHasGoneFurther) {
  ServedWorld world({});
  Peer& first = world.Connected(1, 1);
  Peer& late = world.Connected(2, 1);
  world.GetPromise(first, Epoch(5));
  world.GetRepairOpened(first, Epoch(5));
  const recovery::Message ask =
      recovery::Prepare{{Epoch(6), late.self()}, 1, Epoch(4)};
  const recovery::Message refused = recovery::Refused{{Epoch(5), first.self()}};
  EXPECT_EQ(world.Ask(late, ask), refused);
  EXPECT_FALSE(first.ended);
  EXPECT_EQ(world.State(kLogA).superline.promised_epoch, Epoch(5));
  // The first one may be a primary whose connection broke.
  ASSERT_TRUE(first.Close().ok());
  world.Run(kMillisecond);
  EXPECT_EQ(world.Ask(late, ask), refused);
  EXPECT_EQ(world.server().counters().refused, 2u);
  // Once it knows of the first one, it may open the log all the same.
  const auto reply =
      world.Ask(late, recovery::Prepare{{Epoch(6), late.self()}, 1, Epoch(5)});
  EXPECT_TRUE(reply && std::holds_alternative<recovery::Promised>(*reply));
}

// OSV3: nothing is installed, so nobody loses more than a scan.
TEST(ReplicaServerTest, OfTwoThatReadReportsTheHigherBallotDecides) {
  ServedWorld world({});
  Peer& first = world.Connected(1, 1);
  Peer& second = world.Connected(2, 1);
  world.GetPromise(first, Epoch(5));
  const auto reply = world.Ask(
      second, recovery::Prepare{{Epoch(6), second.self()}, 1, Epoch(4)});
  EXPECT_TRUE(reply && std::holds_alternative<recovery::Promised>(*reply));
  EXPECT_TRUE(first.ended);
}

// OSV3: an opener whose connection broke asks for the same promise again.
TEST(ReplicaServerTest, OwnPromiseOfALateOpenerIsGivenAgain) {
  ServedWorld world({});
  Peer& opener = world.Connected(1, 1);
  world.GetPromise(opener, Epoch(5));
  world.GetRepairOpened(opener, Epoch(5));
  const auto reply = world.Ask(
      opener, recovery::Prepare{{Epoch(5), opener.self()}, 1, Epoch(4)});
  EXPECT_TRUE(reply && std::holds_alternative<recovery::Promised>(*reply));
}

TEST(ReplicaServerTest, LogsOfOneNodeDoNotDisturbEachOther) {
  ServedWorld world(WithLogB());
  PrimaryLog log_a(kLogA);
  PrimaryLog log_b(kLogB);
  log_a.OpenEpoch(Epoch(5));
  log_b.OpenEpoch(Epoch(3));
  Peer& a = world.Connected(1, 1, kLogA);
  Peer& b = world.Connected(1, 1, kLogB);
  world.GetInstalled(a, log_a);
  world.GetInstalled(b, log_b);
  Replicate(world, a, log_a, "a");
  Replicate(world, b, log_b, "b");
  world.GetPromise(world.Connected(2, 1, kLogA), Epoch(9));
  EXPECT_TRUE(a.ended);
  EXPECT_FALSE(b.ended);
  Replicate(world, b, log_b, "c");
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a"));
  EXPECT_THAT(PayloadsAfterACut(world, kLogB), ElementsAre("b", "c"));
}

}  // namespace
}  // namespace alpheus::testing
