// SPDX-License-Identifier: Apache-2.0
// node_rounds: asks all nodes of a log again and again, over a connection each,
// for a command that waits for certain answers.
//
// Idea: in a round each node is asked once, and answers within a bounded time.
// A slow node is not asked again before it has answered: the next rounds wait
// for it, too. A node whose connection broke gets a new one.
//
// Thread safety: one thread. A round blocks for up to a quarter of a second.
// References: ask_primary.h, instruct_candidates.h; control_call.h.
#ifndef ALPHEUS_API_ADMIN_NODE_ROUNDS_H_
#define ALPHEUS_API_ADMIN_NODE_ROUNDS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "api/wiring/adapter.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "quorum/members/configuration.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

class NodeRounds {
 public:
  // A node's answer of the last round.
  struct Answer {
    std::optional<recovery::Message> reply;
    // Why there is none; OK: the node does not answer yet.
    absl::Status failure;
  };

  // `cluster` and `connectivity` must outlive it. `hello` names no node: each
  // node sees the command as a process of that node, which may wait for its
  // replica. The deadline is that of all connections.
  NodeRounds(const quorum::ClusterConfiguration& cluster,
             Connectivity& connectivity, const recovery::Hello& hello,
             Deadline deadline)
      : cluster_(cluster),
        connectivity_(connectivity),
        hello_(hello),
        deadline_(deadline) {}
  NodeRounds(const NodeRounds&) = delete;
  NodeRounds& operator=(const NodeRounds&) = delete;

  // Adds a node; they are numbered from 0 in that order.
  void Add(NodeId node, const std::string& address);

  // Asks all nodes once, and waits for their answers. `request` is called for
  // each node that is asked now, with its number.
  void Ask(absl::FunctionRef<recovery::Message(size_t number)> request);
  // Waits before nodes are asked for the same again, and before those that are
  // not reached are tried again.
  void Rest();

  const Answer& answer(size_t number) const { return nodes_[number].answer; }

  // For the pump.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

 private:
  struct Node {
    NodeId id;
    std::string address;
    std::unique_ptr<recovery::ControlCall> call;
    Answer answer;
  };

  void Begin(Node& node, const recovery::Message& request);
  static void Take(Node& node);

  const quorum::ClusterConfiguration& cluster_;
  Connectivity& connectivity_;
  const recovery::Hello hello_;
  const Deadline deadline_;
  std::vector<Node> nodes_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_NODE_ROUNDS_H_
