// SPDX-License-Identifier: Apache-2.0
// deletion_inquiry: a node asks the other nodes whether logs of which it has a
// replica were deleted while it was away.
//
// Idea: a node that missed a deletion has a replica that nobody opens any more,
// and its records take space. So it asks for each log: soon after it began to
// serve the replica, and then ever more seldom. It counts the marks of the
// others itself. The word of one node decides nothing.
//
// A log that has an owner is mostly in use, and its members are not disturbed
// by early rounds. But a primary that lost power is an owner until the fabric
// ends its connection, which one without keep-alive never does. So the rounds
// at the longest interval ask for such a log, too. A session that ends by what
// they find could make nothing durable any more (P-D3).
//
// Invariants:
//   DLI1. A log is named only if an opening quorum of one list is marked with
//         that list (P-D3): this node's own replica, and others that said so,
//         each on a connection of its own that proved the cluster's key. Marks
//         of earlier rounds don't count.
//   DLI2. A log that has an owner is asked for once in again_ns_max, and not
//         before its wait has grown to that; one without is asked for in each
//         round that is due.
// Thread safety: one thread.
// References: protocol P-D5; deletion.h.
#ifndef ALPHEUS_RECOVERY_DELETION_DELETION_INQUIRY_H_
#define ALPHEUS_RECOVERY_DELETION_DELETION_INQUIRY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/deletion.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/opening_peer.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

struct DeletionInquiryOptions {
  // Nanoseconds from when a replica is served until the first round; 0: nobody
  // is asked.
  int64_t first_ns = 0;
  // Each round doubles the time until the next one, up to this.
  int64_t again_ns_max = 600'000'000'000;
  // Nanoseconds in which a node must answer.
  int64_t reply_timeout_ns = 3'000'000'000;
  // Nodes that may have replicas of the same logs; this node is skipped.
  std::vector<PeerAddress> peers;
};

class DeletionInquiry {
 public:
  struct Node {
    Uuid cluster_id;
    NodeId node;
    Credentials credentials;
  };

  // Fabric and clock must outlive the object.
  DeletionInquiry(fabric::Fabric& fabric, const Clock& clock, Node node,
                  DeletionInquiryOptions options);

  // Take what the fabric brought. Return false for any other connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  // Begins to ask for the log, and asks no more.
  void Watch(Uuid log_id);
  void Forget(Uuid log_id);

  // This node's replica of a log.
  struct OwnReplica {
    DeletionWitness witness;
    bool has_owner = false;  // some process owns its promise
  };
  // Returns it; nothing: nobody is to be asked.
  using FindOwn = absl::FunctionRef<std::optional<OwnReplica>(Uuid log_id)>;
  // Goes on with a round, or begins the next one that is due. Returns a log
  // whose deletion is decided (DLI1), whether or not it has an owner.
  std::optional<Uuid> Poll(FindOwn find_own);
  // Returns when Poll has something to do by itself; not set: never.
  Deadline NextPoll() const;

  // A running round ends.
  void Reconfigure(const Credentials& credentials,
                   DeletionInquiryOptions options);

 private:
  struct LogState {
    int64_t due_at = 0;  // nanoseconds; of the next round
    int64_t wait_ns = 0;
  };
  struct Round {
    Uuid log_id;
    int64_t until = 0;
    std::vector<std::unique_ptr<ControlCall>> calls;
  };

  void Begin(Uuid log_id, int64_t now);
  bool IsOver(int64_t now) const;
  std::vector<DeletionWitness> Witnesses() const;
  void PutOff(LogState& log, int64_t now) const;

  fabric::Fabric& fabric_;
  const Clock& clock_;
  Node node_;
  DeletionInquiryOptions options_;
  std::map<Uuid, LogState> logs_;
  std::optional<Round> round_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_DELETION_DELETION_INQUIRY_H_
