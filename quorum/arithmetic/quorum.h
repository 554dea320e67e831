// SPDX-License-Identifier: Apache-2.0
// quorum: the numbers of replicas that the protocol needs, as arithmetic
// without state.
//
// Idea: every threshold of the protocol is a function of N, W and R. They are
// here once, so that data path, recovery and simulator cannot disagree.
//
// Invariants:
//   QU1. 1 <= W <= N, 1 <= R <= N, R + W > N: any W replicas that persisted a
//        record and any R that promised an epoch have one in common.
//   QU2. A record becomes durable only when at least W replicas in sync have
//        persisted it.
//   QU3. A record is cut only if it can't be durable, whatever is held by
//        replicas that did not report or could not tell (P-H2).
//        Example: N = 3, W = 2. One nack leaves two replicas that may hold the
//        record: it may be durable. Two nacks leave one: it can't be. So
//        N - W + 1 = 2 nacks cut it.
// Fault model: replicas stop, lag, lose contact and come back. The caller
// counts a replica that can't tell (blank, repairing, suspect, corrupt at that
// place) as unknown. None lies.
// Thread safety: values and pure functions. No allocation except for errors.
// References: protocol P-A3.3, P-A3.6, P-A4.4, P-H2, P-H19, P-H20.
#ifndef ALPHEUS_QUORUM_ARITHMETIC_QUORUM_H_
#define ALPHEUS_QUORUM_ARITHMETIC_QUORUM_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus::quorum {

// N, W and R of one configuration.
struct QuorumSizes {
  uint32_t replica_count = 1;  // N, 1 to kMembersMax
  uint32_t write_quorum = 1;   // W
  uint32_t read_quorum = 1;    // R, the least that satisfies QU1 or more

  bool operator==(const QuorumSizes&) const = default;
};

// Returns sizes that satisfy QU1. Without `write_quorum` W is the majority of
// N; without `read_quorum` R is N - W + 1. Errors: InvalidArgument (the sizes
// violate QU1).
absl::StatusOr<QuorumSizes> MakeQuorumSizes(
    uint32_t replica_count, std::optional<uint32_t> write_quorum = {},
    std::optional<uint32_t> read_quorum = {});

// Progress of one replica, as its acknowledgements say.
struct ReplicaProgress {
  Lsn persisted_lsn;  // all records up to it are persisted there
  // True if it has a live session, and the log of the running epoch without a
  // gap. Only such a replica counts (P-A5, P-H21).
  bool in_sync = false;
};

// Returns the largest LSN that at least W of the replicas in sync persisted
// (QU2), or nothing if fewer than W are in sync: the log has then failed
// (P-A3.6, P-H20). It may be below an earlier result, after a replica went out
// of sync. Durable records stay durable, so the caller keeps the maximum.
// Requires: W >= 1, replicas.size() <= kMembersMax.
std::optional<Lsn> DurableLsn(std::span<const ReplicaProgress> replicas,
                              uint32_t write_quorum);

// Returns the fewest nacks with which a record cannot be durable: N - W + 1.
inline uint32_t NackQuorum(const QuorumSizes& sizes) {
  return sizes.replica_count - sizes.write_quorum + 1;
}

// Reports of the configuration's replicas about one LSN in an opening, as
// chooser.h weighs them. N less the sum: replicas that did not report.
struct ReportCounts {
  uint32_t have = 0;  // hold the record
  // Promised, are not blank, and report torn, absent, or a record of an epoch
  // that does not own the LSN. Below the highest log epoch also others.
  uint32_t nack = 0;
  uint32_t unknown = 0;  // corrupt, blank, repairing, suspect

  bool operator==(const ReportCounts&) const = default;
};

// Returns true if at least W replicas can hold the record, given these reports.
// Requires: the sum is at most N.
bool MayBeDurable(const QuorumSizes& sizes, const ReportCounts& reports);

enum class Fate {
  kKeep,       // a replica has it: it is copied before it is shown
  kCut,        // it can't be durable
  kUndecided,  // more reports are needed; without any, an error
};

// Returns what an opening does with one LSN (P-H2, QU3). A record that a
// replica has is kept even if it cannot be durable: to drop it would save
// nothing. Requires: as MayBeDurable.
Fate FateOf(const QuorumSizes& sizes, const ReportCounts& reports);

// Returns max(R, W): the replicas that must be reachable to open an epoch and
// to write in it. It is more than half of N, so that any two openings have a
// replica in common. An opening with this many promises before it installs
// shares its epoch with no other (BA4, ballot.h).
uint32_t OpeningQuorumSize(const QuorumSizes& sizes);

// Returns how many replicas without a later promise show that no later epoch is
// open (P-A3.8): N - OQ + 1, by the least OQ. An opening has OQ promises, which
// leave N - OQ replicas at most. A higher R of this configuration may not be
// counted with: another opening may use the least one. At most W. Requires:
// 1 <= W <= N.
// Example: N = 3, W = 2: OQ = 2, and 2 replicas. N = W = 2: OQ = 2, and 1.
uint32_t ConfirmQuorumSize(uint32_t replica_count, uint32_t write_quorum);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_ARITHMETIC_QUORUM_H_
