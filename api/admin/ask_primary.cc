// SPDX-License-Identifier: Apache-2.0
#include "api/admin/ask_primary.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "api/admin/node_rounds.h"
#include "api/wiring/adapter.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

using recovery::AskChange;
using recovery::ChangeState;
using recovery::PeerAddress;

namespace {

recovery::Hello HelloOf(const Uuid& cluster_id, const Uuid& log_id,
                        RandomSource& random) {
  recovery::Hello hello;
  hello.cluster_id = cluster_id;
  hello.log_id = log_id;
  hello.primary.incarnation = random.Next() | 1;
  return hello;
}

// Tells all nodes once, and returns what each said of this change.
std::vector<ChangeInquiry::Answer> Tell(NodeRounds& rounds,
                                        const AskChange& asked) {
  rounds.Ask([&asked](size_t /*number*/) { return recovery::Message(asked); });
  std::vector<ChangeInquiry::Answer> answers;
  for (size_t i = 0; i < asked.peers.size(); ++i) {
    const NodeRounds::Answer& answer = rounds.answer(i);
    ChangeInquiry::Answer& said = answers.emplace_back();
    said.failure = answer.failure;
    if (!answer.reply) continue;
    const auto* const state = std::get_if<ChangeState>(&*answer.reply);
    if (state != nullptr && state->id == asked.id) said.said = *state;
  }
  return answers;
}

}  // namespace

absl::StatusOr<AskedPrimary> AskPrimary(
    const quorum::ClusterConfiguration& cluster,
    const AskPrimaryOptions& options, const recovery::MembersChange& change,
    const std::vector<PeerAddress>& peers) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Connectivity> connectivity,
                           Connectivity::Open(cluster, options.as_node));
  const Uuid log_id = quorum::LogIdOf(cluster.cluster_id, options.log_name);
  const AskChange asked{connectivity->random.Next() | 1, change, peers};
  NodeRounds rounds(cluster, *connectivity,
                    HelloOf(cluster.cluster_id, log_id, connectivity->random),
                    options.deadline);
  for (const PeerAddress& peer : peers) rounds.Add(peer.node, peer.address);
  ChangeInquiry inquiry({options.log_name, log_id, options.begun_by,
                         options.deadline, options.gather_ns},
                        asked);
  for (;;) {
    std::vector<ChangeInquiry::Answer> answers = Tell(rounds, asked);
    std::optional<absl::StatusOr<AskedPrimary>> over =
        inquiry.Take(std::move(answers), Clock::Real().NowNanos());
    if (over) return *std::move(over);
    rounds.Rest();
  }
}

}  // namespace alpheus
