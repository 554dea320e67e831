// SPDX-License-Identifier: Apache-2.0
#include "quorum/arithmetic/ballot.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus::quorum {
namespace {

constexpr int kCounterShift = 32;
constexpr int kNodeShift = 16;
constexpr int kProcessShift = 48;  // keeps the upper 16 bits of the incarnation

}  // namespace

Epoch PackBallot(const Ballot& ballot) {
  const auto [node, incarnation] = ballot.primary;
  ALPHEUS_CHECK(ballot.counter >= 1, "counters start at 1 (ballot.h)");
  ALPHEUS_CHECK(ballot.counter <= kBallotCounterMax, "BA1 (ballot.h)");
  ALPHEUS_CHECK(node.value >= 1, "node 0 is local mode (ids.h)");
  ALPHEUS_CHECK(node.value <= kBallotNodeMax, "BA2 (ballot.h)");
  uint64_t epoch = ballot.counter << kCounterShift;
  epoch |= node.value << kNodeShift;
  epoch |= incarnation >> kProcessShift;
  return Epoch(epoch);
}

uint64_t BallotCounter(Epoch epoch) { return epoch.value >> kCounterShift; }

NodeId BallotNode(Epoch epoch) {
  return NodeId((epoch.value >> kNodeShift) & kBallotNodeMax);
}

absl::StatusOr<BallotSequence> BallotSequence::Make(const PrimaryId& self) {
  if (self.node.value < 1 || self.node.value > kBallotNodeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("ballots of node ", self.node.value,
                     ": a node that can be primary has an id of 1 to ",
                     kBallotNodeMax, ". Give it another id"));
  }
  if (self.incarnation == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ballots of node ", self.node.value,
        ": the process has incarnation 0, which names none. Draw a random "
        "number when the process starts"));
  }
  return BallotSequence(self);
}

absl::StatusOr<Epoch> BallotSequence::Next(std::span<const Epoch> promised,
                                           const QuorumSizes& sizes) {
  if (promised.size() < sizes.read_quorum) {
    return absl::UnavailableError(absl::StrCat(
        "next ballot of node ", self_.node.value, ": ", promised.size(),
        " replicas reported their promise, R = ", sizes.read_quorum, " of N = ",
        sizes.replica_count, " are needed. Wait until more are reachable"));
  }
  uint64_t largest = counter_;
  for (const Epoch epoch : promised) {
    largest = std::max(largest, BallotCounter(epoch));
  }
  if (largest >= kBallotCounterMax) {
    return absl::FailedPreconditionError(absl::StrCat(
        "next ballot of node ", self_.node.value,
        ": a replica promised an epoch with counter ", largest,
        ", and there is none above. No number of openings reaches it: find "
        "the replica whose superline is wrong and replace it"));
  }
  counter_ = largest + 1;
  return PackBallot({counter_, self_});
}

}  // namespace alpheus::quorum
