// SPDX-License-Identifier: Apache-2.0
// A node one of whose replicas is claimed by a primary of its own machine, and
// who asks for it. Log B is the one that is claimed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "log/core/ring/region_state.h"
#include "recovery/protocol/handshake.h"
#include "recovery/server/replica_server.h"
#include "tests/recovery/server/replica_server_fixture.h"

namespace alpheus::testing {

using recovery::Claim;
using recovery::Followed;
using recovery::Message;
using recovery::Prepare;
using recovery::Scrub;
using recovery::Wanted;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ServerHelloOfClaimedTest, OnlyTheReplicaThatIsAskedForSpeaks) {
  const auto pmem = FormattedRegion(kLogB, kNode);
  const std::span<std::byte> region = pmem->region();
  const auto state = ReadRegionState(region, "replica");
  ASSERT_TRUE(state.ok()) << state.status();
  const Superline& own = state->superline;
  const auto ask = [&](std::span<std::byte> bytes, Uuid cluster, Uuid log,
                       NodeId node) {
    return recovery::ServerHelloOfClaimed(bytes, cluster, log, node);
  };
  EXPECT_EQ(ask(region, own.cluster_id, own.log_id, own.node),
            recovery::ServerHelloOf(own));
  const Uuid other{own.cluster_id.high, own.cluster_id.low ^ 1};
  EXPECT_FALSE(ask(region, other, own.log_id, own.node));
  EXPECT_FALSE(ask(region, own.cluster_id, kLogA, own.node));
  EXPECT_FALSE(
      ask(region, own.cluster_id, own.log_id, NodeId(own.node.value + 1)));
  EXPECT_FALSE(ask(region.first(4096), own.cluster_id, own.log_id, own.node));
  std::vector<std::byte> zeroes(region.size());
  EXPECT_FALSE(ask(zeroes, own.cluster_id, own.log_id, own.node));
}

constexpr quorum::PrimaryId kLocalPrimary{kNode, 77};
constexpr quorum::Promise kHeld{Epoch(5), kLocalPrimary};
constexpr int64_t kCertificateEnd = 1'800'000'000;

class ReplicaServerClaimTest : public ::testing::Test {
 protected:
  explicit ReplicaServerClaimTest(
      const recovery::Credentials& credentials = {}) {
    ServedWorld::Options options;
    options.server.credentials = credentials;
    options.server.silence_ns_max = 100 * kMillisecond;
    options.server.step_down_timeout_ns = 20 * kMillisecond;
    options.server.show_ns = 10 * kMillisecond;
    regions_.server_hello = [this](Uuid /*log_id*/) { return server_hello_; };
    regions_.followed = [this](Uuid /*log_id*/) -> absl::StatusOr<Followed> {
      if (followed_) return *followed_;
      return absl::UnavailableError("another process has it");
    };
    regions_.owner_gone = [this](Uuid log_id) { let_go_.push_back(log_id); };
    options.server.regions = &regions_;
    options.server.certificate_end_s = [] { return kCertificateEnd; };
    world_ = std::make_unique<ServedWorld>(options);
    const RegionState state = world_->State(kLogB);
    server_hello_ = recovery::ServerHelloOf(state.superline);
  }

  recovery::ReplicaServer& server() { return world_->server(); }

  // A process of the node's own machine.
  Peer& ConnectedAs(const quorum::PrimaryId& process) {
    Peer& peer = world_->NewPeer(1, process.incarnation);
    recovery::Hello hello = peer.HelloOf(kLogB);
    hello.primary = process;
    peer.Connect(world_->address(), hello);
    world_->Run(kMillisecond);
    EXPECT_TRUE(peer.established) << peer.rejection;
    return peer;
  }
  Peer& Claiming(const quorum::Promise& promise = kHeld) {
    Peer& peer = ConnectedAs(promise.primary);
    peer.Send(Claim{promise});
    world_->Run(kMillisecond);
    EXPECT_FALSE(peer.ended);
    EXPECT_THAT(peer.replies, IsEmpty());
    return peer;
  }
  Peer& Asker(int host, uint64_t incarnation) {
    return world_->Connected(host, incarnation, kLogB);
  }
  void PrepareOf(Peer& peer, Epoch epoch) {
    peer.Send(Prepare{{epoch, peer.self()}});
    world_->Run(kMillisecond);
  }
  // The node has the file again.
  void TakeBack() {
    AddLogB();
    world_->Run(kMillisecond);
  }
  void AddLogB() {
    ASSERT_TRUE(server()
                    .AddLog(std::make_unique<WatchedLog>(
                        world_->pmem(kLogB), std::function<void()>()))
                    .ok());
  }

