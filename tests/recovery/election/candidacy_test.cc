// SPDX-License-Identifier: Apache-2.0
// Tests a candidate's talk with nodes that say what a test wants, on a
// simulated network.
#include "recovery/election/candidacy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "log/base/random.h"
#include "replication/wire/message_slots.h"
#include "tools/model/fabric/sim_network.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;
using fabric::ConnectionId;
using recovery::Candidacy;
using recovery::CandidacyOptions;
using recovery::Hear;
using recovery::Heard;
using recovery::PrimaryWord;

namespace {

using ::testing::HasSubstr;

constexpr int64_t kMicro = 1'000;
constexpr int64_t kWait = 5'000 * kMicro;
constexpr int64_t kReply = 10'000 * kMicro;
constexpr int64_t kRetry = 1'000 * kMicro;
constexpr int64_t kRetryMax = 8'000 * kMicro;
// Messages and turns take time.
constexpr int64_t kTurn = 20 * kMicro;
constexpr int64_t kSlack = 200 * kMicro;
constexpr Uuid kItsCluster{1, 2};
constexpr Uuid kItsLog{3, 4};

// Answers the first question of a connection at once, each later one when its
// time is over or when there is news.
class ScriptedNode {
 public:
  ScriptedNode(model::SimNetwork& network, int host, NodeId node)
      : network_(network),
        fabric_(network.fabric(host)),
        node_(node),
        address_(*fabric_.Listen(model::SimNetwork::Address(host, 7000))) {
    heard.word = PrimaryWord::kHeard;
    heard.promised.epoch = Epoch(5);
  }

  const std::string& address() const { return address_; }
  size_t connections() const { return links_.size(); }

  void Poll() {
    std::vector<fabric::Completion> completions(16);
    std::vector<ConnectionEvent> events;
    const size_t count = fabric_.Poll(completions, &events);
    for (const ConnectionEvent& event : events) TakeEvent(event);
    for (size_t i = 0; i < count; ++i) TakeQuestion(completions[i]);
    for (auto& [id, link] : links_) {
      if (link.question && Now() >= link.due_at) Answer(id, link);
    }
  }
  // Answers all questions: there is news.
  void Say(uint64_t epoch) {
    heard.promised.epoch = Epoch(epoch);
    for (auto& [id, link] : links_) link.due_at = Now();
  }
  void CloseAll() {
    for (const auto& [id, link] : links_) {
      EXPECT_TRUE(fabric_.Close(id).ok());
    }
    links_.clear();
  }

  bool accepts = true;
  bool answers = true;
  Heard heard;
  std::vector<int64_t> requested_at;  // of each connection
  std::vector<Hear> questions;

 private:
  struct Link {
    std::unique_ptr<replication::MessageSlots> slots;
    std::optional<Hear> question;
    int64_t due_at = 0;
    bool was_answered = false;
  };

  int64_t Now() const { return network_.clock().NowNanos(); }

  void TakeEvent(const ConnectionEvent& event) {
    const ConnectionId id = event.connection;
    if (event.kind == ConnectionEvent::Kind::kDisconnected) {
      EXPECT_TRUE(fabric_.Close(id).ok());
      links_.erase(id);
    }
    if (event.kind != ConnectionEvent::Kind::kRequested) return;
    requested_at.push_back(Now());
    if (!accepts) {
      EXPECT_TRUE(fabric_.Reject(id, "").ok());
      return;
    }
    Link& link = links_[id];
    link.slots = *replication::MessageSlots::Make(fabric_, 2,
                                                  recovery::kMessageBytesMax);
    PostReceive(id, link);
    const recovery::ServerHello server_hello{node_, 101, 4096, Epoch(5), 1};
    EXPECT_TRUE(
        fabric_.Accept(id, recovery::EncodeServerHello(server_hello)).ok());
  }

  void PostReceive(ConnectionId id, const Link& link) {
    EXPECT_TRUE(
        fabric_.PostReceive(id, fabric::WorkId(1), link.slots->At(0)).ok());
  }

  void TakeQuestion(const fabric::Completion& completion) {
    const auto found = links_.find(completion.connection);
    if (found == links_.end() ||
        completion.operation != fabric::Operation::kReceive ||
        completion.status != fabric::CompletionStatus::kOk) {
      return;
    }
    Link& link = found->second;
    const auto message = recovery::DecodeMessage(
        kItsLog, link.slots->At(0).bytes.first(completion.bytes));
    ASSERT_TRUE(message.ok() && std::holds_alternative<Hear>(*message));
    link.question = std::get<Hear>(*message);
    questions.push_back(*link.question);
    const auto wait_ns = static_cast<int64_t>(link.question->wait_ns);
    link.due_at = link.was_answered ? Now() + wait_ns : Now();
    PostReceive(completion.connection, link);
  }

