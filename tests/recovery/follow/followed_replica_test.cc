// SPDX-License-Identifier: Apache-2.0
// A tail that follows nodes which say what a test wants, or what no node says.
#include "recovery/follow/followed_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "recovery/follow/remote_tail.h"
#include "tests/recovery/server/served_world.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;
using recovery::Message;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

// A node of whose replica only the ring is real.
class ScriptedNode {
 public:
  ScriptedNode(model::SimNetwork& network, int host, const PrimaryLog& log)
      : fabric_(network.fabric(host)), region_(kTableOffset) {
    const Ring ring = log.ring();
    region_.insert(region_.end(), ring.data(), ring.data() + ring.capacity());
    server_hello.node = NodeId(static_cast<uint64_t>(host));
    server_hello.incarnation = 1;
    server_hello.configuration_id = 1;
    server_hello.ring_capacity = ring.capacity();
    viewed.region_bytes = region_.size();
    viewed.region_key = *fabric_.Register(region_, fabric::RemoteAccess::kRead);
    followed.log_epoch = log.installation().epoch;
    followed.table = log.installation().table;
    followed.persisted_lsn = followed.durable_lsn = log.End().lsn;
    EXPECT_TRUE(fabric_.Listen(model::SimNetwork::Address(host, 1)).ok());
  }

  recovery::ServerHello server_hello;
  recovery::Viewed viewed;
  recovery::Followed followed;
  bool refuses_views = false;
  // In place of `followed`, to the n-th question from 1 on; may be empty.
  std::function<Message(int)> answer;

  void Poll() {
    fabric::Completion completions[16];
    std::vector<ConnectionEvent> events;
    const size_t count = fabric_.Poll(completions, &events);
    for (const ConnectionEvent& event : events) {
      if (event.kind != ConnectionEvent::Kind::kRequested) continue;
      slots_ = *replication::MessageSlots::Make(fabric_, 2,
                                                recovery::kMessageBytesMax);
      connection_ = event.connection;
      Receive();
      EXPECT_TRUE(
          fabric_.Accept(connection_, recovery::EncodeServerHello(server_hello))
              .ok());
    }
    for (size_t i = 0; i < count; ++i) {
      if (completions[i].operation == fabric::Operation::kReceive &&
          completions[i].status == fabric::CompletionStatus::kOk) {
        Reply(completions[i].bytes);
      }
    }
  }

 private:
  void Receive() {
    EXPECT_TRUE(
        fabric_.PostReceive(connection_, fabric::WorkId(1), slots_->At(0))
            .ok());
  }
  void Reply(uint64_t bytes) {
    const auto request =
        recovery::DecodeMessage(kLogA, slots_->At(0).bytes.first(bytes));
    ASSERT_TRUE(request.ok());
    Message reply = viewed;
    if (refuses_views) reply = recovery::Failed{absl::UnavailableError("held")};
    if (std::holds_alternative<recovery::Follow>(*request)) {
      ++questions_;
      reply = answer ? answer(questions_) : Message(followed);
    }
    Receive();
    const std::vector<std::byte> encoded =
        recovery::EncodeMessage(kLogA, reply);
    fabric::LocalBytes slot = slots_->At(1);
    std::ranges::copy(encoded, slot.bytes.begin());
    slot.bytes = slot.bytes.first(encoded.size());
    EXPECT_TRUE(fabric_.PostSend(connection_, fabric::WorkId(2), slot).ok());
  }

  fabric::Fabric& fabric_;
  std::vector<std::byte> region_;
  std::unique_ptr<replication::MessageSlots> slots_;
  fabric::ConnectionId connection_;
  int questions_ = 0;
};

// A tail on host 0, nodes on the others; W is 1.
class FollowedReplicaTest : public ::testing::Test {
 protected:
  FollowedReplicaTest() {
    log_.OpenEpoch(Epoch(5));
    for (const char* text : {"a", "b", "c"}) log_.Append(text);
  }

