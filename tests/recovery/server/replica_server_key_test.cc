// SPDX-License-Identifier: Apache-2.0
// A node whose cluster has a key, and who is refused there. In each test a
// session of another log runs all the while.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "recovery/protocol/handshake.h"
#include "recovery/server/replica_server.h"
#include "tests/recovery/protocol/wire_samples.h"
#include "tests/recovery/server/replica_server_fixture.h"

namespace alpheus::testing {

using recovery::Challenge;
using recovery::Challenged;
using recovery::Message;
using recovery::RejectReason;

namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

quorum::ClusterKey KeyOf(unsigned char byte) {
  std::array<std::byte, quorum::kClusterKeyBytes> bytes{};
  bytes.fill(std::byte{byte});
  return quorum::ClusterKey(bytes);
}

class ReplicaServerKeyTest : public ::testing::Test {
 protected:
  ReplicaServerKeyTest() { Start({}); }

  // Again, with a session of log B.
  void Start(ServedWorld::Options options) {
    options.serve_b = true;
    options.server.credentials = {KeyOf(1), &node_random_};
    log_b_.emplace(kLogB);
    world_ = std::make_unique<ServedWorld>(std::move(options));
    log_b_->OpenEpoch(Epoch(3));
    bystander_ = &world_->Connected(1, 1, kLogB);
    Prove(*bystander_, kLogB);
    world_->GetInstalled(*bystander_, *log_b_);
  }

  // The last word of the replica.
  std::optional<Message> Prove(Peer& peer, Uuid log_id = kLogA,
                               const quorum::ClusterKey& key = KeyOf(1)) {
    recovery::PrimaryHandshake handshake({key, &random_});
    const auto challenged = world_->Ask(
        peer, handshake.Begin(peer.HelloOf(log_id), *peer.server_hello));
    if (!challenged || !std::holds_alternative<Challenged>(*challenged)) {
      return challenged;
    }
    const auto prove = handshake.Reply(std::get<Challenged>(*challenged));
    EXPECT_TRUE(prove.ok()) << prove.status();
    return world_->Ask(peer, *prove);
  }

  Peer& Proved(int host, uint64_t incarnation) {
    Peer& peer = world_->Connected(host, incarnation);
    EXPECT_EQ(Prove(peer), Message(alpheus::recovery::Proved{}));
    return peer;
  }

  // Refused for that reason, once more than before; all else is as it was.
  void ExpectRefused(const std::optional<Message>& reply, RejectReason reason,
                     const char* what) {
    ASSERT_TRUE(reply.has_value()) << what;
    EXPECT_NE(FailedWith(reply), absl::StatusCode::kOk) << what;
    EXPECT_EQ(world_->server().rejects().count(reason), ++expected_[reason])
        << what;
    world_->Run(kMillisecond);
    EXPECT_EQ(world_->server().connection_count(), 1u) << what;
    EXPECT_EQ(world_->State(kLogA).superline.promised_epoch, Epoch(0)) << what;
    ExpectBystanderUndisturbed();
  }

  void ExpectBystanderUndisturbed() {
    ASSERT_FALSE(bystander_->ended);
    Replicate(*world_, *bystander_, *log_b_, "b");
  }

  const recovery::RejectCounters& rejects() {
    return world_->server().rejects();
  }

