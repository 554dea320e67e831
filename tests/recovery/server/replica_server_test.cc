// SPDX-License-Identifier: Apache-2.0
// Logs come and go, and those who only look at them.
#include "recovery/server/replica_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <variant>
#include <vector>

#include "tests/recovery/server/replica_server_fixture.h"

namespace alpheus::testing {

using recovery::Created;
using recovery::Format;
using recovery::Formatted;
using recovery::Message;
using recovery::Viewed;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// --- Logs come and go --------------------------------------------------------

TEST(ReplicaServerTest, RemovedLogEndsItsConnectionsAndMayComeBack) {
  ServedWorld world(WithLogB());
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& session = world.Connected(1, 1);
  world.GetInstalled(session, log);
  Replicate(world, session, log, "a");
  Peer& waiting = world.Connected(2, 1);
  Peer& other = world.Connected(2, 1, kLogB);
  auto removed = world.server().RemoveLog(kLogA);
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(ProvenAfterACut(world, kLogA), Lsn(1));
  world.Run(kMillisecond);
  EXPECT_TRUE(session.ended);
  EXPECT_TRUE(waiting.ended);
  EXPECT_FALSE(other.ended);
  EXPECT_TRUE(absl::IsNotFound(world.server().RemoveLog(kLogA).status()));
  Peer& unauthenticated = world.NewPeer(1, 1);
  unauthenticated.Connect(world.address(), unauthenticated.HelloOf(kLogA));
  world.Run(kMillisecond);
  EXPECT_TRUE(absl::IsNotFound(unauthenticated.rejection));
  ASSERT_TRUE(world.server().AddLog(*std::move(removed)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(world.server().AddLog(
      std::make_unique<WatchedLog>(world.pmem(kLogA), nullptr))));
  world.GetPromise(world.Connected(1, 1), Epoch(6));
}

class TestCreator final : public recovery::LogCreator {
 public:
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Create(
      Uuid log_id, const Format& format) override {
    asked = format;
    if (format.region_bytes == 0) {
      return absl::InvalidArgumentError("a region of no bytes");
    }
    pmem_ = FormattedRegion(log_id, kNode);
    return std::make_unique<WatchedLog>(*pmem_, nullptr);
  }

  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> RemoveRecords(
      Uuid /*log_id*/) override {
    return absl::UnimplementedError("nothing is removed here");
  }

  Format asked;

 private:
  std::unique_ptr<model::ModelPersistence> pmem_;
};

TEST(ReplicaServerTest, UnknownLogIsMadeOnDemand) {
  TestCreator creator;
  ServedWorld::Options options;
  options.server.creator = &creator;
  ServedWorld world(options);
  const Format format{1 << 20, MembersOf(), "orders"};
  // Not before it is formatted.
  Peer& hasty = world.Connected(1, 1, kLogB);
  EXPECT_EQ(hasty.server_hello,
            (recovery::ServerHello{kNode, 0, 0, Epoch(0), 0}));
  EXPECT_EQ(
      FailedWith(world.Ask(hasty, recovery::Prepare{{Epoch(5), hasty.self()}})),
      absl::StatusCode::kFailedPrecondition);
  // The creator's objection reaches the peer.
  Peer& wrong = world.Connected(1, 1, kLogB);
  EXPECT_EQ(FailedWith(world.Ask(wrong, Format{0, MembersOf(), "orders"})),
            absl::StatusCode::kInvalidArgument);
  Peer& first = world.Connected(1, 1, kLogB);
  Peer& second = world.Connected(2, 1, kLogB);
  EXPECT_EQ(world.Ask(first, format), Message(Formatted{}));
  EXPECT_EQ(creator.asked, format);
  EXPECT_EQ(world.server().counters().formatted, 1u);
  EXPECT_EQ(FailedWith(world.Ask(second, format)),
            absl::StatusCode::kAlreadyExists);
  world.GetPromise(first, Epoch(5));
  Peer& later = world.Connected(2, 1, kLogB);
  EXPECT_EQ(later.server_hello,
            (recovery::ServerHello{kNode, 101, kRingBytes, Epoch(5), 1}));
  // A log that was there from the start is not made again.
  EXPECT_EQ(FailedWith(world.Ask(world.Connected(1, 1), format)),
            absl::StatusCode::kAlreadyExists);
  // Keys of the region that the creator owns must not outlive it.
  EXPECT_TRUE(world.server().RemoveLog(kLogB).ok());
}

// LC1 (log_creation.h). A replica that a creation left when it was cut off is
// made again: the one that was looked at, and no other.
TEST(ReplicaServerTest, UnopenedReplicaIsReplaced) {
  TestCreator creator;
  ServedWorld::Options options;
  options.server.creator = &creator;
  ServedWorld world(options);
  Format format{1 << 20, MembersOf(), "orders"};
  Peer& first = world.Connected(1, 1, kLogB);
  EXPECT_EQ(world.Ask(first, format), Message(Formatted{}));
  Peer& second = world.Connected(2, 1, kLogB);
  const auto created = world.Ask(second, recovery::AskCreation{});
  ASSERT_TRUE(created && std::holds_alternative<Created>(*created));
  EXPECT_FALSE(std::get<Created>(*created).is_used);
  EXPECT_EQ(std::get<Created>(*created).configuration, MembersOf());
  Format other = format;
  other.replaces = second.server_hello->incarnation + 1;
  EXPECT_EQ(FailedWith(world.Ask(second, other)),
            absl::StatusCode::kAlreadyExists);
  Peer& third = world.Connected(2, 2, kLogB);
  format.replaces = third.server_hello->incarnation;
  EXPECT_EQ(world.Ask(third, format), Message(Formatted{}));
  EXPECT_EQ(creator.asked, format);
  EXPECT_EQ(world.server().counters().formatted, 2u);
  // The others' connections were of the replica that is gone.
  world.Run(kMillisecond);
  EXPECT_TRUE(first.ended);
  world.GetPromise(third, Epoch(5));
  EXPECT_TRUE(world.server().RemoveLog(kLogB).ok());
}

TEST(ReplicaServerTest, ReplicaThatWasOpenedMeanwhileIsNotReplaced) {
  TestCreator creator;
  ServedWorld::Options options;
  options.server.creator = &creator;
  ServedWorld world(options);
  Format format{1 << 20, MembersOf(), "orders"};
  EXPECT_EQ(world.Ask(world.Connected(1, 1, kLogB), format),
            Message(Formatted{}));
  Peer& maker = world.Connected(2, 1, kLogB);
  format.replaces = maker.server_hello->incarnation;
  Peer& primary = world.Connected(1, 2, kLogB);
  world.GetPromise(primary, Epoch(5));
  const auto reply = world.Ask(maker, format);
  EXPECT_EQ(FailedWith(reply), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(world.server().counters().formatted, 1u);
  const auto created =
      world.Ask(world.Connected(2, 2, kLogB), recovery::AskCreation{});
  ASSERT_TRUE(created && std::holds_alternative<Created>(*created));
  EXPECT_TRUE(std::get<Created>(*created).is_used);
  EXPECT_TRUE(world.server().RemoveLog(kLogB).ok());
}

// A creator that fails leaves it to its owner to serve again what was there.
TEST(ReplicaServerTest, ReplacementThatFailsLeavesNothingHalf) {
  TestCreator creator;
  ServedWorld::Options options;
  options.server.creator = &creator;
  ServedWorld world(options);
  Format format{1 << 20, MembersOf(), "orders"};
  EXPECT_EQ(world.Ask(world.Connected(1, 1, kLogB), format),
            Message(Formatted{}));
  Peer& maker = world.Connected(2, 1, kLogB);
  format.replaces = maker.server_hello->incarnation;
  format.region_bytes = 0;
  EXPECT_EQ(FailedWith(world.Ask(maker, format)),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(world.server().RemoveLog(kLogB).ok());
}

// MSG1 (messages.h): nothing is done of what was damaged on the way; the peer
// is told so, and the node's operator.
TEST(ReplicaServerTest, RequestThatWasChangedOnItsWayIsNotCarriedOut) {
  ServedWorld world({});
  Peer& peer = world.Connected(1, 1);
  std::vector<std::byte> bytes = recovery::EncodeMessage(
      kLogA, recovery::Prepare{{Epoch(5), peer.self()}, 1});
  bytes[9] ^= std::byte{4};  // of the epoch
  peer.SendBytes(bytes);
  world.Run(kMillisecond);
  ASSERT_THAT(peer.replies, SizeIs(1));
  EXPECT_EQ(peer.replies.front(), Message(recovery::Changed{}));
  EXPECT_EQ(world.log(kLogA).current_promise(), quorum::Promise());
  ASSERT_THAT(world.reports(), SizeIs(1));
  EXPECT_THAT(world.reports().front(), HasSubstr("was damaged on the way"));
  world.GetPromise(world.Connected(1, 2), Epoch(5));
}

TEST(ReplicaServerTest, WhatIsNotOfTheServerIsLeftToOthers) {
  ServedWorld world({});
  fabric::ConnectionEvent event;
  event.kind = fabric::ConnectionEvent::Kind::kDisconnected;
  event.connection = fabric::ConnectionId(1'000'000);
  EXPECT_FALSE(world.server().OnConnectionEvent(event));
  fabric::Completion completion;
  completion.connection = fabric::ConnectionId(1'000'000);
  EXPECT_FALSE(world.server().OnCompletion(completion));
}

// --- Those who only look, and those who want the file ------------------------

TEST(ReplicaServerTest, RegionIsReadWithoutAPromise) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& primary = world.Connected(1, 1);
  world.GetInstalled(primary, log);
  Replicate(world, primary, log, "a");
  Peer& reader = world.Connected(2, 1);
  const auto reply = world.Ask(reader, recovery::View{});
  ASSERT_TRUE(reply && std::holds_alternative<Viewed>(*reply));
  const Viewed viewed = std::get<Viewed>(*reply);
  EXPECT_EQ(viewed.region_bytes, world.log(kLogA).region().size());
  std::vector<std::byte> image(viewed.region_bytes);
  ASSERT_TRUE(reader.Read(viewed.region_key, 0, image).ok());
  world.Run(kMillisecond);
  EXPECT_THAT(LivePayloads(image), ElementsAre("a"));
  // Nobody was fenced, and nothing can be written with that key.
  Replicate(world, primary, log, "b");
  std::vector<std::byte> bytes(8);
  ASSERT_TRUE(reader.Write(viewed.region_key, 0, bytes).ok());
  world.Run(kMillisecond);
  ASSERT_THAT(reader.done, SizeIs(2));
  EXPECT_EQ(reader.done[1], fabric::CompletionStatus::kRemoteAccess);
  Replicate(world, primary, log, "c");
}

// ADM1: a peer that looks again and again gets the key that it has.
TEST(ReplicaServerTest, ViewThatIsRepeatedRegistersNothing) {
  ServedWorld world({});
  Peer& reader = world.Connected(2, 1);
  const auto first = world.Ask(reader, recovery::View{});
  ASSERT_TRUE(first && std::holds_alternative<Viewed>(*first));
  const auto again = world.Ask(reader, recovery::View{});
  ASSERT_TRUE(again && std::holds_alternative<Viewed>(*again));
  EXPECT_EQ(std::get<Viewed>(*again).region_key,
            std::get<Viewed>(*first).region_key);
  EXPECT_EQ(std::get<Viewed>(*again).region_bytes,
            std::get<Viewed>(*first).region_bytes);
  // A promise voids it with all others of the connection.
  const fabric::RegionKey viewed = std::get<Viewed>(*first).region_key;
  world.GetPromise(reader, Epoch(5));
  std::vector<std::byte> bytes(8);
  ASSERT_TRUE(reader.Read(viewed, 0, bytes).ok());
  world.Run(kMillisecond);
  ASSERT_THAT(reader.done, SizeIs(1));
  EXPECT_EQ(reader.done[0], fabric::CompletionStatus::kRemoteAccess);
}

TEST(ReplicaServerTest, OwnerOfThePromiseHasNoViewOfTheRest) {
  for (const Message& message :
       {Message(recovery::View{}), Message(recovery::Follow{})}) {
    ServedWorld world({});
    Peer& peer = world.Connected(1, 1);
    world.GetPromise(peer, Epoch(5));
    EXPECT_EQ(FailedWith(world.Ask(peer, message)),
              absl::StatusCode::kFailedPrecondition);
  }
}

// The persisted LSN is known from the session, then from the watermark. The
// durable LSN stays known when the session is over (P-C1).
TEST(ReplicaServerTest, WhoFollowsIsToldHowFarTheReplicaIs) {
  ServedWorld::Options options;
  int64_t certificate_end_s = 1'800'000'000;  // until another one is in place
  options.server.certificate_end_s = [&] { return certificate_end_s; };
  ServedWorld world(options);
  PrimaryLog log(kLogA);
  Peer& primary = SessionWithOneRecord(world, log);
  Replicate(world, primary, log, "b");
  Peer& reader = world.Connected(2, 1);
  const auto ask = [&](Epoch table_epoch) {
    const auto reply = world.Ask(reader, recovery::Follow{table_epoch});
    EXPECT_TRUE(reply && std::holds_alternative<recovery::Followed>(*reply));
    return std::get<recovery::Followed>(*reply);
  };
  recovery::Followed followed = ask(Epoch(0));
  EXPECT_EQ(followed.log_epoch, Epoch(5));
  EXPECT_FALSE(followed.repairing);
  EXPECT_EQ(followed.replica_count, 2u);
  EXPECT_EQ(followed.write_quorum, 1u);
  EXPECT_EQ(followed.head.lsn, Lsn(1));
  EXPECT_EQ(followed.persisted_lsn, Lsn(2));
  EXPECT_EQ(followed.durable_lsn, Lsn(1));  // says the header of "b"
  EXPECT_EQ(followed.table, log.installation().table);
  EXPECT_TRUE(followed.in_session);
  EXPECT_FALSE(followed.is_claimed);
  EXPECT_EQ(followed.promised, (quorum::Promise{Epoch(5), primary.self()}));
  EXPECT_EQ(followed.configuration_id, 1u);
  EXPECT_EQ(followed.end, log.End().offset);
  EXPECT_EQ(followed.certificate_end_s, 1'800'000'000);
  certificate_end_s = 1'900'000'000;
  EXPECT_EQ(ask(Epoch(5)).certificate_end_s, 1'900'000'000);
  EXPECT_TRUE(ask(Epoch(5)).table.entries().empty());
  ASSERT_TRUE(primary.session->AdvanceDurable(Lsn(2)).ok());
  world.Run(kMillisecond);
  EXPECT_EQ(ask(Epoch(5)).durable_lsn, Lsn(2));
  ASSERT_TRUE(primary.Close().ok());
  world.Run(kMillisecond);
  followed = ask(Epoch(5));
  EXPECT_EQ(followed.persisted_lsn, Lsn(2));
  EXPECT_EQ(followed.durable_lsn, Lsn(2));
  EXPECT_FALSE(followed.in_session);
  EXPECT_EQ(followed.end, log.End().offset);  // it is still there
}

TEST(ReplicaServerTest, RegionIsReleasedOnlyWhereThatIsWanted) {
  ServedWorld refusing({});
  EXPECT_EQ(
      FailedWith(refusing.Ask(refusing.Connected(1, 1), recovery::Release{})),
      absl::StatusCode::kFailedPrecondition);
  std::vector<Uuid> released;
  FakeRegions regions(kLogB);
  regions.release = [&](Uuid log_id) { released.push_back(log_id); };
  ServedWorld::Options options;
  options.server.regions = &regions;
  ServedWorld world(options);
  // A process of another machine can't take the file.
  EXPECT_EQ(FailedWith(world.Ask(world.Connected(1, 1), recovery::Release{})),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(released, IsEmpty());
  Peer& own = world.NewPeer(1, 2);
  recovery::Hello hello = own.HelloOf(kLogA);
  hello.primary.node = kNode;
  own.Connect(world.address(), hello);
  world.Run(kMillisecond);
  const auto reply = world.Ask(own, recovery::Release{});
  ASSERT_TRUE(reply && std::holds_alternative<recovery::Released>(*reply));
  EXPECT_THAT(released, ElementsAre(kLogA));
}

// A process that decided to open the log before another one was promised it.
TEST(ReplicaServerTest, RegionIsNotReleasedToALateOpener) {
  std::vector<Uuid> released;
  FakeRegions regions(kLogB);
  regions.release = [&](Uuid log_id) { released.push_back(log_id); };
  ServedWorld::Options options;
  options.server.regions = &regions;
  ServedWorld world(options);
  Peer& first = world.Connected(1, 1);
  Peer& own = world.NewPeer(2, 2);
  recovery::Hello hello = own.HelloOf(kLogA);
  hello.primary.node = kNode;
  own.Connect(world.address(), hello);
  world.Run(kMillisecond);
  world.GetPromise(first, Epoch(5));
  EXPECT_EQ(world.Ask(own, recovery::Release{Epoch(4)}),
            recovery::Message(recovery::Refused{{Epoch(5), first.self()}}));
  EXPECT_THAT(released, IsEmpty());
  EXPECT_FALSE(first.ended);
  EXPECT_EQ(world.Ask(own, recovery::Release{Epoch(5)}),
            recovery::Message(recovery::Released{}));
  EXPECT_THAT(released, ElementsAre(kLogA));
}

TEST(ReplicaServerTest, LogThatIsNotServedIsNamedSo) {
  ServedWorld::Options options;
  FakeRegions regions(kLogB);
  options.server.regions = &regions;
  ServedWorld world(options);
  Peer& peer = world.NewPeer(1, 1);
  peer.Connect(world.address(), peer.HelloOf(kLogB));
  world.Run(kMillisecond);
  EXPECT_FALSE(peer.established);
  EXPECT_EQ(peer.rejection, absl::UnavailableError("another process has it"));
}

}  // namespace
}  // namespace alpheus::testing
