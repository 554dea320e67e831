// SPDX-License-Identifier: Apache-2.0
// ballot: epochs of a cluster, as one process numbers them.
//
// Idea: a process that wants to be primary asks the replicas for their
// promises, and takes a number above all of them. With a register it does so by
// compare-and-set, so that no counter is taken twice (register_ballot.h). With
// static membership it asks nobody else, so that two processes may take one
// counter at once. So the number also says which process took it. It is packed
// into the 64 bits of an Epoch, which records, sessions and superlines carry
// and compare:
//
//   63              32 31          16 15           0
//   | counter         | node          | process     |
//
// counter: one above the largest that was seen, so that every ballot is above
// every earlier one that its process saw. Replicas take epochs up to 2^61
// (kNumberMax in region_state.h, halved), which leaves 2^29 counters: one
// opening a second for 17 years. node: the id of the node, 1 to 65535. It is
// the id, because an index among the members changes with the members. process:
// the upper 16 bits of the random incarnation that each process draws.
//
// Invariants:
//   BA1. Packing keeps the order of ballots (counter, node, incarnation): a < b
//        implies Pack(a) <= Pack(b).
//   BA2. Ballots of two nodes never pack into one epoch.
//   BA3. One process never takes an epoch twice, nor one at or below any that
//        it saw: an opening that is given up never uses its epoch again.
//   BA4. Two processes of one node share an epoch only if they saw the same
//        largest counter and drew the same 16 bits. Then the promise tells them
//        apart: a replica promises an epoch to one process only, named by all
//        64 bits of its incarnation (promise.h). Both would need promises of
//        OpeningQuorum replicas, and any two such sets meet (quorum.h). So no
//        epoch is ever installed by two primaries.
// Limits: an epoch from elsewhere (local mode) counts like any other promised
// one, but has no node in it. A cluster must not mix ballots with epochs that
// are counted up by one. Ballots of a register are packed as all others, and
// may be mixed with those of static membership. So a cluster may begin or stop
// to use a service: while some processes ask it and others do not, BA4 holds.
// Thread safety: values; a BallotSequence belongs to one thread.
// References: protocol P-A4.1, P-H4, P-H5; docs/design/architecture.md.
#ifndef ALPHEUS_QUORUM_ARITHMETIC_BALLOT_H_
#define ALPHEUS_QUORUM_ARITHMETIC_BALLOT_H_

#include <compare>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/quorum.h"

namespace alpheus::quorum {

inline constexpr uint64_t kBallotNodeMax = 0xffff;
inline constexpr uint64_t kBallotCounterMax = 0x1fffffff;

// A process that is or wants to be primary. Not a replica: the incarnation is
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

// Packs a ballot. Requires: counter and node are within their limits.
Epoch PackBallot(const Ballot& ballot);

// Both return a part of an epoch that PackBallot made.
uint64_t BallotCounter(Epoch epoch);
NodeId BallotNode(Epoch epoch);

// The ballots of one process.
class BallotSequence {
 public:
  // Errors: InvalidArgument (node is not 1 to kBallotNodeMax; incarnation 0).
  static absl::StatusOr<BallotSequence> Make(const PrimaryId& self);

  // Returns an epoch above all of `promised`, which the replicas said they
  // promised, and above all that this sequence gave (BA3). Errors: Unavailable
  // (fewer than R promises: the epoch might be below an installed one, and be
  // refused); FailedPrecondition (no counter is left).
  absl::StatusOr<Epoch> Next(std::span<const Epoch> promised,
                             const QuorumSizes& sizes);

 private:
  explicit BallotSequence(const PrimaryId& self) : self_(self) {}

  PrimaryId self_;
  uint64_t counter_ = 0;  // largest one given
};

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_ARITHMETIC_BALLOT_H_
