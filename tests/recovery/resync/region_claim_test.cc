// SPDX-License-Identifier: Apache-2.0
// A primary that holds its node's replica, and a node that says what a test
// wants it to.
#include "recovery/resync/region_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replication/wire/message_slots.h"
#include "tools/model/fabric/sim_network.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;
using quorum::Promise;
using recovery::Claim;
using recovery::Message;

namespace {

constexpr Uuid kTheCluster{1, 2};
constexpr Uuid kTheLog{3, 4};
constexpr NodeId kOwnNode{1};
constexpr quorum::PrimaryId kPrimaryOfNode{kOwnNode, 7};
constexpr Promise kOwnPromise{Epoch(5), kPrimaryOfNode};
constexpr int64_t kMilli = 1'000'000;

class RegionClaimTest : public ::testing::Test {
 protected:
  RegionClaimTest() : network_(model::SimOptions{}) {
    address_ = *network_.fabric(0).Listen("sim:0:7000");
    recovery::RegionClaimOptions options;
    options.address = address_;
    options.node = kOwnNode;
    options.hello = {kTheCluster, kTheLog, kPrimaryOfNode};
    options.promise = kOwnPromise;
    options.scrub = [this](bool start) {
      if (start) ++scrubbed_.passes;
      return scrubbed_;
    };
    options.show = [this](const recovery::Fetch& fetch) {
      shown_at_.push_back(network_.clock().NowNanos());
      return recovery::Fetched{fetch.from, std::vector<std::byte>(fetch.bytes)};
    };
    options.change = [this](const recovery::AskChange* asked) {
      if (asked != nullptr) changed_.id = asked->id;
      return changed_;
    };
    options.between_pieces_ns = kMilli;
    claim_ = std::make_unique<recovery::RegionClaim>(network_.fabric(1),
                                                     network_.clock(), options);
  }

