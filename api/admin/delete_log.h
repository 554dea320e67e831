// SPDX-License-Identifier: Apache-2.0
// delete_log: deletes a replicated log on all its members, for good.
//
// Idea: an attempt is a LogDeletion (log_deletion.h). One that another process
// outbids is made again above it, after a random time, until the time is over.
//
// Invariants:
//   DEL1. A process that acts for a node deletes nothing in a cluster that
//         encrypts: it has that node's certificate, which is good for no
//         deletion (RS4 of replica_server.h). It is refused before anything is
//         promised, so no primary is disturbed.
// Thread safety: each call has connections of its own; it blocks.
// References: protocol P-D1 to P-D5; docs/use/operating.md.
#ifndef ALPHEUS_API_ADMIN_DELETE_LOG_H_
#define ALPHEUS_API_ADMIN_DELETE_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace alpheus {

struct DeleteLogOptions {
  std::string cluster_file = {};
  std::string log_name = "main";
  uint32_t timeout_ms = 60'000;
  // Node for which this process asks; 0: an operator.
  uint64_t as_node = 0;
};

// A log whose deletion is decided.
struct DeletedLog {
  std::vector<uint64_t> removed;  // nodes that have removed their records
  // Nodes that have not said so: they learn of it when they are back, or by the
  // same call.
  std::vector<uint64_t> left;
};

// Deletes the log. On OK the deletion is decided: the log opens no more,
// whatever fails. Errors, with no record removed: as LogDeletion;
// FailedPrecondition (DEL1); those of cluster file and adapter. The message
// says which members are marked as deleted; the same call goes on.
absl::StatusOr<DeletedLog> DeleteLog(const DeleteLogOptions& options);

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_DELETE_LOG_H_
