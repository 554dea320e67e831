// SPDX-License-Identifier: Apache-2.0
// quorum: how many replicas it takes, as arithmetic without state.
//
// Idea: every threshold of the protocol is a function of N, W and R. They stand
// here once, so that data path, recovery and simulator cannot disagree.
//
// Invariants:
//   QU1. 1 <= W <= N, 1 <= R <= N, R + W > N: any W replicas that persisted a
//        record and any R that promised an epoch have one in common.
//   QU2. No record is durable that fewer than W replicas in sync persisted.
//   QU3. A record is dropped only if it cannot be durable, whatever the
//        replicas hold that did not answer or could not tell (P-H2).
// Fault model: replicas stop, lag, lose contact and come back; those whose word
// is worth nothing (blank, repairing, suspect, corrupt at that place) are to be
// counted as unknown by the caller. None lies.
// Thread safety: values and pure functions. No allocation but for errors.
// References: protocol P-A3.3, P-A3.6, P-A4.4, P-H2, P-H19, P-H20.
#ifndef ALPHEUS_QUORUM_QUORUM_H_
#define ALPHEUS_QUORUM_QUORUM_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus {

// N, W and R of one configuration.
struct QuorumSizes {
  uint32_t replica_count = 1;  // N, 1 to kMembersMax
  uint32_t write_quorum = 1;   // W
  uint32_t read_quorum = 1;    // R, the least that satisfies QU1 or more

  bool operator==(const QuorumSizes&) const = default;
};

// Sizes that satisfy QU1. Without `write_quorum` W is the majority of N;
// without `read_quorum` R is N - W + 1.
// Errors: InvalidArgument (the sizes asked for violate QU1).
absl::StatusOr<QuorumSizes> MakeQuorumSizes(
    uint32_t replica_count, std::optional<uint32_t> write_quorum = {},
    std::optional<uint32_t> read_quorum = {});

// How far one replica is, as its acknowledgements say.
struct ReplicaProgress {
  Lsn persisted_lsn;  // all records up to it are persisted there
  // It has the log of the running epoch without a gap, and a live session: only
  // such a replica counts (P-A5, P-H21).
  bool in_sync = false;
};

// The largest LSN that at least W of the replicas in sync persisted (QU2), or
// nothing when fewer than W are in sync: the log is then poisoned (P-A3.6,
// P-H20). It may be below an earlier answer, after a replica went out of sync;
// what was durable stays durable, so the caller keeps the maximum.
// Requires: W >= 1, replicas.size() <= kMembersMax.
std::optional<Lsn> DurableLsn(std::span<const ReplicaProgress> replicas,
                              uint32_t write_quorum);

// The fewest nacks with which a record cannot be durable: N - W + 1.
inline uint32_t NackQuorum(const QuorumSizes& sizes) {
  return sizes.replica_count - sizes.write_quorum + 1;
}

// What replicas of the configuration answered about one LSN in a log opening.
// Replicas that did not answer are N less the sum.
struct AnswerCounts {
  uint32_t have = 0;     // hold the record
  uint32_t nack = 0;     // fenced, not blank: torn, absent, or not its epoch
  uint32_t unknown = 0;  // corrupt, blank, repairing, suspect

  bool operator==(const AnswerCounts&) const = default;
};

// Whether at least W replicas can hold the record, given these answers.
// Requires: the sum is at most N.
bool MayBeDurable(const QuorumSizes& sizes, const AnswerCounts& answers);

enum class Fate {
  kKeep,       // somebody has it: it is re-replicated before it is shown
  kDrop,       // it cannot be durable
  kUndecided,  // more answers are needed; without any, an error
};

// What recovery does with one LSN (P-H2, QU3). A record that somebody has is
// kept even if it cannot be durable: to drop it would save nothing.
// Requires: as MayBeDurable.
Fate FateOf(const QuorumSizes& sizes, const AnswerCounts& answers);

// The replicas that must be reachable to open an epoch and to write in it:
// max(R, W). More than half of N, so any two openings have a replica in common:
// one that has this many promises before it installs anything shares its epoch
// with nobody (BA4, ballot.h).
uint32_t OpeningQuorum(const QuorumSizes& sizes);

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_QUORUM_H_