  Random node_random_{1};
  Random random_{2};
  std::optional<PrimaryLog> log_b_;
  std::unique_ptr<ServedWorld> world_;
  Peer* bystander_ = nullptr;
  std::map<RejectReason, uint64_t> expected_;
};

TEST_F(ReplicaServerKeyTest, WhoeverHasTheKeyGetsASession) {
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = Proved(2, 1);
  world_->GetInstalled(peer, log);
  Replicate(*world_, peer, log, "a");
  ExpectBystanderUndisturbed();
  EXPECT_EQ(rejects().total(), 0u);
}

// HSK1: promise, formatting, view and release, and what comes out of turn
// anyway.
TEST_F(ReplicaServerKeyTest, NothingIsIssuedWithoutAProof) {
  uint64_t incarnation = 10;
  for (const bool has_challenged : {false, true}) {
    for (const Message& message : {
             Message(recovery::Format{1 << 20, MembersOf(), "a"}),
             Message(recovery::Prepare{{Epoch(9), {NodeId(3), 10}}}),
             Message(recovery::OpenForRepair{Epoch(9), false}),
             Message(recovery::View{}),
             Message(recovery::Release{}),
             // ELD2.
             Message(recovery::Hear{}),
             Message(recovery::Instruct{
                 {recovery::InstructionKind::kElect, NodeId(1), 1}}),
             Message(alpheus::recovery::Proved{}),
         }) {
      Peer& peer = world_->Connected(2, ++incarnation);
      if (has_challenged) {
        const auto reply = world_->Ask(peer, Challenge{{1, 2}});
        ASSERT_TRUE(reply && std::holds_alternative<Challenged>(*reply));
      }
      const auto reply = world_->Ask(peer, message);
      EXPECT_EQ(FailedWith(reply), absl::StatusCode::kUnauthenticated)
          << message.index();
      ExpectRefused(reply, RejectReason::kNoProof, "asked without a proof");
    }
  }
  // One of the many rejects of the host is reported.
  ASSERT_THAT(world_->reports(), SizeIs(1));
  EXPECT_THAT(world_->reports().front(), HasSubstr("key_file"));
}

TEST_F(ReplicaServerKeyTest, PrimaryWithAnotherKeyGetsNothing) {
  Peer& peer = world_->Connected(2, 1);
  // It does not mind what the replica proves.
  const auto challenged = world_->Ask(peer, Challenge{{1, 2}});
  ASSERT_TRUE(challenged && std::holds_alternative<Challenged>(*challenged));
  const auto reply = world_->Ask(
      peer, alpheus::recovery::Prove{
                KeyOf(2).Sign(recovery::EncodeMessage(kLogA, *challenged))});
  EXPECT_EQ(FailedWith(reply), absl::StatusCode::kUnauthenticated);
  ExpectRefused(reply, RejectReason::kWrongKey, "another key");
  ASSERT_THAT(world_->reports(), SizeIs(1));
  EXPECT_THAT(world_->reports().front(), HasSubstr("same key_file"));
}

// HSK2: every byte of a good connection is said again, by the same process.
TEST_F(ReplicaServerKeyTest, RecordedHandshakeProvesNothing) {
  Peer& recorded = world_->Connected(2, 7);
  recovery::PrimaryHandshake handshake({KeyOf(1), &random_});
  const Challenge challenge =
      handshake.Begin(recorded.HelloOf(kLogA), *recorded.server_hello);
  const auto challenged = world_->Ask(recorded, challenge);
  const auto prove = handshake.Reply(std::get<Challenged>(*challenged));
  ASSERT_TRUE(prove.ok());
  ASSERT_EQ(world_->Ask(recorded, *prove),
            Message(alpheus::recovery::Proved{}));
  ASSERT_TRUE(recorded.Close().ok());
  world_->Run(kMillisecond);

  Peer& again = world_->Connected(2, 7);
  ASSERT_EQ(again.server_hello, recorded.server_hello);
  const auto report = world_->Ask(again, challenge);
  ASSERT_TRUE(report && std::holds_alternative<Challenged>(*report));
  const auto reply = world_->Ask(again, *prove);
  EXPECT_EQ(FailedWith(reply), absl::StatusCode::kUnauthenticated);
  ExpectRefused(reply, RejectReason::kWrongKey, "a recorded proof");
}

// HSK3: a peer without the key lets the replica sign.
TEST_F(ReplicaServerKeyTest, ReplicasOwnProofSentBackProvesNothing) {
  Peer& peer = world_->Connected(2, 1);
  const auto challenged = world_->Ask(peer, Challenge{{1, 2}});
  ASSERT_TRUE(challenged && std::holds_alternative<Challenged>(*challenged));
  const auto reply = world_->Ask(
      peer, alpheus::recovery::Prove{std::get<Challenged>(*challenged).proof});
  EXPECT_EQ(FailedWith(reply), absl::StatusCode::kUnauthenticated);
  ExpectRefused(reply, RejectReason::kWrongKey, "the replica's own proof");
}

// At each step of the handshake.
TEST_F(ReplicaServerKeyTest, NonsenseAtEachStepEndsItsConnectionOnly) {
  const std::vector<std::byte> nonsense(100, std::byte{7});
  for (int step = 0; step < 3; ++step) {
    Peer& peer = step < 2 ? world_->Connected(2, 20 + step) : Proved(2, 20);
    if (step == 1) world_->Ask(peer, Challenge{{1, 2}});
    peer.SendBytes(nonsense);
    world_->Run(kMillisecond);
    ASSERT_THAT(peer.replies, SizeIs(1)) << step;
    EXPECT_TRUE(peer.ended) << step;
    ExpectRefused(peer.replies.front(), RejectReason::kMalformed, "nonsense");
    EXPECT_EQ(peer.replies.front(), Message(recovery::Changed{})) << step;
  }
  EXPECT_THAT(world_->reports(), SizeIs(1));
}

TEST_F(ReplicaServerKeyTest, HandshakeOutOfTurnIsRefused) {
  const std::vector<std::vector<Message>> turns = {
      {alpheus::recovery::Prove{}}, {Challenge{{1, 2}}, Challenge{{1, 2}}}};
  for (const std::vector<Message>& turn : turns) {
    Peer& peer = world_->Connected(2, 1);
    std::optional<Message> reply;
    for (const Message& message : turn) reply = world_->Ask(peer, message);
    ExpectRefused(reply, RejectReason::kOutOfTurn, "out of turn");
  }
  ExpectRefused(Prove(Proved(2, 3)), RejectReason::kOutOfTurn, "proved before");
}

// A peer with a wrong Hello does not even get so far.
TEST_F(ReplicaServerKeyTest, HelloOfOthersIsRejectedCountedAndToldOnce) {
  const recovery::Hello good{kCluster, kLogA, {NodeId(3), 1}};
  recovery::Hello cluster = good;
  cluster.cluster_id = {1, 1};
  recovery::Hello log = good;
  log.log_id = {5, 5};
  const std::string version =
      With(recovery::EncodeHello(good), 4, recovery::kProtocolVersion + 1);
  const struct {
    std::string bytes;
    RejectReason reason;
  } cases[] = {{recovery::EncodeHello(cluster), RejectReason::kOtherCluster},
               {recovery::EncodeHello(log), RejectReason::kUnknownLog},
               {version, RejectReason::kOtherVersion},
               {"good day", RejectReason::kMalformed}};
  for (const auto& c : cases) {
    const size_t told = world_->reports().size();
    for (uint64_t times = 1; times <= 3; ++times) {
      Peer& peer = world_->NewPeer(2, times);
      peer.ConnectSaying(world_->address(), c.bytes);
      world_->Run(kMillisecond);
      EXPECT_FALSE(peer.rejection.ok());
      EXPECT_EQ(rejects().count(c.reason), times);
      EXPECT_THAT(world_->reports(), SizeIs(told + 1)) << c.bytes;
    }
  }
  ExpectBystanderUndisturbed();
  EXPECT_EQ(rejects().total(), 12u);
}

// Both are told what to do.
TEST_F(ReplicaServerKeyTest, KeyOnOneSideOnlyIsRefusedByBoth) {
  const auto reply = world_->Ask(world_->Connected(2, 1), recovery::View{});
  EXPECT_THAT(std::string(std::get<recovery::Failed>(*reply).status.message()),
              HasSubstr("in the peer's cluster file"));
  ServedWorld keyless({});
  Peer& peer = keyless.Connected(2, 1);
  recovery::PrimaryHandshake handshake({KeyOf(1), &random_});
  const auto refused = keyless.Ask(
      peer, handshake.Begin(peer.HelloOf(kLogA), *peer.server_hello));
  EXPECT_EQ(FailedWith(refused), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(std::get<recovery::Failed>(*refused).status.message()),
      HasSubstr("in the node's cluster file"));
  EXPECT_EQ(keyless.server().rejects().count(RejectReason::kNoKeyHere), 1u);
}

// A stale epoch costs a primary with the key nothing but the report.
TEST_F(ReplicaServerKeyTest, StaleEpochIsCountedAndToldOnce) {
  Peer& holder = Proved(2, 1);
  world_->GetPromise(holder, Epoch(5));
  for (uint64_t incarnation = 2; incarnation <= 4; ++incarnation) {
    Peer& peer = Proved(2, incarnation);
    EXPECT_EQ(world_->Ask(peer, recovery::Prepare{{Epoch(5), peer.self()}}),
              Message(recovery::Refused{{Epoch(5), holder.self()}}));
    EXPECT_FALSE(peer.ended);
  }
  EXPECT_EQ(rejects().count(RejectReason::kStaleEpoch), 3u);
  EXPECT_THAT(world_->reports(), SizeIs(1));
  world_->GetRepairOpened(holder, Epoch(5));
  ExpectBystanderUndisturbed();
}

// P-A5: before the promise changes anything.
TEST_F(ReplicaServerKeyTest, OlderConfigurationIsRefused) {
  ServedWorld::Options options;
  options.configuration_id = 4;
  Start(options);
  Peer& older = Proved(2, 1);
  const auto reply =
      world_->Ask(older, recovery::Prepare{{Epoch(5), older.self()}, 3});
  EXPECT_EQ(FailedWith(reply), absl::StatusCode::kFailedPrecondition);
  ExpectRefused(reply, RejectReason::kOlderConfiguration, "configuration 3");
  ASSERT_THAT(world_->reports(), SizeIs(1));
  EXPECT_THAT(world_->reports().front(), HasSubstr("newest list of members"));
  Peer& newest = Proved(2, 2);
  const auto promised =
      world_->Ask(newest, recovery::Prepare{{Epoch(5), newest.self()}, 4});
  EXPECT_TRUE(promised &&
              std::holds_alternative<recovery::Promised>(*promised));
}

// ADM1: unauthenticated clients that say nothing, or come in numbers, take
// nobody's place.
TEST_F(ReplicaServerKeyTest, SilentUnauthenticatedClientsAreEndedSoon) {
  ServedWorld::Options options;
  options.server.proof_ns_max = 5 * kMillisecond;
  Start(options);
  Peer& unauthenticated = world_->Connected(2, 1);
  Peer& half = world_->Connected(2, 2);
  world_->Ask(half, Challenge{{1, 2}});
  Peer& friendly = Proved(2, 3);
  world_->Run(10 * kMillisecond);
  EXPECT_TRUE(unauthenticated.ended);
  EXPECT_TRUE(half.ended);
  EXPECT_FALSE(friendly.ended);
  EXPECT_EQ(rejects().count(RejectReason::kTooSlow), 2u);
  ExpectBystanderUndisturbed();
}

TEST_F(ReplicaServerKeyTest, ManyUnauthenticatedClientsPushEachOtherOut) {
  ServedWorld::Options options;
  options.server.unproved_connections_max = 3;
  options.server.waiting_connections_max = 2;
  Start(options);
  Peer& friendly = Proved(2, 1);
  std::vector<Peer*> unauthenticated_ones;
  for (uint64_t i = 0; i < 6; ++i) {
    unauthenticated_ones.push_back(&world_->Connected(2, 10 + i));
  }
  for (size_t i = 0; i < unauthenticated_ones.size(); ++i) {
    EXPECT_EQ(unauthenticated_ones[i]->ended, i < 3) << i;
  }
  EXPECT_FALSE(friendly.ended);
  // Those with the key make room for each other only.
  Peer& second = Proved(2, 2);
  Peer& late = Proved(2, 3);
  EXPECT_TRUE(friendly.ended);
  EXPECT_FALSE(second.ended);
  EXPECT_FALSE(late.ended);
  EXPECT_EQ(rejects().count(RejectReason::kNoRoom), 1u);
  // A peer without the key pushes out none of them.
  Peer& unauthenticated = world_->Connected(2, 4);
  world_->Ask(unauthenticated, Challenge{{1, 2}});
  world_->Ask(unauthenticated, alpheus::recovery::Prove{});
  EXPECT_EQ(rejects().count(RejectReason::kNoRoom), 1u);
  EXPECT_FALSE(second.ended);
  ExpectBystanderUndisturbed();
}

}  // namespace
}  // namespace alpheus::testing
