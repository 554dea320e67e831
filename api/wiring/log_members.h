// SPDX-License-Identifier: Apache-2.0
// log_members: finds the present members of a log, and makes blank replicas on
// joining nodes: the first step of a change of members.
//
// Idea: the present configuration is in the superlines of the old members. They
// are read without a promise, so nobody is disturbed. The opening that makes
// the change reads them again, and may find another configuration
// (opening_quorums.h).
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
  NodeId self;  // node of the asking process
  quorum::ClusterKey key = {};
  Deadline deadline;
};

struct ReadSuperlinesResult {
  std::vector<Superline> superlines;
  // Reasons why the others reported nothing: DataLoss where the replica is
  // damaged, Unavailable where it may pass.
  std::map<NodeId, absl::Status> failed;
};

// Reads the superlines of all reachable nodes that have a replica of the log,
// in the order of `peers`. Waits at most 10 seconds for each.
// Errors: Unavailable (none: each is named, with its reason).
absl::StatusOr<ReadSuperlinesResult> ReadSuperlines(
    fabric::Fabric& fabric, RandomSource& random,
    const LogMembersOptions& options,
    const std::vector<recovery::PeerAddress>& peers);

// Returns the newest superline: the one of the highest log epoch that is not
// blank.
// Requires: not empty. Errors: FailedPrecondition (all are blank).
absl::StatusOr<Superline> NewestOf(const std::vector<Superline>& superlines);

// Makes blank replicas of the log of `newest` where there is none.
// Errors: as LogCreation.
absl::Status MakeBlankReplicas(fabric::Fabric& fabric, RandomSource& random,
                               const LogMembersOptions& options,
                               const Superline& newest,
                               const std::vector<recovery::PeerAddress>& peers);

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_LOG_MEMBERS_H_
