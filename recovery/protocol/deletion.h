// SPDX-License-Identifier: Apache-2.0
// deletion: what marks of replicas say together about the deletion of a log.
//
// Idea: a mark is a promise that no later one outbids, and two opening quorums
// share a replica. So once an opening quorum is marked no opening succeeds any
// more, and the deletion is decided. A single mark decides nothing.
//
// Invariants:
//   DLT1. A mark counts for a list of members only if the marked replica has
//         that very list, and the list names it with its incarnation: it was
//         marked while that list could be in force (P-D3).
// Thread safety: pure functions.
// References: protocol P-D1 to P-D5.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_DELETION_H_
#define ALPHEUS_RECOVERY_PROTOCOL_DELETION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/format/superline.h"
#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

// A replica that is marked, or could be.
struct DeletionWitness {
  Member replica;
  DeletionState state;
};

// Returns max(N - W + 1, W) of a list.
uint32_t OpeningQuorumOf(const MemberList& list);

// Returns a list of which an opening quorum is among these replicas (DLT1),
// marked or not; the one with the highest id. Nothing: there is none.
std::optional<Configuration> ListOfQuorum(
    std::span<const DeletionWitness> replicas);

// Returns whether the deletion is decided by those replicas that are marked.
bool IsDecided(std::span<const DeletionWitness> replicas);

// Returns the error of a replica that promises and shows nothing any more.
// Requires: not kNone.
absl::Status DeletedError(const std::string& replica, Deletion deletion);
// Returns how far the deletion is by such an error; kNone: it is another one.
Deletion DeletionBy(const absl::Status& status);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_DELETION_H_
