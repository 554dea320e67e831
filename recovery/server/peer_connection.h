// SPDX-License-Identifier: Apache-2.0
// peer_connection: one connection of a process to the server of this node's
// replicas: whose it is, its phase, its place, and the memory that it has.
//
// Idea: plain state. peer_connections.h keeps, sends and ends;
// connection_admission.h gives places; the services change the phase, as the
// table of replica_server.h says.
//
// Thread safety: one thread.
// References: protocol P-A4, P-A7; docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_SERVER_PEER_CONNECTION_H_
#define ALPHEUS_RECOVERY_SERVER_PEER_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/base/ids.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/messages.h"
#include "recovery/server/served_log.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/message_slots.h"

namespace alpheus::recovery {

// Empty: the reply comes when the work is done.
using MaybeReply = std::optional<Message>;

struct PeerConnection {
  enum class Phase {
    kControl,
    kReporting,
    kPromised,
    kRepairOpened,
    kInstalling,
    kSession,
    kClaiming,
    kWaiting,
    kFetching,
    kHearing,
    kEnding,
  };

  // The last use of a connection without a promise (ADM1).
  enum class Place { kNew, kViewing, kFollowing, kAsking };

  fabric::ConnectionId id;
  std::string peer;
  std::string peer_name;  // that it has proved to the adapter; empty: none
  Hello hello;
  // nullptr: not made yet, or another process has it
  ServedLog* log = nullptr;
  // ServerHello of a log whose region another process has; empty: this one
  // serves it.
  std::optional<ServerHello> claimed;
  Prepare asked;  // kWaiting
  Fetch fetch;    // kFetching
  Hear hear;      // kHearing; the last one, for others that ask who stands
  int64_t asked_at = 0;  // nanoseconds; of `hear`, 0: never
  // An operator's word that came since the peer began to stand, until the peer
  // says that it knows it (ELD9).
  std::optional<Instruction> untold;
  Phase phase = Phase::kControl;
  Place place = Place::kNew;
  quorum::Promise promise;  // last promise that it got
  std::optional<ReplicaHandshake> handshake;
  int64_t accepted_at = 0;  // nanoseconds

  std::unique_ptr<replication::MessageSlots> slots;  // request and reply
  bool replying = false;                             // the reply is being sent
  std::optional<uint64_t> request;  // length of a request that waits for that
  std::vector<std::byte> report;
  Install install;                      // request that is being served
  std::vector<fabric::RegionKey> keys;  // given to the peer; the report's first

  int64_t heard_at = 0;       // nanoseconds
  bool is_heard = false;      // something came since the last Poll
  uint32_t heartbeat_ms = 0;  // of the session, as in Install
  // Something came in the session: its primary has opened the log.
  bool has_spoken = false;
  bool watermark_due = false;  // batches came since the last watermark

  // Returns true if the peer may make requests.
  bool is_proved() const { return handshake->is_over(); }
  bool ever_promised() const { return promise != quorum::Promise(); }
  // Returns true from kReporting to kSession, and for a local primary in
  // kClaiming (RS2 of replica_server.h).
  bool is_promise_owner() const {
    return phase != Phase::kControl && phase != Phase::kWaiting &&
           phase != Phase::kFetching && phase != Phase::kHearing &&
           phase != Phase::kEnding;
  }
  // Returns true while work in slices runs for this connection.
  bool is_at_work() const {
    return phase == Phase::kReporting || phase == Phase::kInstalling;
  }
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_PEER_CONNECTION_H_
