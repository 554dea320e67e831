// SPDX-License-Identifier: Apache-2.0
// change_members: changes the members of a log: from two lists of members to an
// open epoch with the new ones.
//
// Idea: joining nodes get blank replicas first, while the primary continues.
// Then the primary is asked to make the change (ask_primary.h), and its log
// goes on. A primary whose node leaves first hands over to another candidate
// (instruct_candidates.h), which is asked next. If no primary can make the
// change, an opening makes it (opening_quorums.h), and is closed.
//
// Invariants:
//   CHM1. A primary is ended without its consent only if it can't be asked, or
//         can't make the change and does not hand over: because no other
//         candidate stands, or because its program does not give the log back
//         in time.
// Thread safety: each call has connections of its own; it blocks.
// References: protocol P-A5, P-H16, P-H18; docs/design/recovery.md, "Changing
// the members".
#ifndef ALPHEUS_API_ADMIN_CHANGE_MEMBERS_H_
#define ALPHEUS_API_ADMIN_CHANGE_MEMBERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "alpheus/options.h"
#include "alpheus/recovery_report.h"
#include "quorum/members/configuration.h"
#include "recovery/opening/opening_quorums.h"
#include "recovery/protocol/opening_peer.h"

namespace alpheus {

// Changes the members as Log::ChangeMembers says.
absl::StatusOr<RecoveryReport> ChangeLogMembers(
    const ChangeMembersOptions& options);
// Does the same with lists that were read: `from` and `to`, the same one if
// replicas are replaced. The file of `from` is read if a candidate is told to
// hand over: previous_cluster_file of `options`, or, if that is empty,
// cluster_file. Else both are names for people.
absl::StatusOr<RecoveryReport> ChangeLogMembers(
    const ChangeMembersOptions& options,
    const quorum::ClusterConfiguration& from,
    const quorum::ClusterConfiguration& to);

// Opens an epoch that makes the change, and closes it (the second half, if no
// primary can make it; in replicated_engine.cc). The process belongs to
// options.replication.node, has no replica, and asks the members of both lists.
absl::StatusOr<RecoveryReport> OpenToChangeMembers(
    const LogOptions& options, const quorum::ClusterConfiguration& to,
    NodeId as_node, recovery::MembersChange change,
    std::vector<recovery::PeerAddress> asked);

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_CHANGE_MEMBERS_H_
