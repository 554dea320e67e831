// SPDX-License-Identifier: Apache-2.0
// The way to a session, and who is refused on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "recovery/protocol/client_messages.h"
#include "recovery/protocol/state_report_wire.h"
#include "recovery/server/replica_server.h"
#include "tests/recovery/protocol/wire_samples.h"
#include "tests/recovery/server/replica_server_fixture.h"

namespace alpheus::testing {

using fabric::CompletionStatus;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- The way to a session ----------------------------------------------------

TEST(ReplicaServerTest, FirstEpochLeadsToASessionThatPersists) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  EXPECT_EQ(peer.server_hello,
            (recovery::ServerHello{kNode, 101, kRingBytes, Epoch(0), 1}));
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  world.GetInstalled(peer, log);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(5));
  for (const char* text : {"a", "b", "c"}) Replicate(world, peer, log, text);
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a", "b", "c"));
  EXPECT_EQ(world.server().counters().installed, 1u);
  EXPECT_THAT(world.reports(), IsEmpty());
}

TEST(ReplicaServerTest, RecordsComeByWritesBeforeTheInstall) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  log.Append("a");
  log.Append("b");
  log.OpenEpoch(Epoch(6));
  Peer& peer = world.Connected(1, 1);
  world.GetInstalled(peer, log);
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a", "b"));
  Replicate(world, peer, log, "c");
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a", "b", "c"));
}

TEST(ReplicaServerTest, ReportIsReadFromRegisteredMemory) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  SessionWithOneRecord(world, log);
  Peer& second = world.Connected(2, 1);
  EXPECT_EQ(second.server_hello->promised, Epoch(5));
  const recovery::Promised promised = world.GetPromise(second, Epoch(7));
  EXPECT_LE(promised.report_bytes, recovery::StateReportBytesMax(kRingBytes));
  std::vector<std::byte> bytes(promised.report_bytes);
  std::vector<std::byte> ring(kRingBytes);
  ASSERT_TRUE(second.Read(promised.report_key, 0, bytes).ok());
  ASSERT_TRUE(second.Read(promised.ring_key, 0, ring).ok());
  world.Run(kMillisecond);
  EXPECT_THAT(second.done,
              ElementsAre(CompletionStatus::kOk, CompletionStatus::kOk));
  const auto report = recovery::DecodeStateReport(kLogA, bytes);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->node, kNode);
  EXPECT_EQ(report->log_epoch, Epoch(5));
  EXPECT_EQ(report->promised_before, Epoch(5));
  EXPECT_THAT(report->runs, ElementsAre(recovery::VerdictRun{
                                Lsn(1), Lsn(2), recovery::Verdict::kHave, 0}));
  EXPECT_TRUE(std::ranges::equal(ring, world.RingBytes(kLogA)));
  // RepairOpened, the report is forgotten, and the old key of the ring is not.
  world.GetRepairOpened(second, Epoch(7));
  ASSERT_TRUE(second.Read(promised.ring_key, 0, ring).ok());
  world.Run(kMillisecond);
  EXPECT_EQ(second.done.back(), CompletionStatus::kOk);
  ASSERT_TRUE(second.Read(promised.report_key, 0, bytes).ok());
  world.Run(kMillisecond);
  EXPECT_EQ(second.done.back(), CompletionStatus::kRemoteAccess);
}

TEST(ReplicaServerTest, RepairingIsSetWhenAsked) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  world.GetPromise(peer, Epoch(5));
  const auto reply = world.Ask(peer, recovery::OpenForRepair{Epoch(5), true});
  ASSERT_TRUE(reply && std::holds_alternative<recovery::RepairOpened>(*reply));
  EXPECT_TRUE(world.State(kLogA).superline.repairing);
}

// P-A3.7: what a repair copies here, the next opening looks for.
TEST(ReplicaServerTest, CeilingIsRaisedBeforeARepairWrites) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  world.GetPromise(peer, Epoch(5));
  const RingOffset ceiling(4 * kLineBytes);
  ASSERT_LT(world.State(kLogA).superline.ceiling, ceiling);
  const auto reply =
      world.Ask(peer, recovery::OpenForRepair{Epoch(5), false, ceiling});
  ASSERT_TRUE(reply && std::holds_alternative<recovery::RepairOpened>(*reply));
  std::vector<std::byte> left = world.pmem(kLogA).CutKeepingNone();
  EXPECT_EQ(ReadRegionState(left, "cut")->superline.ceiling, ceiling);
}

// P-A4.2: the primary hears of the promise when no power cut can take it back.
TEST(ReplicaServerTest, PromiseIsOnMediaBeforeItIsGiven) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 9);
  peer.Send(recovery::Prepare{{Epoch(5), peer.self()}});
  while (world.server().counters().promised == 0) world.Run(1000);
  std::vector<std::byte> left = world.pmem(kLogA).CutKeepingNone();
  const Superline superline = ReadRegionState(left, "cut")->superline;
  EXPECT_EQ(quorum::PromiseOf(superline),
            (quorum::Promise{Epoch(5), peer.self()}));
}

// --- RejectCounters
// ----------------------------------------------------------------

TEST(ReplicaServerTest, RefusedOneHearsTheStandingPromiseAndMayAskAgain) {
  ServedWorld world({});
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  Peer& other = world.Connected(2, 1);
  const recovery::Message refused =
      recovery::Refused{{Epoch(5), holder.self()}};
  for (const uint64_t epoch : {4, 5}) {
    EXPECT_EQ(world.Ask(other, recovery::Prepare{{Epoch(epoch), other.self()}}),
              refused);
  }
  // The holder has lost nothing by it, nor by asking for less.
  EXPECT_EQ(world.Ask(holder, recovery::Prepare{{Epoch(4), holder.self()}}),
            refused);
  world.GetRepairOpened(holder, Epoch(5));
  world.GetPromise(other, Epoch(6));
  EXPECT_TRUE(holder.ended);
  EXPECT_EQ(world.server().counters().refused, 3u);
  EXPECT_EQ(world.server().counters().fenced, 1u);
}

