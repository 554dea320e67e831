// SPDX-License-Identifier: Apache-2.0
// How connections end: crashes, failing media, time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "recovery/server/replica_server.h"
#include "tests/recovery/server/replica_server_fixture.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// --- Ends --------------------------------------------------------------------

// Phases 0 to 2 as At, 3: a session. The next primary finds the replica ready.
TEST(ReplicaServerTest, PrimaryThatCrashesLeavesTheReplicaReady) {
  for (int phase = 0; phase <= 3; ++phase) {
    for (const bool is_crash : {false, true}) {
      ServedWorld world({});
      PrimaryLog log(kLogA);
      log.OpenEpoch(Epoch(5));
      Peer& peer = world.Connected(1, 1);
      if (phase == 3) {
        world.GetInstalled(peer, log);
        Replicate(world, peer, log, "a");
      } else {
        if (phase >= 1) world.GetPromise(peer, Epoch(5));
        if (phase >= 2) world.GetRepairOpened(peer, Epoch(5));
      }
      if (is_crash) {
        world.Crash(1);
      } else {
        ASSERT_TRUE(peer.Close().ok());
      }
      world.Run(kMillisecond);
      if (!is_crash) {
        EXPECT_EQ(world.server().connection_count(), 0u);
        EXPECT_THAT(world.reports(), IsEmpty());
        EXPECT_EQ(world.server().counters().gone, phase == 0 ? 0u : 1u);
        // The session's end persisted its watermark.
        if (phase == 3) {
          EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(1));
        }
      }
      PrimaryLog next(kLogA);
      if (phase == 3) {
        next.OpenEpoch(Epoch(5));
        next.Append("a");
      }
      next.OpenEpoch(Epoch(6));
      Peer& second = world.Connected(2, 1);
      world.GetInstalled(second, next);
      Replicate(world, second, next, "b");
      EXPECT_EQ(world.server().counters().fenced,
                is_crash && phase > 0 ? 1u : 0u);
    }
  }
}

TEST(ReplicaServerTest, KeysOfAConnectionThatEndedAreVoid) {
  ServedWorld world({});
  Peer& gone = world.Connected(1, 1);
  const recovery::Promised promised = world.GetPromise(gone, Epoch(5));
  const recovery::RepairOpened opened = world.GetRepairOpened(gone, Epoch(5));
  ASSERT_TRUE(gone.Close().ok());
  world.Run(kMillisecond);
  for (const fabric::RegionKey key : {promised.ring_key, opened.ring_key}) {
    Peer& again = world.Connected(1, 1);
    std::vector<std::byte> bytes(64);
    ASSERT_TRUE(again.Read(key, 0, bytes).ok());
    world.Run(kMillisecond);
    EXPECT_THAT(again.done,
                ElementsAre(fabric::CompletionStatus::kRemoteAccess));
  }
}

TEST(ReplicaServerTest, SessionThatAnnouncesNonsenseEndsAndIsReportedOnce) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  Peer& peer = SessionWithOneRecord(world, log);
  ASSERT_TRUE(peer.Announce(9999).ok());
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  ASSERT_THAT(world.reports(), SizeIs(1));
  EXPECT_THAT(world.reports()[0], HasSubstr("announced"));
  EXPECT_EQ(world.server().counters().failed, 1u);
  EXPECT_EQ(world.server().connection_count(), 0u);
  world.GetPromise(world.Connected(2, 1), Epoch(6));
}

TEST(ReplicaServerTest, SessionWhoseMediumFailsEndsAndIsReported) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  world.pmem(kLogA).FailFence(1);
  log.Append("a");
  ASSERT_TRUE(peer.session->Advance(log.End()).ok());
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  EXPECT_EQ(peer.session->acked_lsn(), Lsn(0));
  EXPECT_THAT(world.reports(), SizeIs(1));
}

// The watermark's own fence fails: that is said, the session's end is not.
TEST(ReplicaServerTest, WatermarkThatCannotBePersistedIsReported) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  Peer& peer = SessionWithOneRecord(world, log);
  world.pmem(kLogA).FailFence(1);
  ASSERT_TRUE(peer.Close().ok());
  world.Run(kMillisecond);
  EXPECT_THAT(world.reports(), SizeIs(1));
}

TEST(ReplicaServerTest, MediumThatFailsGivesNoPromise) {
  ServedWorld world({});
  world.pmem(kLogA).FailFence(1);
  Peer& peer = world.Connected(1, 1);
  EXPECT_EQ(
      FailedWith(world.Ask(peer, recovery::Prepare{{Epoch(5), peer.self()}})),
      absl::StatusCode::kUnavailable);
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  EXPECT_EQ(world.server().counters().promised, 0u);
}

// The promise stands, but there is no report.
TEST(ReplicaServerTest, MediumThatFailsInTheScanGivesNoReport) {
  int without_report = 0;
  for (uint64_t fence = 1; fence <= 8; ++fence) {
    ServedWorld world({});
    world.pmem(kLogA).FailFence(fence);
    Peer& peer = world.Connected(1, 1);
    const auto reply =
        world.Ask(peer, recovery::Prepare{{Epoch(5), peer.self()}});
    if (FailedWith(reply) == absl::StatusCode::kOk) continue;
    const Superline superline = world.State(kLogA).superline;
    if (superline.promised_epoch == Epoch(5)) ++without_report;
  }
  EXPECT_GT(without_report, 0);
}

// --- Time --------------------------------------------------------------------

TEST(ReplicaServerTest, ConnectionThatAsksForNothingIsClosedInTheEnd) {
  ServedWorld::Options options;
  options.server.silence_ns_max = 5 * kMillisecond;
  ServedWorld world(options);
  EXPECT_FALSE(world.server().NextPoll().is_set());
  Peer& silent = world.Connected(1, 1);
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  EXPECT_TRUE(world.server().NextPoll().is_set());
  EXPECT_FALSE(
      world.server().NextPoll().HasPassed(world.network().clock().NowNanos()));
  world.Run(10 * kMillisecond);
  EXPECT_TRUE(silent.ended);
  EXPECT_FALSE(holder.ended);
  ASSERT_THAT(world.reports(), SizeIs(1));
  EXPECT_THAT(world.reports()[0], HasSubstr("asked for nothing"));
  EXPECT_FALSE(world.server().NextPoll().is_set());
}

TEST(ReplicaServerTest, WatermarkIsPersistedOncePerIdlePeriod) {
  ServedWorld::Options options;
  options.server.idle_ns = 2 * kMillisecond;
  ServedWorld world(options);
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  const WatchedLog& served = world.log(kLogA);
  world.Run(10 * kMillisecond);
  EXPECT_EQ(served.watermarks, 0);
  for (int i = 1; i <= 3; ++i) {
    Replicate(world, peer, log, "x");
    EXPECT_EQ(served.watermarks, i - 1);
    EXPECT_TRUE(world.server().NextPoll().is_set());
    world.Run(10 * kMillisecond);
    EXPECT_EQ(served.watermarks, i);
    EXPECT_FALSE(world.server().NextPoll().is_set());
    EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(static_cast<uint64_t>(i)));
  }
}

}  // namespace
}  // namespace alpheus::testing