  absl::StatusOr<recovery::ServerHello> server_hello_;
  std::optional<Followed> followed_;
  std::vector<Uuid> let_go_;
  FakeRegions regions_{kLogB};
  std::unique_ptr<ServedWorld> world_;
};

TEST_F(ReplicaServerClaimTest,
       PrimaryIsNotifiedAndWhoAsksIsAnsweredAfterwards) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  EXPECT_EQ(asker.server_hello, *server_hello_);
  PrepareOf(asker, Epoch(6));
  ASSERT_THAT(primary.replies,
              ElementsAre(Message(Wanted{{Epoch(6), asker.self()}})));
  EXPECT_THAT(asker.replies, IsEmpty());
  // Nothing is promised for a region that another process writes.
  EXPECT_EQ(world_->State(kLogB).superline.promised_epoch, Epoch(0));
  ASSERT_TRUE(primary.Close().ok());
  world_->Run(kMillisecond);
  EXPECT_THAT(let_go_, ElementsAre(kLogB));
  EXPECT_FALSE(asker.ended);
  TakeBack();
  ASSERT_EQ(asker.replies.size(), 1u);
  EXPECT_TRUE(
      std::holds_alternative<recovery::Promised>(asker.replies.front()));
  EXPECT_EQ(world_->State(kLogB).superline.promised_epoch, Epoch(6));
  EXPECT_EQ(server().counters().wanted, 1u);
  EXPECT_EQ(server().counters().failed, 0u);
}

TEST_F(ReplicaServerClaimTest, LowerBallotIsRefusedAndNotTold) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  for (const Epoch epoch : {Epoch(4), Epoch(5)}) {
    EXPECT_EQ(world_->Ask(asker, Prepare{{epoch, asker.self()}}),
              Message(recovery::Refused{kHeld}));
  }
  EXPECT_THAT(primary.replies, IsEmpty());
  // The same connection may go above it.
  PrepareOf(asker, Epoch(6));
  EXPECT_EQ(primary.replies.size(), 1u);
}

// OSV3: a primary steps down for nobody that did not know of it.
TEST_F(ReplicaServerClaimTest, LateOpenerIsRefusedAndNotTold) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  EXPECT_EQ(world_->Ask(asker, Prepare{{Epoch(9), asker.self()}, 1, Epoch(4)}),
            Message(recovery::Refused{kHeld}));
  EXPECT_THAT(primary.replies, IsEmpty());
  EXPECT_FALSE(primary.ended);
  asker.Send(Prepare{{Epoch(9), asker.self()}, 1, kHeld.epoch});
  world_->Run(kMillisecond);
  EXPECT_THAT(primary.replies,
              ElementsAre(Message(Wanted{{Epoch(9), asker.self()}})));
}

TEST_F(ReplicaServerClaimTest, WhoOnlyLooksDeposesNobody) {
  Peer& primary = Claiming();
  uint64_t incarnation = 0;
  for (const Message& message :
       {Message(recovery::View{}), Message(recovery::Follow{}),
        Message(recovery::Release{}),
        Message(recovery::Format{1 << 20, MembersOf(), "b"}),
        Message(recovery::OpenForRepair{Epoch(9), false})}) {
    EXPECT_EQ(FailedWith(world_->Ask(Asker(2, ++incarnation), message)),
              absl::StatusCode::kUnavailable)
        << message.index();
  }
  EXPECT_THAT(primary.replies, IsEmpty());
  EXPECT_FALSE(primary.ended);
}

