// SPDX-License-Identifier: Apache-2.0
// slice_scheduler: the order in which a node reads rings: a slice at a time,
// one job after the other.
//
// Idea: scans and installations may read the whole ring, which takes seconds
// for some GiB. They run in slices, one in each Poll. So sessions of other logs
// wait for one slice at most.
//
// Invariants:
//   SLS1. A job that has begun gets every slice until it is over. If all took
//         turns, each would end as late as the last one, which may be too late.
//   SLS2. Then comes the job of the next higher connection, or of the lowest.
//         So every job has its turn.
//   SLS3. A job whose medium failed meanwhile gives no result. Reads since the
//         failure may have given zeros (bus_guard.h), by which a state report
//         would say that the replica never had the records.
// Thread safety: one thread.
// References: protocol P-A7, P-A8; replica_server.h, served_log.h.
#ifndef ALPHEUS_RECOVERY_SERVER_SLICE_SCHEDULER_H_
#define ALPHEUS_RECOVERY_SERVER_SLICE_SCHEDULER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "recovery/server/peer_connections.h"

namespace alpheus::recovery {

class SliceScheduler {
 public:
  // `connections` must outlive the object. `slice_bytes`: bytes of a ring that
  // a slice reads; more than 0.
  SliceScheduler(PeerConnections& connections, uint64_t slice_bytes)
      : connections_(connections), slice_bytes_(slice_bytes) {}

  // Returns the connection whose work has the next slice; nullptr: there is no
  // work.
  PeerConnection* Next();
  // Does a slice. Returns true once the work is over. Requires: Next returned
  // it. Errors: the work's; Unavailable (SLS3).
  absl::StatusOr<bool> Run(PeerConnection& connection) const;

 private:
  PeerConnections& connections_;
  const uint64_t slice_bytes_;
  fabric::ConnectionId last_;  // connection that had the last slice
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_SLICE_SCHEDULER_H_
