// SPDX-License-Identifier: Apache-2.0
#include "api/admin/node_rounds.h"

#include <algorithm>
#include <cstdint>

#include "api/wiring/fabric_pump.h"
#include "log/base/clock.h"

namespace alpheus {
namespace {

constexpr int64_t kRestNanos = 20'000'000;
// How long a round waits for nodes that are slow.
constexpr int64_t kRoundNanos = 200'000'000;

Deadline In(int64_t ns) {
  return Deadline::AtNanos(Clock::Real().NowNanos() + ns);
}

}  // namespace

void NodeRounds::Add(NodeId node, const std::string& address) {
  nodes_.push_back({node, address, nullptr, {}});
}

void NodeRounds::Ask(
    absl::FunctionRef<recovery::Message(size_t number)> request) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    const bool may_ask = node.call != nullptr && node.call->may_ask();
    const bool is_pending =
        node.call != nullptr && node.call->status().ok() && !may_ask;
    if (is_pending) continue;
    if (may_ask) {
      node.call->Ask(request(i));
    } else {
      Begin(node, request(i));
    }
  }
  FabricPump pump(*connectivity_.fabric);
  const auto is_over = [this] {
    return std::ranges::all_of(
        nodes_, [](const Node& node) { return node.call->done(); });
  };
  pump.RunUntil(is_over, In(kRoundNanos), *this);
  for (Node& node : nodes_) Take(node);
}

void NodeRounds::Rest() {
  FabricPump(*connectivity_.fabric)
      .RunUntil([] { return false; }, In(kRestNanos), *this);
}

void NodeRounds::Begin(Node& node, const recovery::Message& request) {
  recovery::Hello hello = hello_;
  hello.primary.node = node.id;
  node.call = std::make_unique<recovery::ControlCall>(
      *connectivity_.fabric,
      recovery::ControlCall::Options{node.address,
                                     node.id,
                                     hello,
                                     deadline_,
                                     {cluster_.key, &connectivity_.random}},
      request);
}

void NodeRounds::Take(Node& node) {
  node.answer = {};
  if (!node.call->done()) return;
  node.answer.failure = node.call->status();
  if (node.answer.failure.ok()) {
    node.answer.reply = node.call->reply();
  } else {
    node.call.reset();
  }
}

bool NodeRounds::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  return std::ranges::any_of(nodes_, [&](const Node& node) {
    return node.call != nullptr && node.call->OnConnectionEvent(event);
  });
}

bool NodeRounds::OnCompletion(const fabric::Completion& completion) {
  return std::ranges::any_of(nodes_, [&](const Node& node) {
    return node.call != nullptr && node.call->OnCompletion(completion);
  });
}

}  // namespace alpheus