// Goal: a peer that asks how the replica stands is told, also if a primary has
// claimed it: by its superline, and whether that primary said that it holds it.
TEST_F(ReplicaServerClaimTest, StandingOfAClaimedReplicaIsTold) {
  const auto ask = [this](uint64_t incarnation) {
    const auto reply = world_->Ask(Asker(2, incarnation), recovery::Follow{});
    EXPECT_TRUE(reply && std::holds_alternative<Followed>(*reply));
    return std::get<Followed>(*reply);
  };
  const RegionState state = world_->State(kLogB);
  followed_ = recovery::FollowedOfClaimed(
      world_->pmem(kLogB).region(), kCluster, kLogB, state.superline.node);
  ASSERT_TRUE(followed_.has_value());
  followed_->log_epoch = kHeld.epoch;
  Peer& primary = Claiming();
  const Followed said = ask(1);
  EXPECT_TRUE(said.is_claimed);
  EXPECT_TRUE(said.in_session);
  EXPECT_EQ(said.configuration_id, state.superline.configuration.id);
  EXPECT_EQ(said.head.lsn, state.superline.head_lsn);
  EXPECT_FALSE(said.end.has_value());
  EXPECT_EQ(said.certificate_end_s, kCertificateEnd);
  followed_->log_epoch = kHeld.epoch + 1;  // of another one, since
  EXPECT_FALSE(ask(2).in_session);
  EXPECT_THAT(primary.replies, IsEmpty());
  EXPECT_FALSE(primary.ended);
}

// LPR7. The process that has the region may end at any moment.
TEST_F(ReplicaServerClaimTest, RegionThatIsLeftDuringAnAdmissionIsNotClaimed) {
  int questions = 0;
  regions_.when_asked = [&] {
    if (++questions == 2) AddLogB();
  };
  Peer& peer = ConnectedAs(kLocalPrimary);
  regions_.when_asked = nullptr;
  if (questions < 2) TakeBack();
  EXPECT_TRUE(peer.ended);
  Peer& again = ConnectedAs({kNode, 78});
  const auto reply = world_->Ask(again, recovery::Hear());
  ASSERT_TRUE(reply && std::holds_alternative<recovery::Heard>(*reply));
  EXPECT_EQ(std::get<recovery::Heard>(*reply).word,
            recovery::PrimaryWord::kGone);
}