  void Answer(ConnectionId id, Link& link) {
    if (!answers) return;
    link.question.reset();
    link.was_answered = true;
    const std::vector<std::byte> reply =
        recovery::EncodeMessage(kItsLog, recovery::Message(heard));
    fabric::LocalBytes slot = link.slots->At(1);
    std::ranges::copy(reply, slot.bytes.begin());
    slot.bytes = slot.bytes.first(reply.size());
    EXPECT_TRUE(fabric_.PostSend(id, fabric::WorkId(2), slot).ok());
  }

  model::SimNetwork& network_;
  fabric::Fabric& fabric_;
  const NodeId node_;
  const std::string address_;
  std::map<ConnectionId, Link> links_;
};

// A candidate of node 1, with two nodes that hear a primary.
class CandidacyTest : public ::testing::Test {
 protected:
  CandidacyTest()
      : network_(FourHosts()),
        one_(network_, 0, NodeId(1)),
        two_(network_, 1, NodeId(2)),
        two_elsewhere_(network_, 3, NodeId(2)),
        candidacy_(network_.fabric(2), network_.clock(), random_, Options()) {}

  static model::SimOptions FourHosts() {
    model::SimOptions options;
    options.hosts = 4;
    return options;
  }
  CandidacyOptions Options() const {
    CandidacyOptions options;
    options.cluster_id = kItsCluster;
    options.log_id = kItsLog;
    options.election.self = {NodeId(1), 0x101};
    options.election.opening_quorum = 2;
    options.nodes = {{NodeId(1), one_.address()}, {NodeId(2), two_.address()}};
    options.wait_ns = kWait;
    options.reply_ns = kReply;
    options.retry_ns = kRetry;
    options.retry_ns_max = kRetryMax;
    return options;
  }

  void Run(int64_t ns) {
    const int64_t end = network_.clock().NowNanos() + ns;
    while (network_.clock().NowNanos() < end) {
      for (ScriptedNode* const node : {&one_, &two_, &two_elsewhere_}) {
        node->Poll();
      }
      if (is_polled_) PollCandidacy();
      network_.Run(kTurn);
    }
  }
  void PollCandidacy() {
    std::vector<fabric::Completion> completions(16);
    std::vector<ConnectionEvent> events;
    const size_t count = network_.fabric(2).Poll(completions, &events);
    for (const ConnectionEvent& event : events) {
      candidacy_.OnConnectionEvent(event);
    }
    for (size_t i = 0; i < count; ++i) candidacy_.OnCompletion(completions[i]);
    EXPECT_EQ(candidacy_.Poll(), Candidacy::Advice::kNothing);
  }
  const Heard* HeardAt(uint64_t node) const {
    return candidacy_.election().HeardAt(NodeId(node));
  }

