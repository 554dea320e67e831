// SPDX-License-Identifier: Apache-2.0
// opening_peer: the primary's end of the connection to one replica, from its
// first message until records flow.
//
// Idea: one state for each message of messages.h that is waited for. The
// opening says what to ask next. This object sends, takes the reply, reads the
// state report's bytes, and notices when the replica is gone. One request is
// in flight at a time; reads and writes of the replica's ring run beside it.
//
// Invariants:
//   OP1. A reply is believed only if it fits the request. A state report must
//        name node, incarnation and capacity as ServerHello did. Its log epoch
//        must be below the ballot, or, if the replica joins, may equal it; its
//        table must end with its log epoch. With a key nothing is asked before
//        the replica has proved it (HSK1 of handshake.h).
//   OP2. A peer that failed has closed its connection: nothing of it changes
//        memory of this host any more (FB5 of fabric.h), and its completions
//        mean nothing.
// Thread safety: one thread.
// References: protocol P-A4; messages.h.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_OPENING_PEER_H_
#define ALPHEUS_RECOVERY_PROTOCOL_OPENING_PEER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/members_change.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/state_report.h"
#include "replication/fabric/fabric.h"
#include "replication/session/primary_session.h"
#include "replication/session/session_terms.h"
#include "replication/wire/message_slots.h"

namespace alpheus::recovery {

// "node 2 at <address>".
std::string DescribePeer(const PeerAddress& peer);

// Returns the nanoseconds that a replica may take to read `bytes` of its ring
// from a cold file on a slow disk: half a GiB each second.
constexpr int64_t ReadingNanos(uint64_t bytes) {
  return static_cast<int64_t>(bytes * 2);
}

struct OpeningPeerOptions {
  PeerAddress at;
  Hello hello;
  // Nanoseconds in which a reply must come. ReadingNanos is added where the
  // replica may read its whole ring for it.
  int64_t step_timeout_ns = 0;
  Deadline deadline;  // deadline of all requests together
  Credentials credentials = {};
  // True if the epoch is open already and the replica joins it: its log may
  // then be of that epoch, too.
  bool joins = false;
  // True if the peer is to be marked as deleted, not opened: a replica that is
  // marked is then no failure.
  bool deletes = false;
  // Bytes of a batch in the session that starts; see SessionTerms.
  uint64_t batch_bytes_max = replication::SessionTerms().batch_bytes_max;
};

class OpeningPeer {
 public:
  enum class State {
    kConnecting,
    kChallenging,  // these two if there is a key (handshake.h)
    kProving,
    kGreeted,  // server_hello() is set
    kAskingCreation,
    kCreationKnown,  // created()
    kFormatting,
    kFormatted,
    kPromising,
    kReading,   // the report's bytes
    kReported,  // report(); the ring may be read
    kRefused,   // refused_by()
    kOpeningForRepair,
    kRepairOpened,  // the ring may be read and written
    kInstalling,
    kInstalled,  // session()
    kAskingDeletion,
    kDeletionKnown,  // deletion()
    kFailed,         // failure()
  };

  // Makes a peer that is not connected: its state is kFailed. `fabric` and
  // `clock` must outlive it.
  OpeningPeer(const OpeningPeerOptions& options, fabric::Fabric& fabric,
              const Clock& clock);
  // Closes the connection unless it was released.
  ~OpeningPeer();
  OpeningPeer(const OpeningPeer&) = delete;
  OpeningPeer& operator=(const OpeningPeer&) = delete;

  State state() const { return state_; }
  bool failed() const { return state_ == State::kFailed; }
  const absl::Status& failure() const { return failure_; }
  // Returns true if the failure may pass: the node was unreachable, or the
  // connection broke.
  bool may_try_again() const { return failed() && may_try_again_; }
  int64_t failed_at_nanos() const { return failed_at_nanos_; }
  // Returns true if the connection broke after ServerHello.
  bool broke() const { return failed() && broke_; }
  // Returns true if the node refused the connection, and may take a later one:
  // a process of its machine has the replica, or there is no room.
  bool was_put_off() const { return failed() && was_put_off_; }
  NodeId node() const { return options_.at.node; }
  const std::string& address() const { return options_.at.address; }
  std::string Describe() const { return DescribePeer(options_.at); }

  // Returns true if it promised, by this connection or an earlier one.
  bool has_promised() const { return has_promised_; }
  const ServerHello& server_hello() const { return server_hello_; }
  const quorum::Promise& refused_by() const { return refused_by_; }
  const Created& created() const { return created_; }
  // Requires: kDeletionKnown; or it failed because the replica is marked as
  // deleted. kNone: it has said nothing.
  const DeletionState& deletion() const { return deletion_; }
  // Requires: kReported or later.
  const StateReport& report() const { return report_; }