TEST_F(ReplicaServerClaimTest, OlderConfigurationDeposesNobody) {
  server_hello_->configuration_id = 3;
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  EXPECT_EQ(
      FailedWith(world_->Ask(asker, Prepare{{Epoch(9), asker.self()}, 2})),
      absl::StatusCode::kFailedPrecondition);
  Peer& liar = Asker(2, 2);
  EXPECT_EQ(
      FailedWith(world_->Ask(liar, Prepare{{Epoch(9), {NodeId(9), 9}}, 3})),
      absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(primary.replies, IsEmpty());
}

TEST_F(ReplicaServerClaimTest, OnlyAProcessOfTheMachineMayClaim) {
  // Nobody holds the log: others hear that it is not served.
  Peer& other = world_->NewPeer(2, 1);
  other.Connect(world_->address(), other.HelloOf(kLogB));
  world_->Run(kMillisecond);
  EXPECT_EQ(other.rejection, absl::UnavailableError("another process has it"));
  Claiming();
  Peer& far = Asker(2, 2);
  EXPECT_EQ(FailedWith(world_->Ask(far, Claim{{Epoch(9), far.self()}})),
            absl::StatusCode::kFailedPrecondition);
  Peer& liar = ConnectedAs({kNode, 5});
  EXPECT_EQ(FailedWith(world_->Ask(liar, Claim{kHeld})),
            absl::StatusCode::kInvalidArgument);
  // A replica that the node has itself is claimed by nobody else.
  EXPECT_EQ(FailedWith(world_->Ask(world_->Connected(1, 6),
                                   Claim{{Epoch(9), {NodeId(2), 6}}})),
            absl::StatusCode::kFailedPrecondition);
}

// The node may hear of the next one before it hears that the last one is gone.
TEST_F(ReplicaServerClaimTest, NewestPrimaryIsAskedAndWhoWaitsIsJudgedAgain) {
  Peer& first = Claiming();
  Peer& low = Asker(2, 1);
  Peer& high = Asker(2, 2);
  PrepareOf(low, Epoch(6));
  PrepareOf(high, Epoch(9));
  EXPECT_EQ(first.replies.size(), 1u);
  const quorum::Promise later{Epoch(8), {kNode, 78}};
  Peer& second = ConnectedAs(later.primary);
  EXPECT_EQ(world_->Ask(second, Claim{later}),
            Message(Wanted{{Epoch(9), high.self()}}));
  EXPECT_TRUE(first.ended);
  EXPECT_THAT(low.replies, ElementsAre(Message(recovery::Refused{later})));
  EXPECT_THAT(high.replies, IsEmpty());
  // It did not step down, and says so: it is told again of the peer that waits.
  EXPECT_EQ(world_->Ask(second, Claim{later}),
            Message(Wanted{{Epoch(9), high.self()}}));
}

TEST_F(ReplicaServerClaimTest, PrimaryThatAsksForItsOwnPromiseIsToldSo) {
  Claiming();
  Peer& same = ConnectedAs(kLocalPrimary);
  EXPECT_EQ(FailedWith(world_->Ask(same, Prepare{kHeld})),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ReplicaServerClaimTest, WhoWaitsForAnotherReplicaBeginsAgain) {
  Claiming();
  server_hello_->incarnation += 1;
  Peer& asker = Asker(2, 1);
  PrepareOf(asker, Epoch(6));
  Peer& idle = Asker(2, 2);
  TakeBack();
  EXPECT_TRUE(asker.ended);
  EXPECT_TRUE(idle.ended);
  EXPECT_EQ(server().connection_count(), 0u);
}

// An asker hears the last word of the local primary, until the primary has
// ended a pass.
TEST_F(ReplicaServerClaimTest, ScrubIsRelayedToThePrimary) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  recovery::Scrubbed said;
  const auto ask = [&](bool start) {
    const auto reply = world_->Ask(asker, Scrub{start});
    const auto* scrubbed =
        reply ? std::get_if<recovery::Scrubbed>(&*reply) : nullptr;
    EXPECT_NE(scrubbed, nullptr);
    return scrubbed != nullptr ? *scrubbed : recovery::Scrubbed();
  };
  const auto claim = [&] {
    primary.Send(Claim{kHeld, said});
    world_->Run(kMillisecond);
  };
  EXPECT_TRUE(ask(true).is_running);
  EXPECT_THAT(primary.replies, ElementsAre(Message(Scrub{true})));
  // Somebody else begins one before the local primary has replied.
  EXPECT_TRUE(ask(true).is_running);
  EXPECT_EQ(primary.replies.size(), 1u);
  said.is_running = true;
  claim();
  EXPECT_THAT(primary.replies, ElementsAre(Scrub{true}, Scrub{true}));
  said.pass.records = 17;
  claim();
  EXPECT_EQ(primary.replies.size(), 2u);
  // A peer that only asks is told, and the local primary is asked for news.
  EXPECT_EQ(ask(false), said);
  EXPECT_EQ(primary.replies.back(), Message(Scrub{false}));
  said.is_running = false;
  said.passes = 1;
  claim();
  EXPECT_EQ(ask(false), said);
  EXPECT_FALSE(primary.ended);
}

TEST_F(ReplicaServerClaimTest, ScrubOfAReplicaThatNobodyClaimsIsRefused) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  ASSERT_TRUE(primary.Close().ok());
  world_->Run(kMillisecond);
  EXPECT_EQ(FailedWith(world_->Ask(asker, Scrub{true})),
            absl::StatusCode::kUnavailable);
}

// --- Changes of the members --------------------------------------------------

recovery::AskChange ChangeOf(uint64_t id) {
  const quorum::QuorumSizes sizes{3, 2, 2};
  const std::vector<NodeId> from = {NodeId(1), NodeId(2), NodeId(3)};
  const std::vector<NodeId> to = {NodeId(1), NodeId(2), NodeId(4)};
  return {id, {1, sizes, from, 2, sizes, to, {}}, {{NodeId(4), "sim:4:1"}}};
}

recovery::ChangeState SaidOf(uint64_t id, recovery::ChangeWord word) {
  recovery::ChangeState said;
  said.id = id;
  said.word = word;
  said.epoch = kHeld.epoch;
  return said;
}

