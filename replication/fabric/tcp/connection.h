// SPDX-License-Identifier: Apache-2.0
// connection: one stream between two adapters: handshake, the two halves,
// keep-alive, and its end.
//
// Invariants:
//   TCN1. A broken connection executes, sends and completes nothing more: all
//         posted work has completed (FB3 of fabric.h).
//   TCN2. Memory is bounded: one pong waits at most; answers and kept requests
//         as TRP4 (responder.h) says, in all kept_bytes_max, plus one buffer
//         for each connection, and, where it is encrypted, those of FTL3
//         (tls.h).
// Thread safety: none; the adapter's lock guards it.
// References: liveness_timers.h.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_CONNECTION_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_CONNECTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/base/deadline.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/region_table.h"
#include "replication/fabric/tcp/liveness_timers.h"
#include "replication/fabric/tcp/options.h"
#include "replication/fabric/tcp/outbox.h"
#include "replication/fabric/tcp/requester.h"
#include "replication/fabric/tcp/responder.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/stream.h"
#include "replication/fabric/tcp/wire.h"

namespace alpheus::fabric::tcp {

// State that the connections of one adapter share.
struct Shared {
  const TcpFabricOptions& options;
  RegionTable& regions;
  Poller& poller;
  TcpFabricCounters& counters;
  std::span<std::byte> buffer;  // for received bytes
  std::deque<Completion> completions;
  std::vector<ConnectionEvent> events;
  int64_t timers_ran_at = 0;  // when OnTimers ran last; 0: never
  uint64_t kept_bytes = 0;    // by all responders (TCN2)
  // Settings for connections that begin now; null: they are not encrypted.
  std::shared_ptr<const TlsSettings> tls = {};

  std::optional<uint32_t> GroupOf(std::string_view private_data) const {
    if (!options.group_of) return 0;
    return options.group_of(private_data);
  }
  // Returns how many adapters share this one's address.
  uint32_t adapters() const {
    return options.exchange == nullptr ? 1 : options.exchange->adapters();
  }
  // Returns whether connections of the group are this adapter's (XCH1).
  bool IsOwn(uint32_t group) const {
    return AdapterOf(group, adapters()) == options.adapter;
  }
};

class Connection {
 public:
  enum class State {
    kConnecting,  // TCP's handshake, and TLS's
    kGreeting,    // hello sent, no answer yet
    kAnonymous,   // accepted, no hello yet; unknown to the application
    kRequested,
    kEstablished,
    kBroken,     // the application must still close it
    kLingering,  // closed by the application; sends its last bytes
    kDead,       // to be forgotten
  };

  // Starts with a stream that connects (`private_data` goes to the peer), or
  // with one that the peer has begun. `is_alone`: the stream is a socket's, and
  // the peer may turn it into a trunk, or be another adapter's. If the stream
  // is closed, the connection fails when timers run next.
  Connection(ConnectionId id, std::unique_ptr<Stream> stream, bool is_alone,
             std::string peer, Shared* shared,
             std::optional<std::string> private_data, Deadline deadline,
             int64_t now);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  State state() const { return state_; }
  const std::string& peer() const { return peer_; }
  // Returns true if the application does not know the connection yet, or knows
  // it no longer.
  bool is_unauthenticated() const {
    return state_ == State::kAnonymous || state_ == State::kLingering;
  }
  bool is_established() const { return state_ == State::kEstablished; }
  // Returns true if it has a socket of its own.
  bool has_socket() const { return is_alone_ && stream_->is_open(); }
  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  uint64_t message_bytes_max() const { return message_bytes_max_; }

  void Accept(std::string_view private_data, int64_t now);
  void Reject(std::string_view private_data, int64_t now);
  // Closes. Posted work completes with kFlushed; no event follows.
  void Close(int64_t now);
  // Breaks the connection, as memory ran out in it.
  void Abandon(int64_t now) { Break(CompletionStatus::kFlushed, now); }
  // Ends, to make room for others. Requires: is_unauthenticated().
  void MakeRoom();
  // Ends if the adapter's settings of TLS now revoke the peer's certificate.
  // Returns whether they do.
  bool EndIfRevoked(int64_t now);
  void PostReceive(WorkId work, const LocalBytes& into, int64_t now);

  // Returns true if Send would only acknowledge.
  bool owes_answers_only() const {
    return is_established() && outbox_.empty() && requester_.unsent() == 0 &&
           responder_.executed() != responder_.answered();
  }

  // All return true if anything moved; keep-alive is no progress. Take takes
  // bytes that came by a trunk.
  bool Send(int64_t now);
  bool Receive(int64_t now);
  bool Take(std::span<const std::byte> bytes, int64_t now);
  // Notes that the trunk has sent bytes.
  void OnTrunkSent(int64_t now) { NoteFlushed(now, /*has_sent=*/true); }
  // Notes that the stream has ended.
  void OnStreamEnd(int64_t now) { Break(CompletionStatus::kFlushed, now); }

