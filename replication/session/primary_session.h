// SPDX-License-Identifier: Apache-2.0
// primary_session: the primary's end of one connection to one backup.
//
// Idea: the ring is the send queue. The caller says up to where the ring holds
// finished records. The session writes everything after the last posted byte up
// to there, as one batch, whenever the backup has a free receive. So a slow
// backup gets fewer and larger batches, costs the others nothing, and needs no
// memory. A backup that is far behind gets batches of a bounded size, a few at
// a time. Two kinds of message go between the batches, and each takes a credit
// like a batch: the log's head has moved (head_update.h), and what is durable
// (durable_update.h).
// The backup's platform decides by which plan a batch becomes persistent.
// PersistRequester runs the plan and says which batches are persisted: by an
// ack or, where the platform allows it, earlier by a completion. Credits come
// back by acks alone.
//
// Invariants:
//   RSE1. Batches, heads and durable updates that are sent and not acknowledged
//         never exceed the credits (P-R1).
//   RSE2. Everything up to acked_lsn() is persisted at the backup. The proof is
//         an ack or, where the platform allows it, a completion. acked_lsn()
//         never goes back, and never passes what was posted.
//   RSE3. Only acks of this epoch and this session count (P-H21).
//   RSE4. A head is sent only after all records before it.
//   RSE5. A batch ends at the end of a record.
//   RSE6. Nothing at or after the ceiling that the backup said is in its
//         superline is posted (P-A3.7).
// After an error the session is broken. It is unknown which of the posted
// records the backup has; acked_lsn() stays true.
// A backup that ends the session for a newer promise says so first, if it can.
// The message may be lost, so only error texts rely on it.
// Thread safety: one thread.
// May block: for the fabric's lock (fabric.h), and for page faults of the own
// ring, whose headers it reads. Waits for no ack.
// Called under: step_mutex_ of the log's ReplicatedForcer (replicator.h).
// References: protocol P-A3.3, P-H21, P-R1; Arcadia §4.1.
#ifndef ALPHEUS_REPLICATION_SESSION_PRIMARY_SESSION_H_
#define ALPHEUS_REPLICATION_SESSION_PRIMARY_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/base/numbered_queue.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/space/ceiling.h"
#include "log/format/layout.h"
#include "quorum/arithmetic/promise.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/execute/persist_requester.h"
#include "replication/session/resend.h"
#include "replication/session/session_terms.h"
#include "replication/wire/ack.h"
#include "replication/wire/message_slots.h"
#include "replication/wire/posted_receives.h"

namespace alpheus::replication {

// The ring of this host and that of the backup, which holds the same bytes.
struct ReplicatedRing {
  Ring ring;                     // this host's ring
  fabric::RegionKey local_key;   // registered: ring.data(), capacity
  fabric::RegionKey backup_key;  // of the backup's ring, from its start
};

class PrimarySession {
 public:
  // Starts a session and posts the receives for acks, before or after the
  // connection is established. Errors: the fabric's; Unimplemented (the
  // backup's platform).
  static absl::StatusOr<std::unique_ptr<PrimarySession>> Start(
      const ReplicatedRing& ring, const SessionTerms& terms,
      fabric::Fabric& fabric, fabric::ConnectionId connection);

  // Returns the promise in a message that is no ack, or nothing. Epoch 0 means:
  // a process of the backup's machine takes the replica, and has no promise
  // yet.
  using ReadPromise =
      std::function<std::optional<quorum::Promise>(std::span<const std::byte>)>;
  void ReadPromisesBy(ReadPromise read) { read_promise_ = std::move(read); }
  // Returns the promise for which the backup ended the session, as it said.
  const std::optional<quorum::Promise>& overtaken_by() const {
    return overtaken_by_;
  }

  // Sizes of the batches by which a backup that is behind gets what it lacks.
  enum class Pace {
    kFull,     // batches of terms.batch_bytes_max, two in flight at most
    kCatchUp,  // while others are waited for: each batch takes some ten
               // microseconds to send, and four are in flight at most
  };
  // Posts the bytes from posted() to `end` as one batch, or as several if they
  // are more than one may have. A later call posts what had no credit.
  // Requires: `end` does not go back; the bytes do not change until they are
  // acknowledged. Errors: the fabric's; the session is then broken.
  absl::Status Advance(const RingEnd& end, Pace pace = Pace::kFull);

  // Announces head and ceiling to the backup, once a credit and a buffer are
  // free; else a later call does. The head is announced once everything before
  // it is posted. Until then the ceiling is announced, but capped at a lap
  // after the last head that was announced. Requires: neither goes back.
  // Errors: as Advance.
  absl::Status AdvanceBounds(const RingBounds& bounds);

  // Announces to the backup that W replicas have persisted all up to `lsn`,
  // unless it knows more, once a credit and a buffer are free; else a later
  // call does. Errors: as Advance.
  absl::Status AdvanceDurable(Lsn lsn);