// LPR4, LPR6: two operators ask. Each hears of its own change.
TEST_F(ReplicaServerClaimTest, ChangeIsRelayedToThePrimary) {
  using recovery::ChangeWord;
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  Peer& other = Asker(2, 2);
  const auto ask = [&](Peer& peer, uint64_t id) {
    const auto reply = world_->Ask(peer, ChangeOf(id));
    world_->Run(kMillisecond);  // the primary hears of it, too
    const auto* said =
        reply ? std::get_if<recovery::ChangeState>(&*reply) : nullptr;
    EXPECT_NE(said, nullptr);
    return said != nullptr ? *said : recovery::ChangeState();
  };
  const auto claim = [&](const recovery::ChangeState& said) {
    primary.Send(Claim{kHeld, {}, said});
    world_->Run(kMillisecond);
  };
  EXPECT_EQ(ask(asker, 7), SaidOf(7, ChangeWord::kWaiting));
  EXPECT_THAT(primary.replies, ElementsAre(Message(ChangeOf(7))));
  EXPECT_EQ(ask(other, 8), SaidOf(8, ChangeWord::kWaiting));
  EXPECT_EQ(primary.replies.size(), 1u) << "one request at a time";
  claim(SaidOf(7, ChangeWord::kRunning));
  EXPECT_THAT(primary.replies, ElementsAre(ChangeOf(7), ChangeOf(8)));
  recovery::ChangeState busy = SaidOf(8, ChangeWord::kWaiting);
  busy.why = absl::UnavailableError("busy");
  claim(busy);
  EXPECT_EQ(ask(asker, 7), SaidOf(7, ChangeWord::kRunning));
  EXPECT_EQ(ask(other, 8), busy);
  EXPECT_EQ(primary.replies.back(), Message(ChangeOf(7)));
  // A primary that opened the next epoch says Claim anew.
  const quorum::Promise next{kHeld.epoch + 1, kLocalPrimary};
  Peer& again = ConnectedAs(kLocalPrimary);
  recovery::ChangeState made = SaidOf(7, ChangeWord::kInstalled);
  made.epoch = next.epoch;
  again.Send(Claim{next, {}, made});
  world_->Run(kMillisecond);
  EXPECT_EQ(ask(asker, 7), made);
  EXPECT_FALSE(again.ended);
}

// It may be opening the next epoch, and says Claim again.
TEST_F(ReplicaServerClaimTest, ChangeWaitsForAPrimaryThatSaysNothing) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  ASSERT_TRUE(primary.Close().ok());
  world_->Run(kMillisecond);
  const auto reply = world_->Ask(asker, ChangeOf(7));
  ASSERT_TRUE(reply.has_value());
  recovery::ChangeState said = SaidOf(7, recovery::ChangeWord::kWaiting);
  said.epoch = Epoch(0);
  EXPECT_EQ(*reply, Message(said));
}

// Openers come first, and nobody steps down for a change.
TEST_F(ReplicaServerClaimTest, PromiseIsWantedBeforeAChange) {
  Peer& primary = Claiming();
  world_->Ask(Asker(2, 1), Scrub{});
  Peer& operators = Asker(2, 2);
  world_->Ask(operators, ChangeOf(7));
  Peer& asker = Asker(2, 3);
  PrepareOf(asker, Epoch(6));
  EXPECT_THAT(primary.replies, ElementsAre(Message(Scrub{})));
  primary.Send(Claim{kHeld});
  world_->Run(kMillisecond);
  EXPECT_EQ(primary.replies.back(), Message(Wanted{{Epoch(6), asker.self()}}));
}

// A node that serves the replica itself says that nobody is here.
TEST_F(ReplicaServerClaimTest, ChangeOfAServedLogHasNobody) {
  const auto reply = world_->Ask(world_->Connected(2, 1), ChangeOf(7));
  ASSERT_TRUE(reply && std::holds_alternative<recovery::ChangeState>(*reply));
  const auto& said = std::get<recovery::ChangeState>(*reply);
  EXPECT_EQ(said.id, 7u);
  EXPECT_EQ(said.word, recovery::ChangeWord::kNobody);
  EXPECT_TRUE(absl::IsUnavailable(said.why));
}

// The local primary is in the middle of a scrub's question: it hears of the
// promise when it has replied, and if it does not it counts as stuck.
TEST_F(ReplicaServerClaimTest, PromiseIsWantedBehindAScrub) {
  for (const bool replies : {true, false}) {
    SCOPED_TRACE(replies);
    Peer& primary = Claiming();
    primary.replies.clear();
    world_->Ask(Asker(2, 1), Scrub{});
    Peer& asker = Asker(2, 2);
    PrepareOf(asker, Epoch(6));
    EXPECT_THAT(primary.replies, ElementsAre(Message(Scrub{})));
    if (replies) {
      primary.Send(Claim{kHeld});
      world_->Run(kMillisecond);
      EXPECT_EQ(primary.replies.back(),
                Message(Wanted{{Epoch(6), asker.self()}}));
      ASSERT_TRUE(asker.Close().ok());
      continue;
    }
    world_->Run(25 * kMillisecond);
    EXPECT_TRUE(asker.ended);
  }
}

