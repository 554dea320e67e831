// SPDX-License-Identifier: Apache-2.0
// A primary whose cluster has a key, and whom it does not believe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "recovery/protocol/control_call.h"
#include "tests/recovery/opening/opening_world.h"
#include "tests/support/fabrics/failing_fabric.h"

namespace alpheus::testing {

using quorum::ClusterKey;
using recovery::Message;

namespace {

using ::testing::HasSubstr;

ClusterKey NewKeyOf(unsigned char byte) {
  std::array<std::byte, quorum::kClusterKeyBytes> bytes{};
  bytes.fill(std::byte{byte});
  return ClusterKey(bytes);
}

OpeningWorld::Options WithKey(std::map<int, ClusterKey> other_keys = {}) {
  OpeningWorld::Options options;
  options.real_server = true;
  options.key = NewKeyOf(1);
  options.other_keys = std::move(other_keys);
  return options;
}

TEST(OpeningKeyTest, AllWithTheKeyTakePart) {
  for (const int host : {0, 3}) {
    OpeningWorld world(WithKey());
    const auto primary = world.Open(host);
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    EXPECT_TRUE(primary->opened->not_installed.empty());
  }
}

// Node 2 is not asked for anything, and the others are enough.
TEST(OpeningKeyTest, ReplicaWithAnotherKeyIsNotBelieved) {
  OpeningWorld world(WithKey({{2, NewKeyOf(2)}}));
  const auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  ASSERT_EQ(primary->opened->not_installed.size(), 1u);
  EXPECT_EQ(primary->opened->not_installed[0].node, NodeId(2));
  EXPECT_THAT(primary->opened->not_installed[0].why,
              HasSubstr("another cluster key than this process"));
  EXPECT_EQ(world.replica(2).superline().promised_epoch, Epoch(0));
}

TEST(OpeningKeyTest, ReplicaWithoutAKeyIsNotUsed) {
  OpeningWorld world(WithKey({{2, ClusterKey()}}));
  const auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  ASSERT_EQ(primary->opened->not_installed.size(), 1u);
  EXPECT_THAT(primary->opened->not_installed[0].why,
              HasSubstr("this node has no cluster key"));
}

TEST(OpeningKeyTest, PrimaryWithoutTheKeyOpensNothing) {
  for (const ClusterKey& key : {ClusterKey(), NewKeyOf(2)}) {
    OpeningWorld world(WithKey());
    recovery::EpochOpeningOptions options = world.OpeningOptions(3);
    options.key = key;
    const auto primary = world.Open(3, options);
    EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
    EXPECT_THAT(std::string(primary->status().message()),
                HasSubstr("key_file"));
    for (const int node : {1, 2, 3}) {
      EXPECT_EQ(world.replica(node).superline().promised_epoch, Epoch(0));
    }
  }
}

// Returns the replies that a process without the key can try at a member's
// address.
std::vector<std::function<Message(const Message&)>> WaysToCheat() {
  return {
      [](const Message&) { return Message(recovery::Proved{}); },
      [](const Message&) { return Message(recovery::Challenged{{1, 2}, {}}); },
      [](const Message&) {
        return Message(recovery::Viewed{fabric::RegionKey(1), 1 << 20});
      },
      [](const Message&) { return Message(recovery::Challenge{{1, 2}}); },
  };
}

TEST(OpeningKeyTest, ReplicaThatSkipsItsProofIsNotBelieved) {
  for (const auto& way : WaysToCheat()) {
    OpeningWorld::Options options;
    options.key = NewKeyOf(1);
    OpeningWorld world(options);
    bool is_asked = false;
    for (const int node : {1, 2, 3}) {
      world.server(node).on_proof = way;
      world.server(node).on_request = [&](const Message& request) {
        is_asked |= !std::holds_alternative<recovery::Challenge>(request);
        return true;
      };
    }
    const auto primary = world.Open(3);
    EXPECT_FALSE(primary->status().ok());
    EXPECT_FALSE(is_asked);
  }
}

// Room may come, trust does not.
TEST(OpeningKeyTest, OnlyANodeWithoutRoomIsAskedAgain) {
  for (const bool has_no_room : {true, false}) {
    OpeningWorld::Options options;
    options.key = NewKeyOf(1);
    OpeningWorld world(options);
    int connections = 0;
    for (const int node : {1, 2, 3}) {
      world.server(node).on_connect = [&] {
        ++connections;
        return absl::OkStatus();
      };
      world.server(node).on_proof = [has_no_room](const Message&) {
        return Message(
            recovery::Failed{has_no_room ? absl::ResourceExhaustedError("full")
                                         : absl::UnauthenticatedError("no")});
      };
    }
    recovery::EpochOpeningOptions asked = world.OpeningOptions(3);
    asked.deadline =
        Deadline::AtNanos(world.network().clock().NowNanos() + 5'000'000);
    EXPECT_FALSE(world.Open(3, asked)->status().ok());
    if (has_no_room) {
      EXPECT_GT(connections, 6);
    } else {
      EXPECT_LE(connections, 3);
    }
  }
}

// The same for a process that only asks.
class KeyedControlCall {
 public:
  explicit KeyedControlCall(std::function<Message(const Message&)> on_proof)
      : memory_(4096),
        server_(network_.fabric(0), NodeId(1), memory_, nullptr) {
    EXPECT_TRUE(
        network_.fabric(0).Listen(model::SimNetwork::Address(0, 1)).ok());
    server_.on_server_hello = [](recovery::ServerHello& server_hello) {
      server_hello.incarnation = 1;
      server_hello.ring_capacity = 4096;
    };
    server_.on_proof = std::move(on_proof);
    server_.on_request = [this](const Message& request) {
      asked_.push_back(request);
      return true;
    };
  }

