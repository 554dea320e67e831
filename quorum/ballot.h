// SPDX-License-Identifier: Apache-2.0
// ballot: epochs of a cluster, as one process numbers them.
//
// Idea: who wants to be primary asks the replicas what they promised and takes
// a number above all of it: with static membership without asking anybody else,
// else by compare-and-set on a register, which lets two of one counter not
// happen (register_ballot.h). Without it two may take one at once, so the
// number also says who took it. It is packed into the 64 bits of an Epoch,
// which is what records, sessions and superlines carry and compare:
//
//   63              32 31          16 15           0
//   | counter         | node          | process     |
//
// counter: one above the largest that was seen, so that every later ballot is
// above every earlier one that it saw. Replicas take epochs up to 2^61
// (kNumberMax in region_state.h, halved), so there are 2^29 of them: one
// opening a second for 17 years. node: the id of the node, 1 to 65535. Not its
// index among the members: an index means another node after a change of
// members. process: the upper 16 bits of the random incarnation that each
// process draws.
//
// Invariants:
//   BA1. Packing keeps the order of ballots (counter, node, incarnation): a < b
//        implies Pack(a) <= Pack(b).
//   BA2. Ballots of two nodes never pack into one epoch.
//   BA3. One process never takes an epoch twice, nor one at or below any that
//        it saw: an opening that is given up leaves its epoch behind for good.
//   BA4. Two processes of one node share an epoch only if they saw the same
//        largest counter and drew the same 16 bits. Then the promise tells them
//        apart: a replica promises an epoch to one process only, named by all
//        64 bits of its incarnation (promise.h), and both would need promises
//        of OpeningQuorum replicas, of which any two sets meet (quorum.h). So
//        no epoch is ever installed by two primaries.
// Limits: an epoch from elsewhere (local mode) counts like any other promised
// one, but has no node in it: a cluster must not mix ballots with epochs that
// others count up by one. Ballots of a register are packed as all others, and
// may be mixed with those of static membership: a cluster may begin or end to
// use a service, and while some processes ask it and others do not, BA4 holds.
// Thread safety: values; a BallotSequence belongs to one thread.
// References: protocol P-A4.1, P-H4, P-H5; docs/design/architecture.md.
#ifndef ALPHEUS_QUORUM_BALLOT_H_
#define ALPHEUS_QUORUM_BALLOT_H_

#include <compare>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/quorum.h"

namespace alpheus {

inline constexpr uint64_t kBallotNodeMax = 0xffff;
inline constexpr uint64_t kBallotCounterMax = 0x1fffffff;

// One process that is or wants to be primary. Not a replica: the incarnation is
// drawn at random when the process starts, and is never 0.
struct PrimaryId {
  NodeId node;
  uint64_t incarnation = 0;

  auto operator<=>(const PrimaryId&) const = default;
};

struct Ballot {
  uint64_t counter = 0;  // 1 to kBallotCounterMax
  PrimaryId primary;     // node 1 to kBallotNodeMax

  auto operator<=>(const Ballot&) const = default;
};

// Requires: counter and node are within their limits.
Epoch PackBallot(const Ballot& ballot);

// The parts of an epoch that PackBallot made.
uint64_t BallotCounter(Epoch epoch);
NodeId BallotNode(Epoch epoch);

// The ballots of one process.
class BallotSequence {
 public:
  // Errors: InvalidArgument (node is not 1 to kBallotNodeMax; incarnation 0).
  static absl::StatusOr<BallotSequence> Make(const PrimaryId& self);

  // An epoch above all of `promised`, the epochs that replicas told that they
  // promised, and above all that this sequence gave (BA3).
  // Errors: Unavailable (fewer than R told: the epoch might be below one that
  // was installed, and be refused); FailedPrecondition (no counter is left).
  absl::StatusOr<Epoch> Next(std::span<const Epoch> promised,
                             const QuorumSizes& sizes);

 private:
  explicit BallotSequence(const PrimaryId& self) : self_(self) {}

  PrimaryId self_;
  uint64_t counter_ = 0;  // the largest given
};

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_BALLOT_H_