// --- Requests for bytes of its ring ------------------------------------------

constexpr recovery::Fetch kFetch{RingOffset(128), 64};
constexpr recovery::Fetch kOtherFetch{RingOffset(256), 100};

recovery::Fetched ShownFor(const recovery::Fetch& fetch, size_t bytes) {
  return {fetch.from, std::vector<std::byte>(bytes, std::byte{7})};
}

TEST_F(ReplicaServerClaimTest, FetchIsRelayedAndItsAnswerHandedOn) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  for (const size_t bytes : {64, 10, 0}) {
    primary.replies.clear();
    asker.replies.clear();
    asker.Send(kFetch);
    world_->Run(kMillisecond);
    ASSERT_THAT(primary.replies, ElementsAre(Message(kFetch)));
    EXPECT_THAT(asker.replies, IsEmpty());
    primary.Send(ShownFor(kFetch, bytes));
    world_->Run(kMillisecond);
    EXPECT_THAT(asker.replies, ElementsAre(Message(ShownFor(kFetch, bytes))));
  }
  // It is no way to make a primary step down, and it holds on.
  EXPECT_FALSE(primary.ended);
  primary.replies.clear();
  PrepareOf(asker, Epoch(6));
  EXPECT_THAT(primary.replies,
              ElementsAre(Message(Wanted{{Epoch(6), asker.self()}})));
}

TEST_F(ReplicaServerClaimTest, FetchesGoToThePrimaryOneAfterTheOther) {
  Peer& primary = Claiming();
  Peer& first = Asker(2, 1);
  Peer& next = Asker(2, 2);
  first.Send(kFetch);
  world_->Run(kMillisecond);
  next.Send(kOtherFetch);
  world_->Run(kMillisecond);
  EXPECT_THAT(primary.replies, ElementsAre(Message(kFetch)));
  primary.Send(ShownFor(kFetch, 64));
  world_->Run(kMillisecond);
  EXPECT_THAT(first.replies, ElementsAre(Message(ShownFor(kFetch, 64))));
  EXPECT_THAT(next.replies, IsEmpty());
  EXPECT_THAT(primary.replies, ElementsAre(kFetch, kOtherFetch));
  primary.Send(ShownFor(kOtherFetch, 100));
  world_->Run(kMillisecond);
  EXPECT_THAT(next.replies, ElementsAre(Message(ShownFor(kOtherFetch, 100))));
}

// LPR2. The bytes are of another place, or more than were asked for.
TEST_F(ReplicaServerClaimTest, PrimaryThatShowsOtherBytesIsRefused) {
  for (const recovery::Fetched& other :
       {ShownFor(kOtherFetch, 64), ShownFor(kFetch, 65),
        ShownFor(kFetch, recovery::kFetchBytesMax)}) {
    Peer& primary = Claiming();
    Peer& asker = Asker(2, 1);
    asker.Send(kFetch);
    world_->Run(kMillisecond);
    primary.replies.clear();
    EXPECT_EQ(FailedWith(world_->Ask(primary, other)),
              absl::StatusCode::kInvalidArgument);
    world_->Run(kMillisecond);
    ASSERT_EQ(asker.replies.size(), 1u);
    EXPECT_EQ(FailedWith(asker.replies.front()),
              absl::StatusCode::kUnavailable);
  }
}

