// SPDX-License-Identifier: Apache-2.0
// A node's server while it scans and installs, and errors of its adapter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/recovery/server/served_world.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMillisecond = 1'000'000;

ServedWorld::Options InSlices() {
  ServedWorld::Options options;
  options.serve_b = true;
  options.is_written = true;
  options.server.slice_bytes = kLineBytes;
  return options;
}

// Runs until so many more slices of a log were done.
void RunSlices(ServedWorld& world, Uuid log, int slices) {
  const int until = world.log(log).slices + slices;
  for (int i = 0; i < 1000 && world.log(log).slices < until; ++i) {
    world.Run(100);
  }
  ASSERT_GE(world.log(log).slices, until);
}

void Ask(Peer& peer, Epoch epoch) {
  peer.Send(recovery::Prepare{{epoch, peer.self()}});
}

// Expects that no scan or installation is in progress.
void ExpectNothingInProgress(recovery::ServedLog& log) {
  const absl::Status status = log.Continue(kLineBytes).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST(ReplicaServerWorkTest, SessionOfAnotherLogGoesOnDuringAScan) {
  ServedWorld world(InSlices());
  PrimaryLog log(kLogB);
  log.OpenEpoch(Epoch(5));
  Peer& session = world.Connected(1, 1, kLogB);
  world.GetInstalled(session, log);
  Peer& asks = world.Connected(2, 1, kLogA);
  Ask(asks, Epoch(5));
  RunSlices(world, kLogA, 1);
  const Lsn lsn = log.Append("in between");
  ASSERT_TRUE(session.session->Advance(log.End()).ok());
  while (session.session->acked_lsn() < lsn) {
    ASSERT_THAT(asks.replies, IsEmpty());
    ASSERT_TRUE(session.session_status.ok()) << session.session_status;
    world.Run(100);
  }
  world.Run(kMillisecond);
  ASSERT_THAT(asks.replies, SizeIs(1));
  EXPECT_TRUE(std::holds_alternative<recovery::Promised>(asks.replies[0]));
  EXPECT_GT(world.log(kLogA).slices, static_cast<int>(kRingBytes / kLineBytes));
}

// RS1: memory runs out in the scan for a promise. All other connections of that
// log end too, so that no work goes on from a half-done state. The session of
// another log stays.
TEST(ReplicaServerWorkTest, MemoryThatRunsOutEndsTheWorkOfItsLog) {
  ServedWorld world(InSlices());
  PrimaryLog log(kLogB);
  log.OpenEpoch(Epoch(5));
  Peer& session = world.Connected(1, 1, kLogB);
  world.GetInstalled(session, log);
  Peer& reader = world.Connected(1, 2, kLogA);
  world.log(kLogA).starves = true;
  Peer& asks = world.Connected(2, 1, kLogA);
  Ask(asks, Epoch(5));
  world.Run(kMillisecond);
  EXPECT_TRUE(asks.ended);
  EXPECT_TRUE(reader.ended);
  EXPECT_FALSE(session.ended);
  EXPECT_THAT(world.server().StarvedLogs(), ElementsAre(kLogA));
  ASSERT_THAT(world.reports(), SizeIs(1));
  EXPECT_THAT(world.reports().front(), HasSubstr("memory ran out"));
  const Lsn lsn = log.Append("goes on");
  ASSERT_TRUE(session.session->Advance(log.End()).ok());
  world.Run(kMillisecond);
  EXPECT_EQ(session.session->acked_lsn(), lsn);
  // The node opens it again.
  ASSERT_TRUE(world.server().RemoveLog(kLogA).ok());
  EXPECT_THAT(world.server().StarvedLogs(), IsEmpty());
  auto reopened = std::make_unique<WatchedLog>(world.pmem(kLogA), nullptr);
  ASSERT_TRUE(world.server().AddLog(std::move(reopened)).ok());
  Peer& again = world.Connected(2, 2, kLogA);
  Ask(again, Epoch(6));
  world.Run(kMillisecond);
  ASSERT_THAT(again.replies, SizeIs(1));
  EXPECT_TRUE(std::holds_alternative<recovery::Promised>(again.replies[0]));
}

// In turn, both would be as late as the last one.
TEST(ReplicaServerWorkTest, ScansOfTwoLogsFollowEachOther) {
  ServedWorld world(InSlices());
  Peer& first = world.Connected(1, 1, kLogA);
  Peer& second = world.Connected(2, 1, kLogB);
  Ask(first, Epoch(5));
  RunSlices(world, kLogA, 1);
  Ask(second, Epoch(5));
  while (world.server().counters().promised == 0) {
    EXPECT_EQ(world.log(kLogB).slices, 0);
    world.Run(100);
  }
  world.Run(2 * kMillisecond);
  EXPECT_THAT(first.replies, SizeIs(1));
  EXPECT_THAT(second.replies, SizeIs(1));
}

TEST(ReplicaServerWorkTest, NodeWithWorkLeftDoesNotSleep) {
  ServedWorld world(InSlices());
  Peer& peer = world.Connected(1, 1);
  Ask(peer, Epoch(5));
  RunSlices(world, kLogA, 1);
  EXPECT_TRUE(
      world.server().NextPoll().HasPassed(world.network().clock().NowNanos()));
  world.Run(kMillisecond);
  ASSERT_THAT(peer.replies, SizeIs(1));
  EXPECT_FALSE(world.server().NextPoll().is_set());
}

// Bytes that were read since may be zeros, which do not show that a record is
// lost.
TEST(ReplicaServerWorkTest, MediumThatFailsInTheMiddleOfAScanEndsIt) {
  ServedWorld world(InSlices());
  Peer& peer = world.Connected(1, 1);
  Ask(peer, Epoch(5));
  RunSlices(world, kLogA, 3);
  world.pmem(kLogA).FailFence(1);
  EXPECT_FALSE(world.pmem(kLogA).Fence());
  world.Run(kMillisecond);
  ASSERT_THAT(peer.replies, SizeIs(1));
  ASSERT_TRUE(std::holds_alternative<recovery::Failed>(peer.replies[0]));
  EXPECT_TRUE(
      absl::IsUnavailable(std::get<recovery::Failed>(peer.replies[0]).status));
}

// OSV1: a higher ballot in the middle of a scan has its own scan; the lower one
// hears nothing but the end of its connection.
TEST(ReplicaServerWorkTest, HigherBallotInTheMiddleOfAScanWins) {
  for (int slices = 1; slices < 400; slices += 37) {
    ServedWorld world(InSlices());
    Peer& low = world.Connected(1, 1);
    Peer& high = world.Connected(2, 1);
    Ask(low, Epoch(5));
    RunSlices(world, kLogA, slices);
    world.GetPromise(high, Epoch(6));
    EXPECT_THAT(low.replies, IsEmpty());
    EXPECT_TRUE(low.ended);
    EXPECT_EQ(world.server().counters().promised, 1u);
    EXPECT_EQ(world.State(kLogA).superline.promised_epoch, Epoch(6));
  }
}

TEST(ReplicaServerWorkTest, HigherBallotInTheMiddleOfAnInstallationWins) {
  ServedWorld world(InSlices());
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(4));
  for (int i = 0; i < 120; ++i) log.Append("x");
  log.OpenEpoch(Epoch(5));
  Peer& low = world.Connected(1, 1);
  Peer& high = world.Connected(2, 1);
  world.GetPromise(low, Epoch(5));
  const recovery::RepairOpened opened = world.GetRepairOpened(low, Epoch(5));
  ASSERT_TRUE(
      low.Write(opened.ring_key, 0,
                {log.ring().data(), log.installation().end.offset.value})
          .ok());
  low.Send(recovery::Install{log.installation(), kTheSession, 4});
  RunSlices(world, kLogA, 3);
  world.GetPromise(high, Epoch(6));
  EXPECT_THAT(low.replies, IsEmpty());
  EXPECT_TRUE(low.ended);
  EXPECT_EQ(world.server().counters().installed, 0u);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(0));
}