  // The socket of a connection that can't stay: its peer begins a trunk, or the
  // connection is of another adapter's group.
  struct Departure {
    std::unique_ptr<Stream> stream;
    uint32_t group = 0;
    bool is_trunk = false;         // its hello is answered
    std::vector<std::byte> bytes;  // all that the peer has said
  };
  // Returns it, once; the connection is then dead.
  std::optional<Departure> TakeDeparture();

  // Returns when to call OnTimers; the largest value: never.
  int64_t next_timer() const;
  // Returns true if it did more than keep alive.
  bool OnTimers(int64_t now);

 private:
  static constexpr int64_t kNever = Deadline().at_nanos();

  void Greet(int64_t now);
  // Goes on until the stream is ready. Returns false if it is not.
  bool MakeReady(int64_t now);
  void AppendHandshake(WireOpcode opcode, std::string_view private_data);
  // Returns the group that the peer's hello of a trunk names; nothing: it is no
  // such hello.
  std::optional<uint32_t> TrunkGroup(std::span<const std::byte> bytes) const;
  // Departs with the bytes. Returns false if answers are stuck here: a peer
  // asks for few before it has said what it wants.
  bool Depart(uint32_t group, bool is_trunk, std::span<const std::byte> bytes,
              int64_t now);
  // Returns true if the request to connect is for another adapter; then the
  // connection departs, or breaks.
  bool IsElsewhere(std::string_view private_data, int64_t now);
  // Processes bytes that begin with what was left over.
  void Process(std::span<const std::byte> bytes, int64_t now);
  // Processes bytes of the stream; returns how many were used.
  size_t Parse(std::span<const std::byte> bytes, int64_t now);
  bool OnHeader(const WireHeader& header, int64_t now);
  size_t OnPayload(std::span<const std::byte> bytes, int64_t now);
  bool OnHandshakeHeader(const WireHeader& header);
  void OnHandshake(int64_t now);
  bool OnNak(const WireHeader& header, int64_t now);
  void OnLimits(const WireHello& hello);
  void AppendControl(WireOpcode opcode, uint64_t sequence, uint32_t immediate);
  void AppendKeepAlive(WireOpcode opcode);
  void AppendPong();
  void AppendAnswers();
  // Appends to the outbox what may be sent now.
  void Fill(int64_t now);
  bool Flush(int64_t now);
  // Notes what Flush, or the trunk, has done.
  void NoteFlushed(int64_t now, bool has_sent);
  void CheckResponder(int64_t now);
  void Heard(int64_t now);
  // Returns false while this connection keeps requests and all together keep
  // the most that they may (TCN2).
  bool MayBeRead() const;
  // Returns true if silence of the peer breaks it (LVT1).
  bool HearsSilence() const;
  // Returns when OnTimers has something to do; the largest value: never.
  int64_t NextDue() const;
  // Sends a ping, so that silence means something.
  void Ask(int64_t now);
  void Watch();

  void NoteRejected(UnauthenticatedEnd why);
  // Breaks the connection. `first` is for the request that waits longest.
  void Break(CompletionStatus first, int64_t now);
  void BreakWithNak(WireFailure failure, int64_t now);
  // Sends the outbox, then closes the socket.
  void StartLinger(int64_t now);
  void DropSocket();
  void AddEvent(ConnectionEvent::Kind kind, std::string private_data);
  // Adds what ends a connection that this side began.
  void AddUnreachable();

  const ConnectionId id_;
  const std::string peer_;
  Shared& shared_;
  std::unique_ptr<Stream> stream_;
  const bool is_alone_;
  State state_;
  const std::optional<std::string> private_data_;  // of this side's Connect
  std::optional<uint32_t> departing_group_;        // see Departure
  bool departs_as_trunk_ = false;
  std::vector<std::byte> departing_bytes_;
  bool lingers_ = false;  // the stream only sends its last bytes
  bool has_ended_sending_ = false;

  Requester requester_;
  Responder responder_;
  Outbox outbox_;
  uint64_t message_bytes_max_;  // limit of both sides

  // The message that is coming in.
  WireHeader header_;
  uint64_t payload_left_ = 0;
  std::vector<std::byte> handshake_;
  std::array<std::byte, kWireHeaderBytes> leftover_{};
  size_t leftover_bytes_ = 0;

  // Keep-alive: bytes received in this turn; position in the outbox.
  size_t keep_alive_received_ = 0;
  uint64_t keep_alive_position_ = 0;
  uint64_t pong_position_ = 0;  // end of the last pong
  bool is_ping_due_ = false;    // after the reply that is being sent
  bool is_pong_due_ = false;

  int64_t deadline_;  // for the handshake, or for lingering; nanoseconds
  LivenessTimers liveness_;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_CONNECTION_H_