  model::SimNetwork network_;
  Random random_{7};
  ScriptedNode one_;
  ScriptedNode two_;
  ScriptedNode two_elsewhere_;
  Candidacy candidacy_;
  bool is_polled_ = true;
};

// It stands there from its first question on, and has news at once.
TEST_F(CandidacyTest, EachNodeIsAskedOnAConnectionThatStays) {
  Run(4 * kWait);
  for (const ScriptedNode* const node : {&one_, &two_}) {
    EXPECT_EQ(node->requested_at.size(), 1u);
    ASSERT_GE(node->questions.size(), 3u);
    EXPECT_EQ(node->questions[0].standing, recovery::Standing::kReady);
    EXPECT_EQ(node->questions[0].wait_ns, uint64_t{kWait});
    EXPECT_EQ(node->questions[1].known_word, PrimaryWord::kHeard);
    EXPECT_EQ(node->questions[1].known_epoch, Epoch(5));
  }
  two_.Say(6);
  Run(kSlack);
  ASSERT_NE(HeardAt(2), nullptr);
  EXPECT_EQ(HeardAt(2)->promised.epoch, Epoch(6));
}

// CDY1.
TEST_F(CandidacyTest, NodeThatIsNotReachedIsTriedLessAndLessOften) {
  two_.accepts = false;
  Run(5 * kRetryMax);
  const std::vector<int64_t>& tries = two_.requested_at;
  ASSERT_GE(tries.size(), 6u);
  int64_t pause = kRetry;
  for (size_t i = 1; i < 6; ++i) {
    EXPECT_GE(tries[i] - tries[i - 1], pause) << i;
    EXPECT_LE(tries[i] - tries[i - 1], pause + kSlack) << i;
    pause = std::min(2 * pause, kRetryMax);
  }
  EXPECT_FALSE(candidacy_.StatusOf(NodeId(2)).ok());
  EXPECT_TRUE(candidacy_.StatusOf(NodeId(1)).ok());
}

// CDY1. Tries count from the last word on.
TEST_F(CandidacyTest, NodeThatIsLostIsTriedAgainSoon) {
  two_.accepts = false;
  Run(5 * kRetryMax);
  two_.accepts = true;
  Run(2 * kRetryMax);
  ASSERT_NE(HeardAt(2), nullptr);
  EXPECT_TRUE(candidacy_.StatusOf(NodeId(2)).ok());
  two_.CloseAll();
  const int64_t closed_at = network_.clock().NowNanos();
  Run(kRetryMax);
  EXPECT_GE(two_.requested_at.back(), closed_at + kRetry);
  EXPECT_LE(two_.requested_at.back(), closed_at + kRetry + kSlack);
  EXPECT_NE(HeardAt(2), nullptr);
}

// CDY2.
TEST_F(CandidacyTest, NodeIsLostWithItsConnectionUntilItHasRepliedAgain) {
  Run(kWait);
  ASSERT_NE(HeardAt(2), nullptr);
  two_.answers = false;
  two_.CloseAll();
  Run(kRetry + 2 * kSlack);
  EXPECT_EQ(two_.connections(), 1u);
  EXPECT_EQ(HeardAt(2), nullptr);
  EXPECT_NE(HeardAt(1), nullptr);
  two_.answers = true;
  Run(kSlack);
  EXPECT_NE(HeardAt(2), nullptr);
}

// CDY2: its connection stands, and its program does not run.
TEST_F(CandidacyTest, NodeThatDoesNotReplyInTimeIsLost) {
  Run(kWait);
  // The question that it has may be kept for kWait, until now.
  two_.answers = false;
  Run(kReply - kSlack);
  ASSERT_NE(HeardAt(2), nullptr);
  Run(3 * kSlack);
  EXPECT_EQ(HeardAt(2), nullptr);
  const absl::Status why = candidacy_.StatusOf(NodeId(2));
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("does not answer"));
}

// CDY3.
TEST_F(CandidacyTest, WordsThatCameDuringAnOpeningAreTakenAfterwards) {
  Run(kSlack);
  is_polled_ = false;
  one_.Say(6);
  two_.Say(6);
  Run(3 * (kWait + kReply));
  ASSERT_EQ(HeardAt(2)->promised.epoch, Epoch(5));
  is_polled_ = true;
  Run(kSlack);
  for (const uint64_t node : {1u, 2u}) {
    ASSERT_NE(HeardAt(node), nullptr);
    EXPECT_EQ(HeardAt(node)->promised.epoch, Epoch(6));
  }
  EXPECT_EQ(one_.requested_at.size(), 1u);
  EXPECT_EQ(two_.requested_at.size(), 1u);
}

// CDY4.
TEST_F(CandidacyTest, NodeThatLeftIsAskedNoMoreAndTheOthersGoOn) {
  Run(kWait);
  candidacy_.SetNodes({{NodeId(1), one_.address()}}, 1);
  Run(kSlack);
  EXPECT_EQ(two_.connections(), 0u);
  EXPECT_EQ(HeardAt(2), nullptr);
  const size_t asked = two_.questions.size();
  Run(4 * kWait);
  EXPECT_EQ(two_.requested_at.size(), 1u);
  EXPECT_EQ(two_.questions.size(), asked);
  EXPECT_EQ(one_.requested_at.size(), 1u);
  EXPECT_NE(HeardAt(1), nullptr);
}

// CDY4.
TEST_F(CandidacyTest, NodeAtAnotherAddressIsConnectedToAnew) {
  Run(kWait);
  candidacy_.SetNodes(
      {{NodeId(1), one_.address()}, {NodeId(2), two_elsewhere_.address()}}, 2);
  two_elsewhere_.Say(7);
  Run(2 * kSlack);
  EXPECT_EQ(two_.connections(), 0u);
  EXPECT_EQ(two_elsewhere_.connections(), 1u);
  EXPECT_EQ(one_.requested_at.size(), 1u);
  ASSERT_NE(HeardAt(2), nullptr);
  EXPECT_EQ(HeardAt(2)->promised.epoch, Epoch(7));
}

}  // namespace
}  // namespace alpheus::testing
