// SPDX-License-Identifier: Apache-2.0
// opening_service: serves the process that opens a replica's log: promise,
// state report, repair and installation, until the session begins.
//
// Idea: each step is a request of the log's promise owner. The first, Prepare,
// makes its connection the owner. Scan and installation take slices
// (slice_scheduler.h). AfterWork gives the reply once they are done.
//
// Invariants:
//   OSV1. Before the replica reads its ring for the state report: the promise
//         is persisted; all other connections of the log that ever had a
//         promise are closed; every key that was issued is void (P-H6, P-R2,
//         P-INV-6). Closing and voiding each fence the session (FB5 of
//         fabric.h). Both are needed, because a key opens its region on every
//         connection.
//   OSV2. After that the ring changes only through the promise owner's
//         connection. Keys that allow writes exist from RepairOpened until that
//         connection ends.
//   OSV3. A request that says which promise its primary knew of does not depose
//         a later one that has gone further than the state report, or is gone
//         itself: it is refused before anything is promised. Between two that
//         still read reports the higher ballot decides. Nothing here is needed
//         for safety (docs/design/election.md#two-candidates-at-once).
//   OSV4. Before a mark of deletion is acknowledged it is on media, and nobody
//         reads or writes the replica by a key of before: all keys are void,
//         those of readers too (P-D2).
// Thread safety: one thread.
// References: protocol P-A4.2, P-A4.5, P-A5, P-D1, P-H6, P-R1, P-R2;
// messages.h, served_log.h; docs/design/recovery.md.
#ifndef ALPHEUS_RECOVERY_SERVER_OPENING_SERVICE_H_
#define ALPHEUS_RECOVERY_SERVER_OPENING_SERVICE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/messages.h"
#include "recovery/scrub/scrubbing.h"
#include "recovery/server/peer_connections.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

class OpeningService {
 public:
  // All must outlive the object.
  OpeningService(fabric::Fabric& fabric, PeerConnections& connections,
                 Scrubbing& scrubbing)
      : fabric_(fabric), connections_(connections), scrubbing_(scrubbing) {}

  // Checks that the promise is for the process that connected. Errors:
  // InvalidArgument.
  static absl::Status CheckAsker(const PeerConnection& connection,
                                 const quorum::Promise& promise);
  // Checks that the asker's list of members is not older than `own`, the id of
  // the replica's (P-A5). Errors: FailedPrecondition.
  static absl::Status CheckConfiguration(uint64_t own, const Prepare& ask);
  // Counts a refused promise, warns of it, and returns Refused. If `why` names
  // no promise by which it was refused, returns `why`.
  absl::StatusOr<MaybeReply> Refusing(const PeerConnection& connection,
                                      const quorum::Promise& request,
                                      const absl::Status& why);

  // Returns true if the asker did not know of `current` when it decided to open
  // the log, and `current` is another process's.
  static bool IsUnknown(const Prepare& ask, const quorum::Promise& current);
  // Counts a promise that is refused because its asker did not know of
  // `current` (OSV3), notes it, and returns Refused.
  Message RefuseLate(const PeerConnection& connection, const Prepare& ask,
                     const quorum::Promise& current);

  // Requests. Requires: the connection has a log. Errors: the reasons for which
  // the connection ends.
  absl::StatusOr<MaybeReply> OnPrepare(PeerConnection& connection,
                                       const Prepare& ask);
  absl::StatusOr<Message> OnOpenForRepair(PeerConnection& connection,
                                          const OpenForRepair& open);
  absl::StatusOr<MaybeReply> OnInstall(PeerConnection& connection,
                                       const Install& install);
  absl::StatusOr<Message> OnMark(PeerConnection& connection, const Mark& mark);
  // Returns the reply when the whole ring has been read.
  absl::StatusOr<Message> AfterWork(PeerConnection& connection);

 private:
  using Phase = PeerConnection::Phase;

  // Returns true if the primary of the log's promise still reads reports.
  bool ReadsReports(const ServedLog& log) const;
  absl::StatusOr<Message> AfterReport(PeerConnection& connection);
  absl::StatusOr<Message> AfterInstall(PeerConnection& connection);
  // Checks that the connection holds the promise of this epoch, is in this
  // phase, and may write. Errors: FailedPrecondition.
  static absl::Status CheckPromiseOwner(const PeerConnection& connection,
                                        Phase phase, Epoch epoch,
                                        const char* what);
  // Makes all keys and connections void that the log issued (OSV1).
  void Fence(PeerConnection& owner);
  // Makes all keys of the log void (OSV4).
  void EndUsers(PeerConnection& owner);

  fabric::Fabric& fabric_;
  PeerConnections& connections_;
  Scrubbing& scrubbing_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_OPENING_SERVICE_H_
