// SPDX-License-Identifier: Apache-2.0
// connection_admission: decides which connections a node keeps. It checks
// requests to connect, limits the places of each kind, and ends a connection to
// make room.
//
// Idea: the promise owner of a log and a local primary each have a place of
// their own, because a log has one of each at most. All other connections share
// a bounded number of places by their last use. A new connection is let in. If
// its kind has no place left, the connection of that kind that was silent
// longest ends.
//
// Invariants:
//   ADM1. Memory is bounded. Connections without a promise are limited in
//         number and in the time that they may be silent.
//         * Connections without a proof have places of their own, so that
//           unauthenticated clients take none of those with the key. The oldest
//           makes room.
//         * Connections with a proof have places by their last request: new,
//           looking at a region, following, or asking. None takes a place of
//           another kind. The one that was silent longest makes room. So no
//           number of readers keeps out an opening or a look.
//         * Followers that keep asking are rejected when there are too many.
// Thread safety: one thread.
// References: protocol P-A5, P-H16, P-H17; handshake.h, reject_counters.h;
// docs/use/operating.md#security.
#ifndef ALPHEUS_RECOVERY_SERVER_CONNECTION_ADMISSION_H_
#define ALPHEUS_RECOVERY_SERVER_CONNECTION_ADMISSION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/messages.h"
#include "recovery/server/local_primary_relay.h"
#include "recovery/server/peer_connections.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

// The options of ReplicaServerOptions with these names.
struct ConnectionAdmissionOptions {
  Uuid cluster_id;
  NodeId node;
  Credentials credentials = {};
  size_t waiting_connections_max = 0;
  size_t followers_max = 0;
  size_t unproved_connections_max = 0;
  int64_t silence_ns_max = 0;
  int64_t proof_ns_max = 0;
};

class ConnectionAdmission {
 public:
  using Place = PeerConnection::Place;

  // All must outlive the object.
  ConnectionAdmission(fabric::Fabric& fabric, const Clock& clock,
                      PeerConnections& connections,
                      const LocalPrimaryRelay& relay,
                      const ConnectionAdmissionOptions& options)
      : fabric_(fabric),
        clock_(clock),
        connections_(connections),
        relay_(relay),
        options_(options) {}

  // Returns the connection that a request is for, without a log. Errors: a
  // reject (reject_counters.h).
  absl::StatusOr<PeerConnection> Check(
      const fabric::ConnectionEvent& request) const;
  // Rejects the request, and sends the peer the reason.
  void Reject(const fabric::ConnectionEvent& request, const absl::Status& why);
  // Keeps the connection, and notifies the peer. Another one may have to make
  // room. Requires: its first receive is posted.
  void Accept(PeerConnection connection, const ServerHello& server_hello);

  // Returns the place for a connection that makes this request.
  static Place PlaceFor(const Message& request);
  // Gives the connection a place; another one may have to make room. Errors:
  // ResourceExhausted (too many followers).
  absl::Status TakePlace(PeerConnection& connection, Place place);

  // Returns when a connection that asks for nothing has to end, in nanoseconds,
  // and why. Requires: it has no promise, and waits for nobody.
  int64_t DueAt(const PeerConnection& connection) const;
  absl::Status WhyTooLate(const PeerConnection& connection) const;

  // Takes the options. Connections keep what they have proved, and their
  // places.
  void Reconfigure(const ConnectionAdmissionOptions& options) {
    options_ = options;
  }

 private:
  bool HasPlace(const PeerConnection& connection, Place place) const;
  size_t PlacesOf(Place place) const;
  // Returns the one of that kind that was silent longest, or nullptr.
  PeerConnection* LongestSilent(Place place, const PeerConnection& but);
  // Returns the oldest connection without a proof, or nullptr if there is room.
  PeerConnection* OldestTooMany();

  fabric::Fabric& fabric_;
  const Clock& clock_;
  PeerConnections& connections_;
  const LocalPrimaryRelay& relay_;
  ConnectionAdmissionOptions options_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_CONNECTION_ADMISSION_H_
