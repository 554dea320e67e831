// SPDX-License-Identifier: Apache-2.0
// candidacy: one process that stands for primary of one log: its talk with the
// nodes, and the advice that the election gives its owner.
//
// Idea: it stands on one connection to each node: it asks by Hear, the node
// replies when it has news, and it asks again. The election's question goes out
// on other connections, since nodes may keep the standing ones waiting. The
// owner opens and closes the log; Advice says when.
//
// Invariants:
//   CDY1. A node that can't be reached is tried again after retry_ns. Each
//         failure doubles that time, up to retry_ns_max.
//   CDY2. A node counts as lost as soon as its connection ends, until it has
//         replied again.
//   CDY3. The owner need not call Poll while it opens the log. The words that
//         nodes said meanwhile are taken afterwards.
//   CDY4. A node that leaves the list is no longer asked. Connections to nodes
//         that stay, at the same address, go on.
// Thread safety: one thread. Nothing blocks.
// References: docs/design/election.md; election.h, control_call.h.
#ifndef ALPHEUS_RECOVERY_ELECTION_CANDIDACY_H_
#define ALPHEUS_RECOVERY_ELECTION_CANDIDACY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/members/cluster_key.h"
#include "recovery/election/election.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/opening_peer.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

struct CandidacyOptions {
  Uuid cluster_id;
  Uuid log_id;
  // self and members are made from `nodes` and `self` here.
  ElectionOptions election;
  // At first: all members, the own one included.
  std::vector<PeerAddress> nodes;
  quorum::ClusterKey key = {};  // not set: no proofs are asked for
  // How long a node may keep a question, in nanoseconds.
  int64_t wait_ns = 500'000'000;
  // How long a node may take to accept a connection, and to reply after
  // `wait_ns` are over, in nanoseconds; then it counts as lost.
  int64_t reply_ns = 1'000'000'000;
  int64_t retry_ns = 10'000'000;
  int64_t retry_ns_max = 500'000'000;
};

class Candidacy {
 public:
  using Advice = Election::Advice;

  // Fabric, clock and `random` must outlive the object. Connects at the first
  // Poll.
  Candidacy(fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
            CandidacyOptions options);

  // Take what the fabric brought. Return false for any other connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  // Advances. Call it after everything that the fabric had was taken. Returns
  // the owner's next step, never kAsk: the candidacy asks by itself.
  Advice Poll();
  // Returns when Poll has something to do although nothing arrived.
  Deadline NextPoll() const;

  // Pass a word of the membership service or of the owner on to the election:
  // the calls of Election with these names.
  void OnPrimaryLeft(Epoch epoch) { election_.OnPrimaryLeft(epoch); }
  void Drain() { election_.Drain(); }
  // Takes the log's newest list of members (CDY4). Requires: it is not empty,
  // and names each node once.
  void SetNodes(const std::vector<PeerAddress>& nodes, uint32_t opening_quorum);
  void Opened(Epoch epoch);
  void OpeningFailed();
  void Ended();

  const Election& election() const { return election_; }
  // Returns why the last try did not reach a node; OK if it is reached.
  absl::Status StatusOf(NodeId node) const;

 private:
  struct Node {
    PeerAddress at;
    std::unique_ptr<ControlCall> standing;
    std::unique_ptr<ControlCall> question;
    // Deadline of the reply on `standing`; without one, time of the next try.
    int64_t due_at = 0;
    uint32_t failures = 0;
    absl::Status status;
  };

  Hear Question(const Node& node, int64_t wait_ns) const;
  std::unique_ptr<ControlCall> Call(const Node& node, const Hear& hear) const;
  void Connect(Node& node, int64_t now);
  // `why` is by value: the call that ends here may own it.
  void Lose(Node& node, absl::Status why, int64_t now);
  void Advance(Node& node, int64_t now);
  void AdvanceQuestion(Node& node, int64_t now);
  void Ask();

  fabric::Fabric& fabric_;
  const Clock& clock_;
  RandomSource& random_;
  const CandidacyOptions options_;
  const int64_t began_at_;
  Election election_;
  int64_t asked_until_ = 0;  // of the question
  std::vector<Node> nodes_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_ELECTION_CANDIDACY_H_