  // Says that the primary is there, by what is durable, `lsn`, once more. Does
  // nothing while anything is in flight, which the backup hears as well.
  // Errors: as Advance.
  absl::Status Beat(Lsn lsn);

  // As Beat, also while something is in flight: for an answer to something that
  // is posted now. Posts nothing without a credit and a buffer; a later call
  // does. Errors: as Advance.
  absl::Status Ask(Lsn lsn);

  // Takes one completion of the session's connection. Errors: Unavailable (the
  // connection broke), Aborted (the backup ends the session for another
  // primary: overtaken_by()), DataLoss (the backup says what is impossible).
  // The session is then broken. FailedPrecondition: the completion was taken,
  // and the connection broke after it; further completions may be given.
  absl::Status OnCompletion(const fabric::Completion& completion);

  // Posts the receives of acks that were taken. Call it soon after, while no
  // caller waits. Errors: as Advance.
  absl::Status PostReceives() { return acks_->PostAll(); }

  // Returns the backup's platform, from which the plan was made
  // (MakeSessionPlan).
  const Platform& platform() const { return terms_.platform; }
  Lsn acked_lsn() const { return acked_.lsn; }
  const RingEnd& posted() const { return posted_; }
  // Bytes posted and not acknowledged.
  uint64_t lag_bytes() const { return posted_.offset - acked_.offset; }
  // Returns what was announced last; first that of the terms.
  const RingBounds& bounds_sent() const { return bounds_sent_; }
  // Returns what the backup said last that is in its superline; first that of
  // the terms.
  const RingBounds& bounds_published() const { return bounds_published_; }
  // Returns the last LSN that was announced as durable; 0: none yet.
  Lsn durable_announced() const { return durable_announced_; }
  // Returns true if everything sent is acknowledged.
  bool is_idle() const { return in_flight_.empty(); }
  // Batches and messages posted in this session, and how many are acknowledged.
  uint64_t batches() const { return batches_; }
  uint64_t batches_acked() const { return batches_acked_; }

 private:
  PrimarySession(const ReplicatedRing& ring, const SessionTerms& terms,
                 const Plan& plan, fabric::Fabric& fabric,
                 fabric::ConnectionId connection);

  // A batch or message that the backup acknowledges as one.
  struct InFlight {
    RingEnd end;                       // end of this batch and all before
    std::optional<RingBounds> bounds;  // set: a message of them, not a batch
    bool is_durable_update = false;    // neither of the two
  };

  RingEnd NextBatch(const RingEnd& end, uint64_t bytes_max) const;
  RingEnd EndAfterRecord(const RingEnd& at) const;
  bool HasCredit() const;
  bool HasRoomFor(uint64_t bytes) const;
  bool HasRoomForMessage() const;
  absl::Status PostDurable(Lsn lsn);
  absl::Status PostMessage(fabric::LocalBytes message, size_t slot);
  uint64_t SendsInFlight() const;
  absl::Status PostBatch(RingOffset end);
  PersistRequester::Range RangeAt(RingOffset begin, uint64_t bytes) const;
  absl::Status OnAck(const fabric::Completion& completion);
  absl::Status CountAck(const Ack& ack);
  absl::Status OnOtherMessage(std::span<const std::byte> message);
  absl::Status OnResendRequest(const ResendRequest& request);
  absl::Status SendAgain();
  void OnBatchAcked(const InFlight& acked);
  void OnPersisted();

  const ReplicatedRing ring_;
  const SessionTerms terms_;
  fabric::Fabric& fabric_;
  const fabric::ConnectionId connection_;
  const fabric::Fabric::Limits limits_;

  PersistRequester requester_;
  RingEnd posted_;
  RingEnd acked_;
  // Ends of batches that are not persisted yet.
  NumberedQueue<RingEnd> unpersisted_;
  RingBounds bounds_sent_;
  RingBounds bounds_published_;
  Lsn durable_announced_;
  NumberedQueue<InFlight> in_flight_;  // not acknowledged yet
  uint64_t batches_ = 0;
  uint64_t batches_acked_ = 0;
  ReadPromise read_promise_;
  std::optional<quorum::Promise> overtaken_by_;
  std::unique_ptr<PostedReceives> acks_;
  std::unique_ptr<MessageSlots> messages_;  // heads, durable updates
  std::vector<size_t> free_messages_;
  // The bytes that the backup asked for again; [next, end) is not posted yet.
  struct Again {
    RingOffset begin;
    RingOffset next;
    RingOffset end;
  };
  std::optional<Again> again_;
  uint64_t again_posts_ = 0;  // posts of these in flight, the notice included
  bool is_notice_free_ = true;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_SESSION_PRIMARY_SESSION_H_