  // With this call of its adapter failing; 0: none.
  absl::Status Ask(uint64_t failing_call = 0) {
    FailingFabric fabric(network_.fabric(1));
    if (failing_call != 0) fabric.FailCall(failing_call);
    recovery::ControlCall control_call(
        fabric,
        {model::SimNetwork::Address(0, 1),
         NodeId(1),
         recovery::Hello{{1, 2}, {3, 4}, {NodeId(2), 1}},
         Deadline(),
         {NewKeyOf(1), &random_}},
        recovery::View{});
    while (!control_call.done()) {
      network_.Run(100'000);
      Take(0, server_);
      Take(1, control_call);
    }
    return control_call.status();
  }
  const std::vector<Message>& asked() const { return asked_; }

 private:
  template <class Taker>
  void Take(int host, Taker& taker) {
    fabric::Completion completions[16];
    std::vector<fabric::ConnectionEvent> events;
    const size_t n = network_.fabric(host).Poll(completions, &events);
    for (const fabric::ConnectionEvent& event : events)
      taker.OnConnectionEvent(event);
    for (size_t i = 0; i < n; ++i) taker.OnCompletion(completions[i]);
  }

  model::SimNetwork network_{{.hosts = 2}};
  Random random_{1};
  model::ModelPersistence memory_;
  ScriptedReplica server_;
  std::vector<Message> asked_;
};

TEST(ControlCallKeyTest, NodeThatSkipsItsProofIsNotAsked) {
  for (const auto& way : WaysToCheat()) {
    KeyedControlCall control_call(way);
    const absl::Status status = control_call.Ask();
    EXPECT_FALSE(status.ok());
    ASSERT_EQ(control_call.asked().size(), 1u) << status;
    EXPECT_TRUE(
        std::holds_alternative<recovery::Challenge>(control_call.asked()[0]));
  }
}

// The first call registers memory; then the adapter says of the connection what
// it says of one that broke.
TEST(ControlCallKeyTest, ConnectionThatTakesNoWorkIsUnavailable) {
  for (const uint64_t call : {2, 3}) {
    KeyedControlCall control_call([](const Message& /*message*/) {
      return Message(recovery::Formatted{});
    });
    const absl::Status status = control_call.Ask(call);
    EXPECT_TRUE(absl::IsUnavailable(status)) << call << ": " << status;
  }
}

// It proves the key, and then says that it was proved nothing.
TEST(ControlCallKeyTest, NodeThatSaysNonsenseToAProofIsNotAsked) {
  OpeningWorld::Options options;
  Random random(5);
  recovery::ServerHello server_hello;
  server_hello.node = NodeId(1);
  server_hello.incarnation = 1;
  server_hello.ring_capacity = 4096;
  recovery::ReplicaHandshake handshake(
      {NewKeyOf(1), &random}, recovery::Hello{{1, 2}, {3, 4}, {NodeId(2), 1}},
      server_hello);
  KeyedControlCall control_call([&](const Message& message) {
    return std::holds_alternative<recovery::Prove>(message)
               ? Message(recovery::Formatted{})
               : *handshake.Reply(message);
  });
  EXPECT_TRUE(absl::IsDataLoss(control_call.Ask()));
  EXPECT_EQ(control_call.asked().size(), 2u);
}

}  // namespace
}  // namespace alpheus::testing