TEST_F(ReplicaServerClaimTest, BytesThatNobodyAskedForAreRefused) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  EXPECT_EQ(FailedWith(world_->Ask(asker, ShownFor(kFetch, 64))),
            absl::StatusCode::kInvalidArgument);
  // The local primary was told something else.
  world_->Ask(Asker(2, 2), Scrub{});
  primary.replies.clear();
  EXPECT_EQ(FailedWith(world_->Ask(primary, ShownFor(kFetch, 64))),
            absl::StatusCode::kInvalidArgument);
  // A replica that is served has no local primary.
  EXPECT_EQ(
      FailedWith(world_->Ask(world_->Connected(2, 3), ShownFor(kFetch, 64))),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(ReplicaServerClaimTest, PrimaryThatEndsShowsNothing) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  Peer& late = Asker(2, 2);
  asker.Send(kFetch);
  world_->Run(kMillisecond);
  ASSERT_TRUE(primary.Close().ok());
  world_->Run(kMillisecond);
  ASSERT_EQ(asker.replies.size(), 1u);
  EXPECT_EQ(FailedWith(asker.replies.front()), absl::StatusCode::kUnavailable);
  EXPECT_EQ(FailedWith(world_->Ask(late, kFetch)),
            absl::StatusCode::kUnavailable);
}

// The primary's process is stopped. Bytes that it shows later are nobody's any
// more.
TEST_F(ReplicaServerClaimTest, PrimaryThatIsSilentIsWaitedForNotLong) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  asker.Send(kFetch);
  world_->Run(9 * kMillisecond);
  EXPECT_THAT(asker.replies, IsEmpty());
  world_->Run(3 * kMillisecond);
  ASSERT_EQ(asker.replies.size(), 1u);
  EXPECT_EQ(FailedWith(asker.replies.front()), absl::StatusCode::kUnavailable);
  Peer& next = Asker(2, 2);
  next.Send(kOtherFetch);
  world_->Run(kMillisecond);
  primary.Send(ShownFor(kFetch, 64));
  world_->Run(kMillisecond);
  EXPECT_THAT(next.replies, IsEmpty());
  EXPECT_EQ(primary.replies.back(), Message(kOtherFetch));
  primary.Send(ShownFor(kOtherFetch, 1));
  world_->Run(kMillisecond);
  EXPECT_THAT(next.replies, ElementsAre(Message(ShownFor(kOtherFetch, 1))));
}

// One process after the other: the next one is told what was not shown.
TEST_F(ReplicaServerClaimTest, NextPrimaryShowsWhatTheLastOneDidNot) {
  Claiming();
  Peer& asker = Asker(2, 1);
  asker.Send(kFetch);
  world_->Run(kMillisecond);
  const quorum::Promise later{Epoch(8), {kNode, 78}};
  Peer& second = ConnectedAs(later.primary);
  EXPECT_EQ(world_->Ask(second, Claim{later}), Message(kFetch));
  second.Send(ShownFor(kFetch, 3));
  world_->Run(kMillisecond);
  EXPECT_THAT(asker.replies, ElementsAre(Message(ShownFor(kFetch, 3))));
}

TEST_F(ReplicaServerClaimTest, PromiseIsWantedBeforeTheNextFetch) {
  Peer& primary = Claiming();
  Peer& fetcher = Asker(2, 1);
  Peer& other = Asker(2, 2);
  Peer& asker = Asker(2, 3);
  fetcher.Send(kFetch);
  world_->Run(kMillisecond);
  other.Send(kOtherFetch);
  PrepareOf(asker, Epoch(6));
  primary.Send(ShownFor(kFetch, 64));
  world_->Run(kMillisecond);
  EXPECT_THAT(
      primary.replies,
      ElementsAre(Message(kFetch), Message(Wanted{{Epoch(6), asker.self()}})));
  EXPECT_EQ(fetcher.replies.size(), 1u);
  // The node serves the replica: a peer that waits for bytes connects again.
  ASSERT_TRUE(primary.Close().ok());
  TakeBack();
  EXPECT_EQ(asker.replies.size(), 1u);
  EXPECT_TRUE(other.ended);
}