  // Connects. From kFailed.
  void Connect();
  // From kGreeted.
  void Ask(const AskCreation& ask);
  // From kGreeted or kCreationKnown.
  void Ask(const Format& format);
  void Ask(const Prepare& ask);
  // From kReported.
  void Ask(const OpenForRepair& open);
  // From kReported.
  void Ask(const Mark& mark);
  // From kGreeted, kReported or kDeletionKnown.
  void Ask(const Remove& remove);
  // From kRepairOpened. When it is installed the session starts, with `ring`
  // and `next`.
  void Ask(const Install& install, const Ring& ring,
           fabric::RegionKey ring_key);
  // Closes the connection and fails with `status`.
  void Fail(const absl::Status& status, bool may_try_again = false);

  // Returns true if the connection is or was this peer's.
  bool Owns(fabric::ConnectionId connection) const;
  // Takes what the fabric brought. Events of earlier connections are ignored.
  void OnCompletion(const fabric::Completion& completion);
  void OnConnectionEvent(const fabric::ConnectionEvent& event);
  // Fails the peer if a reply is overdue.
  void CheckTime(int64_t now_nanos);
  // Gives an awaited reply its whole time again: this process did nothing for a
  // while, and must not take that for silence.
  void RenewTime(int64_t now_nanos);
  // Returns when CheckTime is due; the end of time if nothing is awaited.
  int64_t due_nanos() const { return due_nanos_; }

  // Reading and writing the replica's ring. Work ids of the caller begin at
  // kForeignWork.
  static constexpr uint64_t kForeignWork = uint64_t{1} << 32;
  // Returns true if the completion is of the caller's work, on the present
  // connection. Call OnCompletion and OnConnectionEvent first, in any case.
  bool IsForeign(const fabric::Completion& completion) const {
    return !failed() && completion.connection == connection_ &&
           completion.work.value >= kForeignWork;
  }
  bool MayBeRead() const;
  bool HasRoom() const;
  uint32_t posted() const { return posted_; }
  // Requires: MayBeRead, HasRoom. The peer fails if the fabric refuses.
  void PostRead(fabric::WorkId work, fabric::LocalBytes into, uint64_t place);
  // Requires: kRepairOpened, HasRoom.
  void PostWrite(fabric::WorkId work, fabric::LocalBytes from, uint64_t place);
  // While suspended, no read starts, so that the ring's key may change.
  void SuspendReads(bool suspended) { reads_suspended_ = suspended; }

  // Hand connection and session to the caller. Requires: kInstalled.
  fabric::ConnectionId ReleaseConnection();
  std::unique_ptr<replication::PrimarySession> ReleaseSession() {
    return std::move(session_);
  }

 private:
  void Request(const Message& message, State waiting,
               uint64_t bytes_scanned = 0);
  absl::Status Send(const Message& message);
  void OnReply();
  void OnServerHello(const fabric::ConnectionEvent& event);
  void OnChallenged(const Challenged& challenged);
  void OnDeletionState(const DeletionState& state);
  void OnFailed(const absl::Status& why);
  void StartReading(const Promised& promised);
  void ContinueReading();
  void OnReportPiece();
  void DecodeWhatWasRead();
  absl::Status CheckReport(const StateReport& report) const;
  void StartSession();
  void StopWaiting();
  absl::Status Annotate(const absl::Status& status) const;
  // Fails because of the connection, not the node: it may be tried again.
  void Break(const absl::Status& why);
  void BreakUnless(const absl::Status& status);

  const OpeningPeerOptions options_;
  fabric::Fabric& fabric_;
  const Clock& clock_;
  const fabric::Fabric::Limits limits_;

  State state_ = State::kFailed;
  absl::Status failure_;
  bool may_try_again_ = true;
  bool broke_ = false;
  bool was_put_off_ = false;
  int64_t failed_at_nanos_ = 0;
  int64_t due_nanos_;
  int64_t reply_within_ns_ = 0;

  fabric::ConnectionId connection_;         // 0: none
  std::vector<fabric::ConnectionId> past_;  // closed
  uint32_t posted_ = 0;                     // sends, reads, writes
  bool reads_suspended_ = false;

  // The running request. It is over when its reply has arrived and its own
  // bytes are no longer in use.
  std::unique_ptr<replication::MessageSlots>
      slots_;  // 0 is sent, 1 is received
  bool is_sent_ = false;
  std::optional<uint64_t> reply_bytes_;

  PrimaryHandshake handshake_;
  bool has_promised_ = false;
  ServerHello server_hello_;
  quorum::Promise refused_by_;
  Created created_;
  DeletionState deletion_;
  fabric::RegionKey ring_key_;

  Epoch ballot_;  // ballot that was asked for
  Promised promised_;
  std::unique_ptr<replication::MessageSlots> report_bytes_;
  uint64_t report_asked_ = 0;      // bytes
  uint64_t report_in_flight_ = 0;  // pieces in flight
  StateReport report_;

  Install install_;
  Ring own_ring_;
  fabric::RegionKey own_ring_key_;
  std::unique_ptr<replication::PrimarySession> session_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_OPENING_PEER_H_