TEST(ReplicaServerWorkTest, PrimaryThatGoesInTheMiddleLeavesTheReplicaReady) {
  ServedWorld world(InSlices());
  Peer& gone = world.Connected(1, 1);
  Ask(gone, Epoch(5));
  RunSlices(world, kLogA, 3);
  ASSERT_TRUE(gone.Close().ok());
  world.Run(kMillisecond);
  EXPECT_EQ(world.server().connection_count(), 0u);
  EXPECT_FALSE(world.server().NextPoll().is_set());
  ExpectNothingInProgress(world.log(kLogA));
  world.GetPromise(world.Connected(1, 2), Epoch(6));
}

TEST(ReplicaServerWorkTest, LogThatIsRemovedInTheMiddleIsLetGo) {
  ServedWorld world(InSlices());
  Peer& peer = world.Connected(1, 1);
  Ask(peer, Epoch(5));
  RunSlices(world, kLogA, 3);
  const auto log = world.server().RemoveLog(kLogA);
  ASSERT_TRUE(log.ok());
  ExpectNothingInProgress(**log);
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  EXPECT_THAT(peer.replies, IsEmpty());
}

TEST(ReplicaServerWorkTest, MediumThatFailsInASliceIsSaid) {
  ServedWorld world(InSlices());
  Peer& peer = world.Connected(1, 1);
  Ask(peer, Epoch(5));
  RunSlices(world, kLogA, 3);
  EXPECT_THAT(world.server().LogsWithFailedMedium(), IsEmpty());
  world.pmem(kLogA).FailFence(1);
  world.Run(kMillisecond);
  ASSERT_THAT(peer.replies, SizeIs(1));
  EXPECT_TRUE(std::holds_alternative<recovery::Failed>(peer.replies[0]));
  EXPECT_THAT(world.reports(), SizeIs(1));
  EXPECT_THAT(world.server().LogsWithFailedMedium(), ElementsAre(kLogA));
}