// The primary's process is stopped: an opener that can do without it does not
// wait.
TEST_F(ReplicaServerClaimTest, PrimaryThatDoesNotStepDownIsNotWaitedForLong) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  PrepareOf(asker, Epoch(6));
  world_->Run(15 * kMillisecond);
  EXPECT_FALSE(asker.ended);
  world_->Run(10 * kMillisecond);
  EXPECT_TRUE(asker.ended);
  ASSERT_THAT(world_->reports(), ElementsAre(HasSubstr("does not step down")));
  EXPECT_FALSE(primary.ended);
  const auto try_again = [&](uint64_t incarnation) -> Peer& {
    Peer& peer = world_->NewPeer(2, incarnation);
    peer.Connect(world_->address(), peer.HelloOf(kLogB));
    world_->Run(kMillisecond);
    return peer;
  };
  EXPECT_EQ(
      try_again(2).rejection,
      absl::UnavailableError("its primary is stopped, or does not listen"));
  // It goes on, and begins again.
  primary.Send(Claim{kHeld});
  world_->Run(kMillisecond);
  Peer& late = try_again(3);
  ASSERT_TRUE(late.established) << late.rejection;
  PrepareOf(late, Epoch(6));
  EXPECT_EQ(server().counters().wanted, 2u);
}

// The node is to take the region back, and can't.
TEST_F(ReplicaServerClaimTest, WhoWaitsForTheNodeIsEndedAsWhoSaysNothing) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  PrepareOf(asker, Epoch(6));
  ASSERT_TRUE(primary.Close().ok());
  world_->Run(90 * kMillisecond);
  EXPECT_FALSE(asker.ended);
  world_->Run(20 * kMillisecond);
  EXPECT_TRUE(asker.ended);
}

// A primary that says something else than what is its turn.
TEST_F(ReplicaServerClaimTest, NotifiedPrimaryThatFailsIsForgotten) {
  Peer& primary = Claiming();
  Peer& asker = Asker(2, 1);
  PrepareOf(asker, Epoch(6));
  primary.replies.clear();
  EXPECT_EQ(FailedWith(world_->Ask(primary, recovery::View{})),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(let_go_, ElementsAre(kLogB));
  Peer& late = world_->NewPeer(2, 2);
  late.Connect(world_->address(), late.HelloOf(kLogB));
  world_->Run(kMillisecond);
  EXPECT_FALSE(late.established);
}

class KeptReplicaTest : public ReplicaServerClaimTest {
 protected:
  KeptReplicaTest() : ReplicaServerClaimTest({Key(), &node_random}) {}

  static quorum::ClusterKey Key() {
    std::array<std::byte, quorum::kClusterKeyBytes> bytes{};
    bytes.fill(std::byte{1});
    return quorum::ClusterKey(bytes);
  }
  void Prove(Peer& peer, const quorum::PrimaryId& process) {
    recovery::PrimaryHandshake handshake({Key(), &random_});
    recovery::Hello hello = peer.HelloOf(kLogB);
    hello.primary = process;
    const auto challenged =
        world_->Ask(peer, handshake.Begin(hello, *peer.server_hello));
    ASSERT_TRUE(challenged &&
                std::holds_alternative<recovery::Challenged>(*challenged));
    const auto prove =
        handshake.Reply(std::get<recovery::Challenged>(*challenged));
    ASSERT_TRUE(prove.ok()) << prove.status();
    EXPECT_EQ(world_->Ask(peer, *prove), Message(recovery::Proved{}));
  }

  static inline Random node_random{1};
  Random random_{2};
};

TEST_F(KeptReplicaTest, UnauthenticatedClientIsShownNothing) {
  Peer& primary = ConnectedAs(kLocalPrimary);
  Prove(primary, kLocalPrimary);
  primary.Send(Claim{kHeld});
  world_->Run(kMillisecond);
  EXPECT_EQ(FailedWith(world_->Ask(Asker(2, 1), kFetch)),
            absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(primary.replies, IsEmpty());
}

// LPR1.
TEST_F(KeptReplicaTest, UnauthenticatedClientDeposesNobody) {
  Peer& primary = ConnectedAs(kLocalPrimary);
  Prove(primary, kLocalPrimary);
  primary.Send(Claim{kHeld});
  world_->Run(kMillisecond);
  Peer& unauthenticated = Asker(2, 1);
  EXPECT_EQ(FailedWith(world_->Ask(
                unauthenticated, Prepare{{Epoch(9), unauthenticated.self()}})),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(FailedWith(world_->Ask(ConnectedAs({kNode, 9}),
                                   Claim{{Epoch(9), {kNode, 9}}})),
            absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(primary.replies, IsEmpty());
  Peer& member = Asker(2, 2);
  Prove(member, member.self());
  PrepareOf(member, Epoch(9));
  EXPECT_EQ(primary.replies.size(), 1u);
}

}  // namespace
}  // namespace alpheus::testing
