// SPDX-License-Identifier: Apache-2.0
// local_regions: the questions of a node's server to the node's daemon, about
// replicas of this machine that the server does not serve.
//
// Idea: a process of this machine may have such a replica's region, and the
// region's lock (P-A7). The server neither opens files nor takes locks. The
// daemon does both, and reads the other process's superline and watermarks. The
// defaults are those of a node on which no other process has a region.
//
// Thread safety: one thread, that of the server. No call may add or remove a
// log of the server, except WhyUnserved.
// May block: for system calls (opening and locking files, reading them), while
// the server waits.
// References: protocol P-A7; replica_server.h, local_primary_relay.h.
#ifndef ALPHEUS_RECOVERY_SERVER_LOCAL_REGIONS_H_
#define ALPHEUS_RECOVERY_SERVER_LOCAL_REGIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

class LocalRegions {
 public:
  virtual ~LocalRegions() = default;

  // Releases the log's region for a process of this machine: RemoveLog follows.
  // Returns false, with nothing done, if this node releases no region.
  virtual bool ReleaseRegion(Uuid /*log_id*/) { return false; }
  // Returns why this node does not serve a log of which it has a replica, or OK
  // if it has none. Asked for logs that were not added. May add the log.
  virtual absl::Status WhyUnserved(Uuid /*log_id*/) { return absl::OkStatus(); }
  // Returns the ServerHello of such a replica while another process of this
  // machine has its region. Errors: as WhyUnserved.
  virtual absl::StatusOr<ServerHello> ReadServerHello(Uuid /*log_id*/) {
    return absl::UnavailableError("no process of this machine has the region");
  }
  // Returns the reply to a Follow of such a replica. Errors: Unimplemented
  // (followers are rejected); as WhyUnserved.
  virtual absl::StatusOr<Followed> ReadFollowed(Uuid /*log_id*/) {
    return absl::UnimplementedError("regions of others are not followed");
  }
  // Returns the process that holds the region's lock, for messages:
  // " (process 1234)", or nothing where the system does not tell.
  virtual std::string DescribeLockHolder(Uuid /*log_id*/) { return ""; }
  // Called when a process that held the lock may be gone. AddLog may follow
  // once the call has returned.
  virtual void OnLockHolderGone(Uuid /*log_id*/) {}
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_LOCAL_REGIONS_H_
