// SPDX-License-Identifier: Apache-2.0
// trunks: all trunks of one adapter, and the connections that travel by them.
//
// Idea: a trunk (trunk.h) knows frames and lanes. Here is what has to do with
// the adapter: which trunk a new connection shares, what a lane's bytes do to
// its connection, and when a trunk ends. The adapter's connections are reached
// through an interface, since the adapter has those with sockets of their own,
// too.
//
// Invariants: TRK1 to TRK8 of trunk.h.
// Thread safety: none; the adapter's lock guards it.
// References: docs/design/fabric.md#trunks.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_TRUNKS_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_TRUNKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/tcp/connection.h"
#include "replication/fabric/tcp/stream.h"
#include "replication/fabric/tcp/trunk.h"

namespace alpheus::fabric::tcp {

class Trunks {
 public:
  // The adapter's connections, as trunks reach them. A connection that is not
  // there any more is passed over.
  class Connections {
   public:
    virtual ~Connections() = default;

    // Returns a number for a trunk or a connection.
    virtual ConnectionId NewId() = 0;
    // Adds the connection of a lane. `private_data`: goes to the peer, to which
    // it connects; none: the peer connects.
    virtual void AddLane(ConnectionId id, std::unique_ptr<Stream> lane,
                         const std::string& peer,
                         std::optional<std::string> private_data,
                         Deadline deadline) = 0;
    // Prepares for one more that the application does not know yet: makes room
    // (TF8), and asks for the settings of TLS (TF11).
    virtual void PrepareForPeer(int64_t now) = 0;
    // All four have the connection go on. Return true if anything moved.
    virtual bool OnReady(ConnectionId id, int64_t now) = 0;
    virtual bool OnBytes(ConnectionId id, std::span<const std::byte> bytes,
                         int64_t now) = 0;
    virtual bool OnRoom(ConnectionId id, int64_t now) = 0;
    virtual bool OnEnd(ConnectionId id, int64_t now) = 0;
    // Notes that bytes of the trunk were sent.
    virtual void OnSent(ConnectionId id, int64_t now) = 0;
  };

  // Both must outlive the object.
  Trunks(Shared& shared, Connections& connections)
      : shared_(shared), connections_(connections) {}

  // ---- Connections

  // Adds a connection to the address, on a socket that others share. Errors:
  // InvalidArgument (not an address).
  absl::StatusOr<ConnectionId> Connect(std::string_view address,
                                       std::string_view private_data,
                                       Deadline deadline, int64_t now);
  // Begins a trunk on an accepted socket, which keeps the number under which it
  // is watched.
  void Begin(ConnectionId id, Connection::Departure start,
             const std::string& peer, int64_t now);
  bool HasLane(ConnectionId connection) const {
    return trunk_of_.contains(connection);
  }
  // Notes that the application knows the connection; that it fell silent, or
  // timed out (TRK6); that it is no more.
  void OnEstablished(ConnectionId connection);
  void OnSilence(ConnectionId connection);
  void OnForgotten(ConnectionId connection);

  // ---- Sockets

  size_t size() const { return trunks_.size(); }
  size_t lanes() const { return trunk_of_.size(); }
  // Returns the number of any one. Requires: size() > 0.
  ConnectionId front() const { return trunks_.begin()->first; }
  bool Has(ConnectionId id) const { return trunks_.contains(id); }
  // Returns true if nothing but bytes can come.
  bool IsReady(ConnectionId id) const;
  // Receives, as the poller named it. Where memory runs out the trunk ends, and
  // no other. Returns true if anything moved. Requires: Has(id).
  bool Receive(ConnectionId id, int64_t now);
  // Sends what all have to send.
  void Send(int64_t now);

  bool RunTimers(int64_t now);
  // Returns when to call RunTimers; the largest value: never.
  int64_t NextTimer() const;
  // Ends those whose peer's certificate these settings revoke.
  bool EndRevoked(const TlsSettings& settings, int64_t now);

  // Calls `visit` for each that has no connection which the application knows.
  void ForEachUnauthenticated(
      absl::FunctionRef<void(ConnectionId id, const std::string& peer)> visit)
      const;
  // Ends one of those, to make room for others.
  void MakeRoom(ConnectionId id, int64_t now);

 private:
  struct State {
    std::shared_ptr<Trunk> trunk;
    // A trunk that this side began is encrypted with this.
    std::shared_ptr<const TlsSettings> tls = {};
    // When it ends if it has no lane until then; before it is ready, when it
    // gets no further lanes.
    int64_t deadline = 0;
    bool was_ready = false;
    bool is_authenticated = false;
  };
  using States = std::map<ConnectionId, State>;

  // Runs `work` for a trunk, which ends where memory runs out.
  void Guard(ConnectionId id, int64_t now, absl::FunctionRef<void()> work);
  bool ReceiveSome(ConnectionId id, int64_t now);
  // Return the trunk to the address for a connection of the group, which may
  // have to wait there until the peer has answered (TRK8). TrunkFor begins one
  // if there is none. Errors: InvalidArgument (not an address).
  absl::StatusOr<States::iterator> TrunkFor(std::string_view address,
                                            uint32_t group, int64_t now);
  absl::StatusOr<States::iterator> BeginTo(std::string_view address,
                                           uint32_t group, int64_t now);
  // Has the lanes go on that waited for the answer.
  void OnAnswer(const std::shared_ptr<Trunk>& trunk, int64_t now);
  // Returns true if it is ready now.
  bool MakeReady(ConnectionId id, State& state, int64_t now);
  bool Take(ConnectionId id, std::span<const std::byte> bytes, int64_t now,
            bool* moved);
  bool OnArrival(ConnectionId id, const Trunk::Arrival& arrival, int64_t now);
  bool OnNewLane(ConnectionId id, uint32_t number, int64_t now);
  void SendOne(State& state, int64_t now);
  void EndIfEmpty(State& state, int64_t now);
  // Returns true if a connection has ended.
  bool End(ConnectionId id, int64_t now);
  void NoteRejected(const Trunk& trunk, UnauthenticatedEnd why,
                    std::string_view detail);

  Shared& shared_;
  Connections& connections_;
  States trunks_;
  // The trunk of each connection that has one.
  std::map<ConnectionId, ConnectionId> trunk_of_;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_TRUNKS_H_
