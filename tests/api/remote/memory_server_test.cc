// SPDX-License-Identifier: Apache-2.0
// The node's side: which clients are let in, what they get, and what they never
// write.
#include "api/remote/memory_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/remote/token_proof.h"
#include "log/base/bytes.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/client_messages.h"
#include "replication/wire/message_slots.h"
#include "tests/api/remote/memory_world.h"

namespace alpheus::testing {

using fabric::CompletionStatus;
using recovery::ClientMessage;
using remote::MemoryClient;

namespace {

using ::testing::HasSubstr;

// A peer that posts what it likes: a client of another hand.
class RawClient final : public PeerSink {
 public:
  RawClient(MemoryWorld& world, const std::string& private_data, int host = 0)
      : world_(world),
        host_(host),
        memory_(*replication::MessageSlots::Make(
            world.at(host), 2, recovery::kClientMessageBytesMax)) {
    id_ = *world.at(host).Connect(world.address, private_data, Deadline());
    world.peers[host].push_back(this);
  }
  ~RawClient() override {
    std::erase(world_.peers[host_], this);
    world_.at(host_).Close(id_).IgnoreError();
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // Lets things happen until an event comes.
  fabric::ConnectionEvent Event() {
    for (int i = 0; i < 100'000 && events_.empty(); ++i) {
      world_.Step();
    }
    EXPECT_FALSE(events_.empty());
    if (events_.empty()) return {};
    const fabric::ConnectionEvent event = events_.front();
    events_.erase(events_.begin());
    return event;
  }
  fabric::Completion Completion() {
    for (int i = 0; i < 100'000 && completions_.empty(); ++i) {
      world_.Step();
    }
    EXPECT_FALSE(completions_.empty());
    if (completions_.empty()) return {};
    const fabric::Completion completion = completions_.front();
    completions_.erase(completions_.begin());
    return completion;
  }

  void Send(std::span<const std::byte> bytes) {
    ASSERT_TRUE(world_.at(host_)
                    .PostReceive(id_, fabric::WorkId(1), memory_->At(0))
                    .ok());
    fabric::LocalBytes slot = memory_->At(1);
    std::ranges::copy(bytes, slot.bytes.begin());
    slot.bytes = slot.bytes.first(bytes.size());
    ASSERT_TRUE(world_.at(host_).PostSend(id_, fabric::WorkId(2), slot).ok());
  }
  // Sends a message; returns the reply.
  ClientMessage Ask(const ClientMessage& message) {
    Send(recovery::EncodeClientMessage(LogId(), message));
    for (;;) {
      const fabric::Completion completion = Completion();
      EXPECT_EQ(completion.status, CompletionStatus::kOk);
      if (completion.status != CompletionStatus::kOk) return {};
      if (completion.operation == fabric::Operation::kSend) continue;
      auto reply = recovery::DecodeClientMessage(
          LogId(), memory_->At(0).bytes.first(completion.bytes));
      EXPECT_TRUE(reply.ok()) << reply.status();
      return *reply;
    }
  }
  static Uuid LogId() { return quorum::LogIdOf(kRemoteCluster, "main"); }
  static recovery::ClientHello HelloOf(const TestToken& token) {
    return {.cluster_id = kRemoteCluster,
            .log_id = LogId(),
            .token_name = remote::TokenNameOf(token.entry.sha256)};
  }
  fabric::ConnectionId id() const { return id_; }
  fabric::LocalBytes memory() { return memory_->At(1); }

  void OnConnectionEvent(const fabric::ConnectionEvent& event) override {
    if (event.connection == id_) events_.push_back(event);
  }
  void OnCompletion(const fabric::Completion& completion) override {
    if (completion.connection == id_) completions_.push_back(completion);
  }

 private:
  MemoryWorld& world_;
  const int host_;
  std::unique_ptr<replication::MessageSlots> memory_;
  fabric::ConnectionId id_;
  std::vector<fabric::ConnectionEvent> events_;
  std::vector<fabric::Completion> completions_;
};

recovery::ClientRefused RefusalIn(const ClientMessage& message) {
  const auto* refused = std::get_if<recovery::ClientRefused>(&message);
  EXPECT_NE(refused, nullptr);
  return refused == nullptr ? recovery::ClientRefused{} : *refused;
}

// Proves a token, as a client of another hand would.
ClientMessage ProveBy(RawClient& client, const TestToken& token,
                      const std::string& shown) {
  const fabric::ConnectionEvent event = client.Event();
  EXPECT_EQ(event.kind, fabric::ConnectionEvent::Kind::kEstablished);
  const auto welcome = recovery::DecodeClientWelcome(event.private_data);
  EXPECT_TRUE(welcome.ok()) << welcome.status();
  const remote::ClientTranscript said = {
      RawClient::HelloOf(token), *welcome, {5, 6}};
  return client.Ask(recovery::ClientProof{
      said.nonce, remote::MaskToken(shown, token.entry.sha256, said)});
}

TEST(MemoryServerTest, TokenOpensWhatItsRoleMay) {
  MemoryWorld world;
  EXPECT_TRUE(world.Open(world.Reading(world.reader.token))->is_open());
  EXPECT_TRUE(world.Open(world.Updating(world.writer.token))->is_open());
  EXPECT_TRUE(world.Open(world.Updating(world.admin.token))->is_open());
  const auto refused = world.Open(world.Updating(world.reader.token));
  EXPECT_TRUE(absl::IsPermissionDenied(refused->status())) << refused->status();
  EXPECT_THAT(refused->status().message(), HasSubstr("the role read"));
  EXPECT_EQ(world.server->counters().opened, 6U);
}

TEST(MemoryServerTest, UnknownExpiredAndOtherTokensAreRefused) {
  MemoryWorld world;
  const auto unknown = world.Open(world.Reading("alph_unknown"));
  EXPECT_TRUE(absl::IsUnauthenticated(unknown->status())) << unknown->status();
  const auto other = world.Open(world.Reading(world.other.token));
  EXPECT_TRUE(absl::IsPermissionDenied(other->status())) << other->status();
  EXPECT_THAT(other->status().message(), HasSubstr("not for log main"));
  TestToken old = world.reader;
  old.entry.expires_s = world.wall.now;
  world.access->Replace({old.entry});
  const auto expired = world.Open(world.Reading(old.token));
  EXPECT_TRUE(absl::IsUnauthenticated(expired->status())) << expired->status();
  EXPECT_THAT(expired->status().message(), HasSubstr("has expired"));
  EXPECT_EQ(world.server->counters().opened, 0U);
}

TEST(MemoryServerTest, RegionsThatAreNotOfferedSoAreRefused) {
  MemoryWorld world;
  remote::MemoryClientOptions options = world.Reading(world.admin.token);
  options.read = {"nothing"};
  EXPECT_TRUE(absl::IsNotFound(world.Open(options)->status()));
  options.read = {"inbox"};
  EXPECT_TRUE(absl::IsPermissionDenied(world.Open(options)->status()));
  options.read = {};
  options.updated = "ring";
  const auto writing = world.Open(options);
  EXPECT_TRUE(absl::IsPermissionDenied(writing->status()));
  EXPECT_THAT(writing->status().message(), HasSubstr("for reads only"));
}

// RMS2: whoever has all roles, and posts what he likes with the key that he
// got, changes no byte of the ring.
TEST(MemoryServerTest, NoClientWritesTheRing) {
  const std::function<absl::Status(fabric::Fabric&, RawClient&,
                                   fabric::RemoteAddress)>
      attempts[] = {
          [](auto& fabric, auto& client, auto to) {
            return fabric.PostWrite(client.id(), fabric::WorkId(9),
                                    client.memory(), to);
          },
          [](auto& fabric, auto& client, auto to) {
            return fabric.PostWriteImmediate(client.id(), fabric::WorkId(9),
                                             client.memory(), to, 1);
          },
          [](auto& fabric, auto& client, auto to) {
            fabric::LocalBytes word = client.memory();
            word.bytes = word.bytes.first(8);
            return fabric.PostCompareSwap(client.id(), fabric::WorkId(9), word,
                                          to, 0, 1);
          },
          [](auto& fabric, auto& client, auto to) {
            fabric::LocalBytes word = client.memory();
            word.bytes = word.bytes.first(8);
            return fabric.PostFetchAdd(client.id(), fabric::WorkId(9), word, to,
                                       1);
          },
      };
  for (const auto& attempt : attempts) {
    MemoryWorld world;
    const std::vector<std::byte> before(world.ring().begin(),
                                        world.ring().end());
    RawClient client(world, EncodeClientHello(RawClient::HelloOf(world.admin)));
    ProveBy(client, world.admin, world.admin.token);
    const auto opened = std::get<recovery::MemoryOpened>(
        client.Ask(recovery::OpenMemory{"ring", false}));
    std::ranges::fill(client.memory().bytes, std::byte{0xff});
    ASSERT_TRUE(attempt(world.at(0), client, {opened.key, 0}).ok());
    fabric::Completion completion = client.Completion();
    while (completion.work != fabric::WorkId(9)) {
      completion = client.Completion();
    }
    EXPECT_EQ(completion.status, CompletionStatus::kRemoteAccess);
    world.Settle();
    EXPECT_TRUE(std::ranges::equal(world.ring(), before));
  }
}

// A key of the inbox reaches nothing beside it, and the place in an update's
// message is checked, too.
TEST(MemoryServerTest, UpdaterReachesNothingBesideItsRegion) {
  MemoryWorld world;
  RawClient client(world, EncodeClientHello(RawClient::HelloOf(world.writer)));
  ProveBy(client, world.writer, world.writer.token);
  const auto opened = std::get<recovery::MemoryOpened>(
      client.Ask(recovery::OpenMemory{"inbox", true}));
  EXPECT_EQ(opened.bytes, kInboxBytes);
  ASSERT_TRUE(world.at(0)
                  .PostWrite(client.id(), fabric::WorkId(9), client.memory(),
                             {opened.key, kInboxBytes - 8})
                  .ok());
  fabric::Completion completion = client.Completion();
  while (completion.work != fabric::WorkId(9)) completion = client.Completion();
  EXPECT_EQ(completion.status, CompletionStatus::kRemoteAccess);
}

TEST(MemoryServerTest, MemoryIsOfferedForReadsOrForUpdates) {
  MemoryWorld world;
  const auto updates = [&](const std::string& name,
                           std::span<std::byte> bytes) {
    return world.server->Offer(
        {.name = name,
         .memory =
             std::make_unique<remote::UpdatedMemoryOf<model::ModelPersistence>>(
                 world.memory, bytes),
         .updaters = rpc::Role::kAppend});
  };
  const auto reads = [&](const std::string& name,
                         std::span<const std::byte> bytes) {
    return world.server->Offer(
        {.name = name, .bytes = bytes, .readers = rpc::Role::kRead});
  };
  // Touching, by one line, from either side.
  EXPECT_TRUE(absl::IsInvalidArgument(
      updates("a", world.memory.region().subspan(kRingBytes - 64, 64))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      reads("a", world.memory.region().subspan(kRingBytes - 64, 128))));
  EXPECT_TRUE(absl::IsInvalidArgument(updates("a", world.inbox().first(8))));
  EXPECT_TRUE(reads("a", world.ring().first(64)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(reads("a", world.ring().first(64))));
  EXPECT_TRUE(absl::IsInvalidArgument(reads("", world.ring())));
  EXPECT_TRUE(
      absl::IsInvalidArgument(reads(std::string(65, 'n'), world.ring())));
  EXPECT_TRUE(absl::IsInvalidArgument(reads("b", {})));
  // Protected memory.
  ASSERT_TRUE(world.server->Withdraw("inbox").ok());
  EXPECT_TRUE(absl::IsNotFound(world.server->Withdraw("inbox")));
  ASSERT_TRUE(world.server->Protect(world.inbox().first(64)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(updates("inbox", world.inbox())));
  EXPECT_TRUE(
      absl::IsInvalidArgument(updates("odd", world.inbox().subspan(68, 8))));
  EXPECT_TRUE(
      absl::IsInvalidArgument(updates("odd", world.inbox().subspan(72, 7))));
  EXPECT_TRUE(updates("inbox", world.inbox().subspan(64)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(world.server->Protect(world.inbox())));
}

// RMS3: what was in flight changes nothing any more.
TEST(MemoryServerTest, WithdrawalFencesItsClients) {
  MemoryWorld world;
  const auto writer = world.Open(world.Updating(world.writer.token));
  const auto reader = world.Open(world.Reading(world.reader.token), 2);
  ASSERT_TRUE(writer->is_open() && reader->is_open());
  std::vector<absl::Status> ends;
  ASSERT_TRUE(
      writer
          ->Update(0, std::vector<std::byte>(4096, std::byte{1}),
                   [&](const absl::Status& end) { ends.push_back(end); })
          .ok());
  while (world.inbox()[8] == std::byte{0}) world.Step();
  ASSERT_TRUE(world.server->Withdraw("inbox").ok());
  const std::vector<std::byte> then(world.inbox().begin(), world.inbox().end());
  EXPECT_LT(std::ranges::count(then, std::byte{1}), 4096);
  world.Settle();
  EXPECT_TRUE(std::ranges::equal(world.inbox(), then));
  ASSERT_TRUE(world.Run([&] { return ends.size() == 1; }));
  EXPECT_THAT(ends[0].message(), HasSubstr("outcome is unknown"));
  // The other has no key of it.
  std::vector<std::byte> into(8);
  EXPECT_TRUE(world.Read(*reader, 0, 0, into).ok());
  world.server->EndAll();
  EXPECT_EQ(world.server->connection_count(), 0U);
  EXPECT_FALSE(world.Read(*reader, 0, 0, into).ok());
}

// RMS4.
TEST(MemoryServerTest, RevokedTokenEndsItsClients) {
  MemoryWorld world;
  const auto writer = world.Open(world.Updating(world.writer.token));
  const auto reader = world.Open(world.Reading(world.reader.token), 2);
  ASSERT_TRUE(writer->is_open() && reader->is_open());
  world.access->Replace({world.writer.entry});
  world.Pass(remote::MemoryServer::kRecheckNanos);
  world.Settle();
  EXPECT_TRUE(writer->is_open());
  EXPECT_FALSE(reader->is_open());
  ASSERT_EQ(world.warnings.size(), 1U);
  EXPECT_THAT(world.warnings[0], HasSubstr("revoked"));
}

// Nothing is given before a proof; and no second one, and no other message.
TEST(MemoryServerTest, MessageOutOfTurnEndsItsClient) {
  const std::vector<std::function<void(MemoryWorld&, RawClient&)>> attempts = {
      [](MemoryWorld&, RawClient& client) {
        client.Event();
        EXPECT_TRUE(absl::IsInvalidArgument(
            RefusalIn(client.Ask(recovery::OpenMemory{"ring", false})).why));
      },
      [](MemoryWorld& world, RawClient& client) {
        ProveBy(client, world.admin, world.admin.token);
        EXPECT_TRUE(absl::IsInvalidArgument(
            RefusalIn(client.Ask(recovery::ClientProof{{1, 2}, "t"})).why));
      },
      [](MemoryWorld&, RawClient& client) {
        client.Event();
        EXPECT_TRUE(absl::IsInvalidArgument(
            RefusalIn(client.Ask(recovery::ClientProved{})).why));
      },
      [](MemoryWorld& world, RawClient& client) {
        client.Event();
        const auto bytes = recovery::EncodeClientMessage(
            RawClient::LogId(), recovery::OpenMemory{"ring", false});
        std::vector<std::byte> damaged(bytes.begin(), bytes.end());
        damaged[9] ^= std::byte{1};
        client.Send(damaged);
        world.Settle();
      },
  };
  for (const auto& attempt : attempts) {
    MemoryWorld world;
    RawClient client(world, EncodeClientHello(RawClient::HelloOf(world.admin)));
    attempt(world, client);
    world.Settle();
    EXPECT_EQ(world.server->connection_count(), 0U);
    EXPECT_EQ(world.server->counters().refused, 1U);
    EXPECT_EQ(world.server->counters().opened, 0U);
  }
}

// TPF2: whoever has the list of digests, and no token.
TEST(MemoryServerTest, DigestAloneIsNoToken) {
  MemoryWorld world;
  RawClient client(world, EncodeClientHello(RawClient::HelloOf(world.admin)));
  const std::string digest(AsText(world.admin.entry.sha256));
  EXPECT_TRUE(absl::IsUnauthenticated(
      RefusalIn(ProveBy(client, world.admin, digest)).why));
  EXPECT_EQ(world.server->counters().proved, 0U);
}

// TPF3: a proof that was heard lets nobody in on another connection.
TEST(MemoryServerTest, RecordedProofIsWorthNothingLater) {
  MemoryWorld world;
  recovery::ClientProof heard;
  {
    RawClient client(world, EncodeClientHello(RawClient::HelloOf(world.admin)));
    const auto welcome =
        recovery::DecodeClientWelcome(client.Event().private_data);
    const remote::ClientTranscript said = {
        RawClient::HelloOf(world.admin), *welcome, {5, 6}};
    heard = {said.nonce, remote::MaskToken(world.admin.token,
                                           world.admin.entry.sha256, said)};
    EXPECT_TRUE(
        std::holds_alternative<recovery::ClientProved>(client.Ask(heard)));
  }
  RawClient again(world, EncodeClientHello(RawClient::HelloOf(world.admin)));
  again.Event();
  EXPECT_TRUE(absl::IsUnauthenticated(RefusalIn(again.Ask(heard)).why));
}

TEST(MemoryServerTest, OtherHellosAreRefusedOrLeftToOthers) {
  MemoryWorld world;
  recovery::ClientHello hello = RawClient::HelloOf(world.admin);
  hello.cluster_id.low += 1;
  {
    RawClient client(world, EncodeClientHello(hello));
    const fabric::ConnectionEvent event = client.Event();
    EXPECT_EQ(event.kind, fabric::ConnectionEvent::Kind::kRejected);
    EXPECT_TRUE(absl::IsFailedPrecondition(
        recovery::DecodeClientRejection(event.private_data)));
  }
  EXPECT_EQ(world.server->counters().rejected, 1U);
  fabric::ConnectionEvent event = {
      .kind = fabric::ConnectionEvent::Kind::kRequested,
      .connection = fabric::ConnectionId(1),
      .private_data = "a primary's hello",
      .peer = "sim:0:1"};
  EXPECT_FALSE(world.server->OnConnectionEvent(event));
  hello = RawClient::HelloOf(world.admin);
  hello.log_id.low += 1;
  event.private_data = EncodeClientHello(hello);
  EXPECT_FALSE(world.server->OnConnectionEvent(event));
  EXPECT_FALSE(world.server->OnCompletion(
      {.connection = fabric::ConnectionId(1), .work = fabric::WorkId(1)}));
}

// A client of another log, and a peer that is no client, are told so.
TEST(MemoryServerTest, RequestsThatNobodyTakesAreRejected) {
  MemoryWorld world;
  recovery::ClientHello hello = RawClient::HelloOf(world.admin);
  hello.log_id.low += 1;
  RawClient client(world, EncodeClientHello(hello));
  EXPECT_TRUE(absl::IsNotFound(
      recovery::DecodeClientRejection(client.Event().private_data)));
  RawClient node(world, recovery::EncodeHello({.cluster_id = kRemoteCluster,
                                               .log_id = RawClient::LogId(),
                                               .primary = {NodeId(1), 2}}));
  EXPECT_TRUE(
      absl::IsNotFound(recovery::DecodeRejection(node.Event().private_data)));
}

// RMS5.
TEST(MemoryServerTest, ClientsWithoutAProofAreFewAndBrief) {
  MemoryWorld world({.proof_ns_max = 5'000'000, .unproved_max = 2});
  const auto proved = world.Open(world.Reading(world.reader.token), 2);
  ASSERT_TRUE(proved->is_open());
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(std::make_unique<RawClient>(
        world, EncodeClientHello(RawClient::HelloOf(world.admin))));
    silent.back()->Event();
  }
  EXPECT_EQ(silent[0]->Event().kind,
            fabric::ConnectionEvent::Kind::kDisconnected);
  EXPECT_EQ(world.server->connection_count(), 3U);
  world.Pass(6'000'000);
  EXPECT_EQ(world.server->connection_count(), 1U);
  EXPECT_TRUE(proved->is_open());
  EXPECT_THAT(world.warnings.back(), HasSubstr("within 5 ms"));
}

TEST(MemoryServerTest, ClientsAreLimitedInNumber) {
  MemoryWorld world({.connections_max = 2});
  const auto a = world.Open(world.Reading(world.reader.token));
  const auto b = world.Open(world.Reading(world.reader.token));
  const auto c = world.Open(world.Reading(world.reader.token));
  EXPECT_TRUE(a->is_open() && b->is_open());
  EXPECT_TRUE(absl::IsResourceExhausted(c->status())) << c->status();
  EXPECT_THAT(c->status().message(), HasSubstr("no place for a client"));
}

}  // namespace
}  // namespace alpheus::testing
