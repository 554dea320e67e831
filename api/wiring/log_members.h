// SPDX-License-Identifier: Apache-2.0
// log_members: who keeps a log at present, and blank replicas for nodes that
// are to join it: what a change of members begins with.
//
// Idea: the present configuration is in the superlines of the old members. They
// are looked at without a promise, so nobody is disturbed; the opening that
// makes the change finds out again, and may find another (opening_quorums.h).
//
// Thread safety: one thread; the calls block.
// References: protocol P-A5, P-H16; docs/design/recovery.md, "Changing the
// members".
#ifndef ALPHEUS_API_WIRING_LOG_MEMBERS_H_
#define ALPHEUS_API_WIRING_LOG_MEMBERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/format/superline.h"
#include "quorum/members/configuration.h"
#include "recovery/protocol/opening_peer.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

struct LogMembersOptions {
  Uuid cluster_id;
  Uuid log_id;
  std::string log_name;
  NodeId self;  // as whose process it asks
  ClusterKey key = {};
  Deadline deadline;
};

struct ReadReplicas {
  std::vector<Superline> superlines;
  // Why the others told nothing: DataLoss where the replica is damaged,
  // Unavailable where it may pass.
  std::map<NodeId, absl::Status> failed;
};

// Of the nodes that can be reached and have a replica of the log, in the order
// of `peers`. Each of them is waited for 10 seconds at most.
// Errors: Unavailable (none: each is named, with its reason).
absl::StatusOr<ReadReplicas> ReadSuperlines(
    Fabric& fabric, RandomSource& random, const LogMembersOptions& options,
    const std::vector<PeerAddress>& peers);

// The one that knows most of them: of the highest log epoch, not blank.
// Requires: not empty. Errors: FailedPrecondition (all are blank).
absl::StatusOr<Superline> NewestOf(const std::vector<Superline>& superlines);

// Makes blank replicas of the log `newest` is of, where there is none.
// Errors: as LogCreation.
absl::Status MakeBlankReplicas(Fabric& fabric, RandomSource& random,
                               const LogMembersOptions& options,
                               const Superline& newest,
                               const std::vector<PeerAddress>& peers);

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_LOG_MEMBERS_H_
