// SPDX-License-Identifier: Apache-2.0
#include "recovery/election/candidacy.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace alpheus::recovery {
namespace {

CandidacyOptions WithMembers(CandidacyOptions options) {
  options.election.members.clear();
  for (const PeerAddress& at : options.nodes) {
    options.election.members.push_back(at.node);
  }
  return options;
}

}  // namespace

Candidacy::Candidacy(fabric::Fabric& fabric, const Clock& clock,
                     RandomSource& random, CandidacyOptions options)
    : fabric_(fabric),
      clock_(clock),
      random_(random),
      options_(WithMembers(std::move(options))),
      began_at_(clock.NowNanos()),
      election_(random, options_.election, began_at_) {
  SetNodes(options_.nodes, options_.election.opening_quorum);
}

// CDY4. A call that is destroyed ends its connection.
void Candidacy::SetNodes(const std::vector<PeerAddress>& nodes,
                         uint32_t opening_quorum) {
  std::vector<Node> next;
  std::vector<NodeId> members;
  for (const PeerAddress& at : nodes) {
    const auto known = std::ranges::find(nodes_, at, &Node::at);
    if (known != nodes_.end()) {
      next.push_back(std::move(*known));
      nodes_.erase(known);
    } else {
      next.emplace_back().at = at;
    }
    members.push_back(at.node);
  }
  nodes_ = std::move(next);
  election_.SetMembers(members, opening_quorum);
}

bool Candidacy::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  return std::ranges::any_of(nodes_, [&](const Node& node) {
    return (node.standing && node.standing->OnConnectionEvent(event)) ||
           (node.question && node.question->OnConnectionEvent(event));
  });
}

bool Candidacy::OnCompletion(const fabric::Completion& completion) {
  return std::ranges::any_of(nodes_, [&](const Node& node) {
    return (node.standing && node.standing->OnCompletion(completion)) ||
           (node.question && node.question->OnCompletion(completion));
  });
}

Hear Candidacy::Question(const Node& node, int64_t wait_ns) const {
  Hear hear;
  hear.standing = election_.standing();
  hear.stood_ns = static_cast<uint64_t>(clock_.NowNanos() - began_at_);
  hear.priority = options_.election.priority;
  hear.holds = election_.holds();
  hear.silence_ns = static_cast<uint64_t>(election_.silence_ns());
  hear.wait_ns = static_cast<uint64_t>(wait_ns);
  const Heard* const known = election_.HeardAt(node.at.node);
  // The first question is answered at once: the list of candidates, with this
  // one, is news.
  if (known == nullptr) return hear;
  hear.known_word = known->word;
  hear.known_epoch = known->promised.epoch;
  hear.known_instruction = known->instruction ? known->instruction->id : 0;
  hear.known_candidates = DigestOf(known->candidates);
  return hear;
}

std::unique_ptr<ControlCall> Candidacy::Call(const Node& node,
                                             const Hear& hear) const {
  const Hello hello{options_.cluster_id, options_.log_id,
                    options_.election.self};
  return std::make_unique<ControlCall>(
      fabric_,
      ControlCall::Options{
          node.at.address, node.at.node, hello,
          Deadline::AtNanos(clock_.NowNanos() + options_.reply_ns),
          Credentials{options_.key, &random_}},
      hear);
}

void Candidacy::Connect(Node& node, int64_t now) {
  node.standing = Call(node, Question(node, options_.wait_ns));
  node.due_at = now + options_.reply_ns;
}

// CDY1, CDY2.
void Candidacy::Lose(Node& node, absl::Status why, int64_t now) {
  constexpr uint32_t kDoublingsMax = 10;
  node.standing.reset();
  node.status = std::move(why);
  node.due_at = now + std::min(options_.retry_ns
                                   << std::min(node.failures++, kDoublingsMax),
                               options_.retry_ns_max);
  election_.OnLost(node.at.node, now);
}

void Candidacy::Advance(Node& node, int64_t now) {
  if (node.standing == nullptr) {
    if (now >= node.due_at) Connect(node, now);
    return;
  }
  ControlCall& call = *node.standing;
  if (!call.status().ok()) return Lose(node, call.status(), now);
  if (call.may_ask()) {
    const auto* heard = std::get_if<Heard>(&*call.reply());
    if (heard == nullptr) {
      return Lose(node,
                  absl::DataLossError(absl::StrCat(
                      "node ", node.at.node.value,
                      " replied to Hear with a message of another kind")),
                  now);
    }
    node.failures = 0;
    node.status = absl::OkStatus();
    election_.OnHeard(node.at.node, *heard, now);
    call.Ask(Question(node, options_.wait_ns));
    node.due_at = now + options_.wait_ns + options_.reply_ns;
    return;
  }
  if (now < node.due_at) return;
  Lose(
      node,
      absl::UnavailableError(absl::StrCat("node ", node.at.node.value, " at ",
                                          node.at.address, " does not answer")),
      now);
}

void Candidacy::AdvanceQuestion(Node& node, int64_t now) {
  if (node.question == nullptr) return;
  ControlCall& call = *node.question;
  const bool is_late = now >= asked_until_;
  if (!call.done() && !is_late) return;
  std::optional<Heard> answer;
  if (call.status().ok() && call.reply().has_value()) {
    const auto* heard = std::get_if<Heard>(&*call.reply());
    if (heard != nullptr) answer = *heard;
  }
  node.question.reset();
  election_.OnAnswer(node.at.node, answer, now);
}

void Candidacy::Ask() {
  asked_until_ = clock_.NowNanos() + options_.election.answer_ns;
  for (Node& node : nodes_) node.question = Call(node, Question(node, 0));
}

Candidacy::Advice Candidacy::Poll() {
  const int64_t now = clock_.NowNanos();
  // After a pause of this process an answer is older than the last word.
  for (Node& node : nodes_) {
    AdvanceQuestion(node, now);
    Advance(node, now);
  }
  const Advice advice = election_.Poll(now);
  if (advice != Advice::kAsk) return advice;
  Ask();
  return Advice::kNothing;
}

Deadline Candidacy::NextPoll() const {
  int64_t next = election_.NextPoll().at_nanos();
  for (const Node& node : nodes_) {
    next = std::min(next, node.due_at);
    if (node.question != nullptr) next = std::min(next, asked_until_);
  }
  return Deadline::AtNanos(next);
}

void Candidacy::Opened(Epoch epoch) {
  election_.Opened(epoch, clock_.NowNanos());
}

void Candidacy::OpeningFailed() { election_.OpeningFailed(clock_.NowNanos()); }

void Candidacy::Ended() { election_.Ended(clock_.NowNanos()); }

absl::Status Candidacy::StatusOf(NodeId node) const {
  const auto found = std::ranges::find(
      nodes_, node, [](const Node& each) { return each.at.node; });
  return found == nodes_.end() ? absl::NotFoundError("no such node is a member")
                               : found->status;
}

}  // namespace alpheus::recovery
