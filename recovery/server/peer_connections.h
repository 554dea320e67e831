// SPDX-License-Identifier: Apache-2.0
// peer_connections: all connections of a node's server: their control messages,
// their keys, the end of each, and the sentences about them.
//
// Idea: the services of the server (opening_service.h, local_primary_relay.h,
// replica_server.h) decide what is replied. This class sends it, one reply at a
// time, and ends a connection completely, at any point of its work.
//
// Invariants:
//   PCN1. Exactly one control receive is posted while requests may come, and
//         none once the session posts its own: receives are used up in order.
//   PCN2. A request is handed out once the reply before it was sent. So slots
//         and replies never mix.
//   PCN3. A connection that has ended, or is about to, has no key, no work in
//         slices and no session, and its session's watermark is persisted.
//   PCN4. If another primary ends a session, the session's own primary is sent
//         the reason before the connection is closed: Refused with the current
//         promise, or Released if a process of this machine takes the replica.
//         The message uses the slot of requests, which a session does not use
//         (PCN1): the reply to Install may still be in flight. The message may
//         be lost: an adapter may drop its sends when a connection closes
//         (FB5), and nobody waits.
// Thread safety: one thread.
// References: protocol P-R2, P-H17; messages.h, reject_counters.h.
#ifndef ALPHEUS_RECOVERY_SERVER_PEER_CONNECTIONS_H_
#define ALPHEUS_RECOVERY_SERVER_PEER_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/reject_counters.h"
#include "recovery/server/peer_connection.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/message_slots.h"

namespace alpheus::recovery {

// Counts of a server since its start.
struct ReplicaServerCounters {
  uint64_t accepted = 0;  // connections
  uint64_t rejected = 0;
  uint64_t formatted = 0;  // logs
  uint64_t promised = 0;
  uint64_t refused = 0;  // promises
  uint64_t wanted = 0;   // promises that a local primary was notified of
  uint64_t fenced = 0;   // connections that a promise closed
  uint64_t installed = 0;
  uint64_t gone = 0;    // primaries that went, with a promise or a session
  uint64_t failed = 0;  // connections that ended by an error
};

// The functions of ReplicaServerOptions with these names.
struct PeerConnectionsOptions {
  NodeId node;
  std::function<std::string(Uuid log_id)> name_of;
  std::function<void(const std::string&)> note;
  std::function<void(const std::string&)> warn;
  // Called for each connection that ends, perhaps twice, before its memory is
  // freed. Must end no connection.
  std::function<void(const PeerConnection&)> on_end;
};

class PeerConnections {
 public:
  // Fabric and clock must outlive the object.
  PeerConnections(fabric::Fabric& fabric, const Clock& clock,
                  PeerConnectionsOptions options);
  PeerConnections(const PeerConnections&) = delete;
  PeerConnections& operator=(const PeerConnections&) = delete;

  // Ends all connections.
  void EndAll();

  std::map<fabric::ConnectionId, PeerConnection>& all() { return all_; }
  const std::map<fabric::ConnectionId, PeerConnection>& all() const {
    return all_;
  }
  // Returns nullptr if there is none.
  PeerConnection* Find(fabric::ConnectionId id);
  // Returns the ids of the connections for which `is_so` is true, in order.
  std::vector<fabric::ConnectionId> Where(
      absl::FunctionRef<bool(const PeerConnection&)> is_so) const;

  // Gives the connection the memory of its messages. Errors: the fabric's.
  absl::Status MakeSlots(PeerConnection& connection);
  absl::Status PostRequestReceive(const PeerConnection& connection);

  // Returns true for work of control messages; sessions have all other.
  static bool IsControl(fabric::WorkId work);
  // Takes the completion of a request or of a reply. Returns the request that
  // is due now (PCN2), which stays valid until the next one; nothing if there
  // is none, and if the connection ends.
  std::optional<std::span<const std::byte>> TakeControl(
      PeerConnection& connection, const fabric::Completion& completion);
  absl::Status Send(PeerConnection& connection, const Message& reply);
  // Posts the next receive, and sends the reply; or fails with the error.
  void SendReply(PeerConnection& connection,
                 const absl::StatusOr<Message>& reply);
  // Sends the reason for which another primary ends `session`, if that is one
  // (PCN4).
  void SayOvertaken(const PeerConnection& session, const Message& why);

  // Registers bytes for the peer; the key is void when the connection ends.
  absl::StatusOr<fabric::RegionKey> IssueKey(PeerConnection& connection,
                                             std::span<std::byte> bytes,
                                             fabric::RemoteAccess access);
  void VoidKeys(PeerConnection& connection);

  // Two ways to end a connection: End closes it at once; Dismiss closes it once
  // a last message, such as Failed, was sent. Dismiss warns of nothing by
  // itself. Requires: it is one of all().
  void End(fabric::ConnectionId id, const absl::Status& why);
  void Dismiss(PeerConnection& connection, const Message& last);
  // Warns of `why`, and dismisses with Failed.
  void Fail(PeerConnection& connection, const absl::Status& why);

  std::string NameOf(Uuid log_id) const;
  std::string Describe(const PeerConnection& connection) const;
  void Note(const PeerConnection& connection, const std::string& what) const;
  // As Note, of a connection that is no primary's: the sentence begins with the
  // peer's address.
  void NoteOfOther(const PeerConnection& connection,
                   const std::string& what) const;
  // Counts a connection that ends by an error, and warns of it.
  void WarnOfEnd(const PeerConnection& connection, const absl::Status& why);
  // Warns of `why`. Counts a rejection, and warns only of the first of its
  // kind.
  void Warn(const std::string& peer, const absl::Status& why,
            const std::string& what);

  ReplicaServerCounters& counters() { return counters_; }
  const ReplicaServerCounters& counters() const { return counters_; }
  const RejectCounters& rejects() const { return rejects_; }

 private:
  // Slots of PeerConnection::slots.
  static constexpr size_t kRequestSlot = 0;
  static constexpr size_t kReplySlot = 1;

  absl::Status PostMessage(const PeerConnection& connection, size_t slot,
                           fabric::WorkId work, const Message& message);
  // Ends what runs for the connection, and frees the memory of its work (PCN3).
  absl::Status EndServing(PeerConnection& connection);

  fabric::Fabric& fabric_;
  const Clock& clock_;
  const PeerConnectionsOptions options_;
  std::map<fabric::ConnectionId, PeerConnection> all_;
  ReplicaServerCounters counters_;
  RejectCounters rejects_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_PEER_CONNECTIONS_H_
