// SPDX-License-Identifier: Apache-2.0
// ask_primary: asks the process that has a log open to change its members, so
// that the log goes on.
//
// Idea: the primary takes no connections, but it has a claim with its own node,
// if it keeps that node's replica (region_claim.h). So all members of both
// lists are told the change, and the primary's node passes it on. They are told
// again, with the same id, until the outcome is known (change_inquiry.h).
//
// Invariants:
//   ASP1. Only the primary answers that the change was not begun, was cut off
//         or was made. Without such an answer nothing is known: the caller
//         makes the change by an opening, which completes one that was cut off.
// Thread safety: each call has connections of its own; it blocks.
// References: protocol P-A5.4; docs/design/recovery.md#while-the-log-runs.
#ifndef ALPHEUS_API_ADMIN_ASK_PRIMARY_H_
#define ALPHEUS_API_ADMIN_ASK_PRIMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/admin/change_inquiry.h"
#include "log/base/deadline.h"
#include "quorum/members/configuration.h"
#include "recovery/protocol/members_change.h"

namespace alpheus {

struct AskPrimaryOptions {
  std::string log_name;
  NodeId as_node;  // as ChangeMembersOptions has it
  // By then somebody must have begun the change.
  Deadline begun_by;
  // Deadline of the change, newcomers' copies included.
  Deadline deadline;
  // Nanoseconds for which members that are no newcomers are waited for, once
  // the change is made.
  int64_t gather_ns = 0;
};

// Returns the report of the epoch with the change, once newcomers have joined
// and others had their time, or the deadline has passed. Returns no report if
// nobody can make the change while the log runs: there is no primary with a
// replica of its own, or its node does not stay a member. `cluster` has the key
// and the fabric, `peers` are the members of both lists. May block, up to the
// deadline. Errors: FailedPrecondition (the log has another list; the change is
// too large); InvalidArgument; Unavailable (not made: the log goes on, perhaps
// with a change that is half made; or the outcome is unknown: the primary did
// not tell it). Others as those of the adapter.
absl::StatusOr<AskedPrimary> AskPrimary(
    const quorum::ClusterConfiguration& cluster,
    const AskPrimaryOptions& options, const recovery::MembersChange& change,
    const std::vector<recovery::PeerAddress>& peers);

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_ASK_PRIMARY_H_