  ScriptedNode& Node(int host) {
    nodes_.push_back(std::make_unique<ScriptedNode>(network_, host, log_));
    return *nodes_.back();
  }
  // Follows all nodes.
  void Run() {
    recovery::RemoteTail::Options options;
    options.cluster_id = kCluster;
    options.log_id = kLogA;
    options.self = {NodeId(0), 9};
    options.write_quorum = write_quorum_;
    options.configuration_id = configuration_id_;
    options.poll_ns = 50'000;
    options.retry_ns = 1'000'000'000;
    for (const auto& node : nodes_) {
      node->followed.replica_count = static_cast<uint32_t>(nodes_.size());
      node->followed.write_quorum = write_quorum_;
      const NodeId id = node->server_hello.node;
      options.members.push_back(
          {id, model::SimNetwork::Address(static_cast<int>(id.value), 1)});
    }
    tail_.emplace(network_.fabric(0), network_.clock(), options);
    for (int i = 0; i < 20'000; ++i) Step();
  }
  void Step() {
    network_.Run(1'000);
    for (const auto& node : nodes_) node->Poll();
    fabric::Completion completions[16];
    std::vector<ConnectionEvent> events;
    const size_t count = network_.fabric(0).Poll(completions, &events);
    for (const ConnectionEvent& event : events) tail_->OnConnectionEvent(event);
    for (size_t i = 0; i < count; ++i) tail_->OnCompletion(completions[i]);
    tail_->Poll();
    while (const auto record = tail_->Next()) {
      shown_.emplace_back(AsText(record->payload));
    }
  }
  static model::SimOptions Hosts() {
    model::SimOptions options;
    options.hosts = 3;
    return options;
  }

  model::SimNetwork network_{Hosts()};
  PrimaryLog log_{kLogA};
  std::vector<std::unique_ptr<ScriptedNode>> nodes_;
  uint32_t write_quorum_ = 1;
  uint64_t configuration_id_ = 1;  // of the reader's list
  std::optional<recovery::RemoteTail> tail_;
  std::vector<std::string> shown_;
};

TEST_F(FollowedReplicaTest, RecordsAreShown) {
  Node(1);
  Run();
  EXPECT_THAT(shown_, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(tail_->is_caught_up());
}

// Goal: RT5. The other node knows less, and says nothing wrong.
TEST_F(FollowedReplicaTest, NewerConfigurationEndsTheTail) {
  Node(1);
  Node(2).followed.configuration_id = 2;
  Run();
  EXPECT_EQ(tail_->status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(tail_->status().message()),
              AllOf(HasSubstr("node 2"), HasSubstr("configuration 2"),
                    HasSubstr("newest cluster file")));
  EXPECT_FALSE(tail_->is_caught_up());
}

// Its replica is a primary's own, and it answers nobody.
TEST_F(FollowedReplicaTest, NodeThatServesNobodyShowsItsConfiguration) {
  Node(1);
  ScriptedNode& held = Node(2);
  held.server_hello.configuration_id = 3;
  held.refuses_views = true;
  Run();
  EXPECT_EQ(tail_->status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(tail_->status().message()),
              HasSubstr("configuration 3"));
}

// Goal: RT5b. Node 1 promised, and node 2, which may have the epoch, is away.
TEST_F(FollowedReplicaTest, PromiseAboveTheEpochsInReachIsDoubt) {
  ScriptedNode& node = Node(1);
  node.followed.promised = {Epoch(6), {NodeId(2), 7}};
  ScriptedNode& away = Node(2);
  away.refuses_views = true;
  write_quorum_ = 2;
  Run();
  EXPECT_EQ(tail_->Doubt().code(), Code::kUnavailable);
  EXPECT_THAT(
      std::string(tail_->Doubt().message()),
      AllOf(HasSubstr("node 1"), HasSubstr("epoch 6"), HasSubstr("above 5")));
  EXPECT_FALSE(tail_->is_caught_up());
}

// Both are there, and none has the epoch: it was never shown.
TEST_F(FollowedReplicaTest, PromiseThatWasGivenInVainIsNoDoubt) {
  for (const int host : {1, 2}) {
    Node(host).followed.promised = {Epoch(6), {NodeId(2), 7}};
  }
  write_quorum_ = 2;
  Run();
  EXPECT_TRUE(tail_->Doubt().ok()) << tail_->Doubt();
  EXPECT_TRUE(tail_->is_caught_up());
}

// Goal: RT5c. The reader's list may never have been in force.
TEST_F(FollowedReplicaTest, ListThatNobodyHasIsDoubt) {
  configuration_id_ = 2;
  Node(1);
  Run();
  EXPECT_THAT(shown_, ElementsAre("a", "b", "c"));
  EXPECT_THAT(std::string(tail_->Doubt().message()),
              HasSubstr("no member in reach has configuration 2"));
  EXPECT_FALSE(tail_->is_caught_up());
}

// With another W too much would pass for durable.
TEST_F(FollowedReplicaTest, OtherQuorumsAreRefusedAndBothListsNamed) {
  ScriptedNode& node = Node(1);
  node.answer = [&node](int) {
    recovery::Followed said = node.followed;
    said.replica_count = 3;
    said.write_quorum = 2;
    return said;
  };
  Run();
  EXPECT_THAT(std::string(tail_->Absences().message()),
              AllOf(HasSubstr("one of 3 with W = 2 in configuration 1"),
                    HasSubstr("1 with W = 1 in configuration 1"),
                    HasSubstr("with which the log was formatted")));
  configuration_id_ = 2;  // it was away
  Run();
  EXPECT_THAT(std::string(tail_->Absences().message()),
              HasSubstr("it could not be reached when the members changed"));
}

// A reply to an earlier question does not count, even if it is in flight then.
TEST_F(FollowedReplicaTest, AskedAgainItIsSettledByWhatIsSaidAfterwards) {
  constexpr uint64_t kRecords = 200;
  for (uint64_t i = 0; i < kRecords; ++i) log_.Append("more");
  ScriptedNode& node = Node(1);
  node.followed.persisted_lsn = node.followed.durable_lsn = Lsn(1);
  Run();
  for (uint64_t lsn = 2; lsn <= kRecords; ++lsn) {
    for (uint64_t i = 0; i < lsn * 7 % 60; ++i) Step();
    node.followed.persisted_lsn = node.followed.durable_lsn = Lsn(lsn);
    tail_->AskAgain();
    EXPECT_FALSE(tail_->is_settled());
    for (int i = 0; i < 1'000 && !tail_->is_settled(); ++i) Step();
    EXPECT_TRUE(tail_->is_settled());
    EXPECT_EQ(tail_->durable_lsn(), Lsn(lsn));
  }
}

// A node that can't be asked is not waited for.
TEST_F(FollowedReplicaTest, AskedAgainItWaitsForNobodyWhoWasAbandoned) {
  Node(1);
  --Node(2).viewed.region_bytes;
  Run();
  EXPECT_TRUE(tail_->is_settled());
  tail_->AskAgain();
  for (int i = 0; i < 1'000 && !tail_->is_settled(); ++i) Step();
  EXPECT_TRUE(tail_->is_settled());
}

// Goal: RT3. The head passes the first record while it is read; its bytes are
// still there.
TEST_F(FollowedReplicaTest, ChunkThatTheHeadHasPassedIsNotShown) {
  ScriptedNode& node = Node(1);
  node.answer = [&node](int question) {
    if (question >= 2) node.followed.head = {Lsn(2), RingOffset(64), 0};
    return Message(node.followed);
  };
  Run();
  EXPECT_THAT(shown_, ElementsAre("b", "c"));
  EXPECT_TRUE(tail_->status().ok()) << tail_->status();
}

// Goal: RT3. Nothing is shown as long as each chunk is followed by a change.
TEST_F(FollowedReplicaTest, ChunkOfAReplicaThatChangesIsReadAgain) {
  ScriptedNode& node = Node(1);
  node.answer = [&](int question) {
    node.followed.repairing = question < 100 && question % 2 == 0;
    if (question < 100) {
      EXPECT_THAT(shown_, IsEmpty());
    }
    return Message(node.followed);
  };
  Run();
  EXPECT_THAT(shown_, ElementsAre("a", "b", "c"));
}

TEST_F(FollowedReplicaTest, ViewOfLessThanARegionIsDataLoss) {
  Node(1).viewed.region_bytes = kTableOffset;
  Run();
  EXPECT_EQ(tail_->Absences().code(), Code::kDataLoss) << tail_->Absences();
  EXPECT_THAT(shown_, IsEmpty());
}

TEST_F(FollowedReplicaTest, WhatNoNodeSaysIsDataLoss) {
  Node(1).answer = [](int /*question*/) {
    return Message(recovery::Installed{});
  };
  Run();
  EXPECT_EQ(tail_->Absences().code(), Code::kDataLoss) << tail_->Absences();
  EXPECT_FALSE(tail_->is_in_reach());
}

TEST_F(FollowedReplicaTest, KeyThatIsNoneBreaksTheConnection) {
  Node(1).viewed.region_key = fabric::RegionKey(12345);
  Run();
  EXPECT_EQ(tail_->Absences().code(), Code::kUnavailable) << tail_->Absences();
  EXPECT_THAT(shown_, IsEmpty());
}

// All replicas of a log have rings of one size: the second one has not, and is
// asked for what the first one can't read.
TEST_F(FollowedReplicaTest, RingOfAnotherSizeIsRefused) {
  ScriptedNode& first = Node(1);
  first.followed.persisted_lsn = Lsn(1);
  first.followed.table = {};
  ScriptedNode& second = Node(2);
  second.server_hello.ring_capacity /= 2;
  Run();
  EXPECT_EQ(tail_->Absences().code(), Code::kFailedPrecondition)
      << tail_->Absences();
  EXPECT_THAT(std::string(tail_->Absences().message()), HasSubstr("8192"));
}

}  // namespace
}  // namespace alpheus::testing