// --- The end of a primary ----------------------------------------------------

// It is nothing that an operator must look at.
TEST(ReplicaServerWorkTest, PrimaryThatEndsIsNoNews) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  ASSERT_TRUE(peer.Close().ok());
  world.Run(kMillisecond);
  EXPECT_EQ(world.server().connection_count(), 0u);
  EXPECT_THAT(world.reports(), IsEmpty());
  EXPECT_EQ(world.server().counters().gone, 1u);
  EXPECT_EQ(world.server().counters().failed, 0u);
}

// --- The adapter -------------------------------------------------------------

// From a connection to a session; false where it ends.
bool ReachesASession(ServedWorld& world, Peer& peer, PrimaryLog& log) {
  const Epoch epoch = log.installation().epoch;
  peer.Connect(world.address(), peer.HelloOf(kLogA));
  world.Run(kMillisecond);
  if (!peer.established || peer.ended) return false;
  for (const recovery::Message& message :
       {recovery::Message(recovery::Prepare{{epoch, peer.self()}}),
        recovery::Message(recovery::OpenForRepair{epoch, false}),
        recovery::Message(
            recovery::Install{log.installation(), kTheSession, 4})}) {
    const auto reply = world.Ask(peer, message);
    if (!reply || std::holds_alternative<recovery::Failed>(*reply)) {
      world.Run(kMillisecond);
      return false;
    }
  }
  return !peer.ended;
}

// If any of its calls fails, the connection of that call ends, and the peer
// hears so. No key stays, and the next primary gets its session.
TEST(ReplicaServerWorkTest, CallOfTheAdapterThatFailsCostsOneConnection) {
  int failures = 0;
  for (uint64_t call = 1;; ++call) {
    ServedWorld world({});
    PrimaryLog log(kLogA);
    log.OpenEpoch(Epoch(5));
    Peer& peer = world.NewPeer(1, 1);
    world.adapter().FailCall(call);
    const bool reached = ReachesASession(world, peer, log);
    if (!world.adapter().has_failed()) break;
    ++failures;
    EXPECT_FALSE(reached) << call;
    EXPECT_TRUE(peer.ended) << call;
    EXPECT_EQ(world.server().connection_count(), 0u) << call;
    EXPECT_EQ(
        world.server().counters().rejected + world.server().counters().failed,
        1u)
        << call;
    log.OpenEpoch(Epoch(6));
    EXPECT_TRUE(ReachesASession(world, world.NewPeer(2, 1), log)) << call;
  }
  // Register: slots, answer, ring twice. Receives: four of control, those of
  // the session. Accept. Three replies.
  EXPECT_GE(failures, 12);
}

}  // namespace
}  // namespace alpheus::testing