  // Runs until the claim reports a promise, or the time is over.
  std::optional<Promise> Run(int64_t ns) {
    const int64_t end = network_.clock().NowNanos() + ns;
    while (network_.clock().NowNanos() < end) {
      PollNode();
      if (auto wanted = PollClaim()) return wanted;
      network_.Run(10'000);
    }
    return std::nullopt;
  }

  std::optional<Promise> PollClaim() {
    std::vector<fabric::Completion> completions(16);
    std::vector<ConnectionEvent> events;
    const size_t count = network_.fabric(1).Poll(completions, &events);
    for (const ConnectionEvent& event : events) {
      EXPECT_TRUE(claim_->OnConnectionEvent(event));
    }
    for (size_t i = 0; i < count; ++i)
      EXPECT_TRUE(claim_->OnCompletion(completions[i]));
    ++polls_;
    if (claim_->Poll() != Polled::kDone) return std::nullopt;
    return claim_->wanted();
  }

  void PollNode() {
    std::vector<fabric::Completion> completions(16);
    std::vector<ConnectionEvent> events;
    fabric::Fabric& fabric = network_.fabric(0);
    const size_t count = fabric.Poll(completions, &events);
    for (const ConnectionEvent& event : events) {
      if (event.kind != ConnectionEvent::Kind::kRequested) continue;
      connection_ = event.connection;
      slots_ = *replication::MessageSlots::Make(fabric, 2,
                                                recovery::kMessageBytesMax);
      PostReceive();
      recovery::ServerHello server_hello{kOwnNode, 101, 4096, Epoch(5), 1};
      EXPECT_TRUE(
          fabric.Accept(connection_, recovery::EncodeServerHello(server_hello))
              .ok());
      ++connections_;
    }
    for (size_t i = 0; i < count; ++i) {
      if (completions[i].operation != fabric::Operation::kReceive ||
          completions[i].status != fabric::CompletionStatus::kOk) {
        continue;
      }
      asked_.push_back(*recovery::DecodeMessage(
          kTheLog, slots_->At(0).bytes.first(completions[i].bytes)));
    }
  }

  void PostReceive() {
    EXPECT_TRUE(network_.fabric(0)
                    .PostReceive(connection_, fabric::WorkId(1), slots_->At(0))
                    .ok());
  }

  void Say(const Message& message) {
    PostReceive();
    const std::vector<std::byte> bytes =
        recovery::EncodeMessage(kTheLog, message);
    fabric::LocalBytes slot = slots_->At(1);
    std::ranges::copy(bytes, slot.bytes.begin());
    slot.bytes = slot.bytes.first(bytes.size());
    EXPECT_TRUE(
        network_.fabric(0).PostSend(connection_, fabric::WorkId(2), slot).ok());
  }

  model::SimNetwork network_;
  std::string address_;
  std::unique_ptr<recovery::RegionClaim> claim_;
  fabric::ConnectionId connection_;
  std::unique_ptr<replication::MessageSlots> slots_;
  std::vector<Message> asked_;
  recovery::Scrubbed scrubbed_;    // says how often one was begun
  recovery::ChangeState changed_;  // says which one was asked for last
  std::vector<int64_t> shown_at_;
  int connections_ = 0;
  int polls_ = 0;
};

TEST_F(RegionClaimTest, StepsDownForAHigherBallot) {
  EXPECT_EQ(Run(100 * kMilli), std::nullopt);
  EXPECT_EQ(asked_, std::vector<Message>{Claim{kOwnPromise}});
  EXPECT_FALSE(claim_->NextPoll().is_set());
  const Promise higher{Epoch(6), {NodeId(2), 8}};
  Say(recovery::Wanted{higher});
  EXPECT_EQ(Run(100 * kMilli), higher);
}

// RGC3.
TEST_F(RegionClaimTest, BeginsAScrubAndSaysHowItIs) {
  EXPECT_EQ(Run(kMilli), std::nullopt);
  for (const bool start : {true, false}) {
    Say(recovery::Scrub{start});
    EXPECT_EQ(Run(kMilli), std::nullopt);
  }
  recovery::Scrubbed once;
  once.passes = 1;
  const Claim after{kOwnPromise, once};
  EXPECT_EQ(asked_, (std::vector<Message>{Claim{kOwnPromise}, after, after}));
}

// RGC5. The state is in each Claim from then on.
TEST_F(RegionClaimTest, GivesAChangeOnAndSaysWhatBecameOfIt) {
  EXPECT_EQ(Run(kMilli), std::nullopt);
  recovery::AskChange asked;
  asked.id = 7;
  Say(asked);
  EXPECT_EQ(Run(kMilli), std::nullopt);
  Claim running{kOwnPromise};
  running.change_state.id = 7;
  changed_.word = recovery::ChangeWord::kRefused;
  changed_.why = absl::UnavailableError("not now");
  Say(recovery::Scrub{});
  EXPECT_EQ(Run(kMilli), std::nullopt);
  Claim refused{kOwnPromise};
  refused.change_state = changed_;
  EXPECT_EQ(asked_,
            (std::vector<Message>{Claim{kOwnPromise}, running, refused}));
}

// Goal: RGC4. However fast the node asks.
TEST_F(RegionClaimTest, ShowsOnePieceAtATimeAndLeavesTimeInBetween) {
  EXPECT_EQ(Run(kMilli / 10), std::nullopt);
  const recovery::Fetched piece{RingOffset(128), std::vector<std::byte>(100)};
  for (int i = 0; i < 4; ++i) {
    asked_.clear();
    Say(recovery::Fetch{piece.from, 100});
    while (asked_.empty()) EXPECT_EQ(Run(kMilli / 10), std::nullopt);
    EXPECT_EQ(asked_, std::vector<Message>{piece});
  }
  ASSERT_EQ(shown_at_.size(), 4u);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_GE(shown_at_[i] - shown_at_[i - 1], kMilli);
    EXPECT_LT(shown_at_[i] - shown_at_[i - 1], 2 * kMilli);
  }
  // It sleeps again, and hears what else there is.
  EXPECT_FALSE(claim_->NextPoll().is_set());
  const Promise higher{Epoch(6), {NodeId(2), 8}};
  Say(recovery::Wanted{higher});
  EXPECT_EQ(Run(kMilli), higher);
}

TEST_F(RegionClaimTest, KeepsItsReplicaFromALowerBallot) {
  Run(100 * kMilli);
  for (const Epoch epoch : {Epoch(4), Epoch(5)}) {
    Say(recovery::Wanted{{epoch, {NodeId(2), 8}}});
    EXPECT_EQ(Run(100 * kMilli), std::nullopt);
  }
  // Each time it asks again.
  EXPECT_EQ(asked_, std::vector<Message>(3, Claim{kOwnPromise}));
  EXPECT_EQ(connections_, 1);
}

TEST_F(RegionClaimTest, NodeThatIsAwayIsTriedAgain) {
  Run(100 * kMilli);
  ASSERT_TRUE(network_.fabric(0).Close(connection_).ok());
  EXPECT_EQ(Run(900 * kMilli), std::nullopt);
  EXPECT_EQ(connections_, 1);
  EXPECT_TRUE(claim_->NextPoll().is_set());
  EXPECT_EQ(Run(300 * kMilli), std::nullopt);
  EXPECT_EQ(connections_, 2);
  // So is one that says what is no reply to it.
  Say(recovery::Released{});
  EXPECT_EQ(Run(1'500 * kMilli), std::nullopt);
  EXPECT_EQ(connections_, 3);
  Say(recovery::Failed{absl::FailedPreconditionError("serves it itself")});
  EXPECT_EQ(Run(1'500 * kMilli), std::nullopt);
  // The second refusal in turn.
  EXPECT_EQ(connections_, 3);
  EXPECT_EQ(Run(1'000 * kMilli), std::nullopt);
  EXPECT_EQ(connections_, 4);
  EXPECT_EQ(asked_, std::vector<Message>(4, Claim{kOwnPromise}));
}

TEST_F(RegionClaimTest, KnowsItsOwnConnection) {
  ConnectionEvent event;
  event.connection = fabric::ConnectionId(99);
  EXPECT_FALSE(claim_->OnConnectionEvent(event));
  fabric::Completion completion;
  completion.connection = fabric::ConnectionId(99);
  Run(100 * kMilli);
  EXPECT_FALSE(claim_->OnConnectionEvent(event));
  EXPECT_FALSE(claim_->OnCompletion(completion));
}

}  // namespace
}  // namespace alpheus::testing