TEST(ReplicaServerTest, OwnerMayAskForMoreAndItsKeysAreVoidThen) {
  ServedWorld world({});
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  const recovery::RepairOpened opened = world.GetRepairOpened(holder, Epoch(5));
  world.GetPromise(holder, Epoch(6));
  std::vector<std::byte> bytes(64, std::byte{1});
  ASSERT_TRUE(holder.Write(opened.ring_key, 0, bytes).ok());
  world.Run(kMillisecond);
  EXPECT_EQ(holder.done.back(), CompletionStatus::kRemoteAccess);
}

TEST(ReplicaServerTest, UnauthenticatedClientsAreRejectedAndHearWhy) {
  ServedWorld world({});
  std::string said;
  const auto rejected = [&world, &said](std::string_view bytes) {
    Peer& peer = world.NewPeer(1, 1);
    peer.ConnectSaying(world.address(), bytes);
    world.Run(100'000);
    EXPECT_TRUE(peer.ended);
    said = peer.rejection_bytes;
    return peer.rejection;
  };
  const recovery::Hello good{kCluster, kLogA, {NodeId(2), 1}};
  recovery::Hello hello = good;
  hello.cluster_id = {1, 1};
  EXPECT_EQ(rejected(recovery::EncodeHello(hello)).code(),
            absl::StatusCode::kFailedPrecondition);
  hello = good;
  hello.log_id = kLogB;
  EXPECT_TRUE(absl::IsNotFound(rejected(recovery::EncodeHello(hello))));
  EXPECT_TRUE(absl::IsUnavailable(rejected("good day")));
  EXPECT_TRUE(absl::IsInvalidArgument(rejected("day")));
  // A peer of another version may know no sums, or others.
  static_cast<void>(rejected(
      With(recovery::EncodeHello(good), 4, recovery::kProtocolVersion + 1)));
  said[4] = recovery::kProtocolVersion + 1;
  const absl::Status version = recovery::DecodeRejection(said);
  EXPECT_TRUE(absl::IsUnimplemented(version)) << version;
  EXPECT_THAT(
      version.message(),
      HasSubstr(absl::StrCat("here: version ", recovery::kProtocolVersion)));
  // A client, where no memory is offered, hears it in words of its version.
  static_cast<void>(
      rejected(recovery::EncodeClientHello({kCluster, kLogA, 5})));
  const absl::Status none = recovery::DecodeClientRejection(said);
  EXPECT_TRUE(absl::IsUnimplemented(none)) << none;
  EXPECT_EQ(none.message(), "this node offers clients no memory");
  EXPECT_EQ(world.server().counters().rejected, 6u);
  EXPECT_EQ(world.server().counters().accepted, 0u);
}

TEST(ReplicaServerTest, PromiseIsForTheProcessThatConnected) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  EXPECT_EQ(FailedWith(world.Ask(
                peer, recovery::Prepare{{Epoch(5), {NodeId(2), 99}}})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(world.State(kLogA).superline.promised_epoch, Epoch(0));
}

// P-R7: the platform that the node's operator declared reaches the primary, and
// a session of that platform persists what it acknowledges.
TEST(ReplicaServerTest, PlatformIsToldToThePrimary) {
  ServedWorld::Options options;
  options.server.platform =
      *replication::ParsePlatform("mhp,no-ddio,pm,native-flush");
  ServedWorld world(options);
  Peer& peer = world.Connected(1, 1);
  ASSERT_TRUE(peer.server_hello.has_value());
  EXPECT_EQ(peer.server_hello->platform, options.server.platform);
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  world.GetInstalled(peer, log);
  Replicate(world, peer, log, "a");
}

// A plain file's pages are in no domain: only its program persists them.
TEST(ReplicaServerTest, PlainFileIsServedAsOnTheWeakest) {
  ServedWorld::Options options;
  options.server.platform =
      *replication::ParsePlatform("wsp,no-ddio,infiniband");
  ServedWorld world(options);
  world.log(kLogA).is_memory = false;
  Peer& peer = world.Connected(1, 1);
  ASSERT_TRUE(peer.server_hello.has_value());
  EXPECT_EQ(replication::PlatformToString(peer.server_hello->platform),
            "dmp,ddio,dram,infiniband");
}

// A region that another process has, or that is to be made, was not seen: it
// may be a file.
TEST(ReplicaServerTest, RegionThatIsNotSeenIsToldAsTheWeakest) {
  ServedWorld::Options options;
  options.server.platform =
      *replication::ParsePlatform("wsp,no-ddio,infiniband");
  FakeRegions regions(kLogB);
  regions.server_hello = [](Uuid) { return recovery::ServerHello(); };
  options.server.regions = &regions;
  ServedWorld world(options);
  Peer& peer = world.NewPeer(1, 1);
  recovery::Hello hello = peer.HelloOf(kLogB);
  hello.primary.node = kNode;  // whose replica it is
  peer.Connect(world.address(), hello);
  world.Run(kMillisecond);
  ASSERT_TRUE(peer.server_hello.has_value()) << peer.rejection;
  EXPECT_EQ(replication::PlatformToString(peer.server_hello->platform),
            "dmp,ddio,dram,infiniband");
}

}  // namespace
}  // namespace alpheus::testing
