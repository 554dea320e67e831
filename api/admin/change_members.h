// SPDX-License-Identifier: Apache-2.0
// change_members: a change of who keeps a log, from two lists of members to an
// epoch that is open with the new ones.
//
// Idea: nodes that join get blank replicas first, while whoever runs the log
// goes on; then an opening makes the change (opening_quorums.h), and is closed.
//
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

// As Log::ChangeMembers.
absl::StatusOr<RecoveryReport> ChangeLogMembers(
    const ChangeMembersOptions& options);

// Its second half, in replicated_engine.cc: opens an epoch as a process of
// options.replication.node that has no replica, asking the members of before
// and after, and lets go of it.
absl::StatusOr<RecoveryReport> OpenToChangeMembers(
    const LogOptions& options, const ClusterConfiguration& to,
    MembersChange change, std::vector<PeerAddress> asked);

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_CHANGE_MEMBERS_H_
