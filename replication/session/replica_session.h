// SPDX-License-Identifier: Apache-2.0
// replica_session: the primary's end of one connection to one backup.
//
// Idea: the ring is the send queue. Whoever wants records replicated says up to
// where the ring holds finished ones; the session writes all between what it
// has posted and there, as one batch, whenever the backup has a receive left
// for it. So a slow backup gets fewer and larger batches, costs the others
// nothing, and needs no memory of its own. One that is far behind catches up in
// batches of a bounded size, a few at a time. When the log's head has moved a
// message says so (head_update.h), in turn with the batches and counted as one;
// so does one of what is durable (durable_update.h).
// How a batch becomes persistent at the backup is the plan's for its platform;
// the executor (persist_requester.h) runs it, and says which batches are: by a
// completion where the platform allows it. Acks give credits back all the same.
//
// Invariants:
//   RSE1. Batches and heads sent and not acknowledged never exceed the credits
//         (P-R1).
//   RSE2. acked_lsn() is what the backup has persisted, by its ack or by a
//         completion that says so on its platform; it never goes back, and
//         never passes what was posted.
//   RSE3. Only acks of this epoch and this session count (P-H21).
//   RSE4. A head is sent only behind all records before it.
//   RSE5. A batch ends behind a record.
// After an error the session is broken: what of the posted records the backup
// has is unknown, acked_lsn() stays true.
// A backup that ends the session for a newer promise says so first, if it can:
// only texts depend on that, for the message may be lost with the connection.
// Thread safety: one thread.
// References: protocol P-A3.3, P-H21, P-R1; Arcadia §4.1.
#ifndef ALPHEUS_REPLICATION_SESSION_REPLICA_SESSION_H_
#define ALPHEUS_REPLICATION_SESSION_REPLICA_SESSION_H_

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
#include "log/core/read/record_cursor.h"
#include "log/format/layout.h"
#include "quorum/arithmetic/promise.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/execute/persist_requester.h"
#include "replication/session/resend.h"
#include "replication/session/session_terms.h"
#include "replication/wire/message_slots.h"
#include "replication/wire/posted_receives.h"

namespace alpheus {

// The same bytes here and there.
struct ReplicatedRing {
  Ring ring;             // of this host
  RegionKey local_key;   // registered: ring.data(), capacity
  RegionKey backup_key;  // of the backup's ring, from its start
};

class ReplicaSession {
 public:
  // Posts the receives for acks; before the connection is established or
  // after. Errors: of the fabric; Unimplemented (the backup's platform).
  static absl::StatusOr<std::unique_ptr<ReplicaSession>> Start(
      const ReplicatedRing& ring, const SessionTerms& terms, Fabric& fabric,
      ConnectionId connection);

  // Reads the promise in a message that is no ack; nothing if it has none; of
  // epoch 0 if the replica is taken from the backup by who has none yet.
  using ReadPromise =
      std::function<std::optional<Promise>(std::span<const std::byte>)>;
  void ReadPromisesBy(ReadPromise read) { read_promise_ = std::move(read); }
  // Because of which the backup has ended the session, as it said.
  const std::optional<Promise>& overtaken_by() const { return overtaken_by_; }

  // Posts what lies between posted() and `end`, as one batch; if it is more
  // than terms.batch_bytes_max, as several, of which two are under way at most.
  // What there is no credit for goes with a later call. Requires: `end` does
  // not go back, and its bytes stay as they are until they are acknowledged.
  // Errors: the fabric's; the session is broken then.
  absl::Status Advance(const RingEnd& end);

  // The same for a backup that has much to get while others are waited for: in
  // batches that are sent within some ten microseconds each, of which four are
  // under way at most.
  absl::Status CatchUp(const RingEnd& end);

  // The log's head is here: tells the backup once what is before it is posted,
  // a credit and a buffer are left; else with a later call of the same.
  // Requires: does not go back. Errors: as Advance.
  absl::Status AdvanceHead(const LogPosition& head);

  // W replicas have persisted all up to `lsn`: tells the backup once, if it was
  // not told of more, and a credit and a buffer are left; else with a later
  // call. Errors: as Advance.
  absl::Status AdvanceDurable(Lsn lsn);

  // One completion of the session's connection. Errors: Unavailable (the
  // connection broke), Aborted (the backup ends the session for another
  // primary: overtaken_by()), DataLoss (the backup says what can't be). The
  // session is broken then.
  absl::Status Take(const Completion& completion);

  // Posts the receives of acks that were taken: soon, and when nobody waits.
  // Errors: as Advance.
  absl::Status PostReceives() { return acks_->PostAll(); }

  Lsn acked_lsn() const { return acked_.lsn; }
  const RingEnd& posted() const { return posted_; }
  // Posted, not acknowledged.
  uint64_t lag_bytes() const { return posted_.offset - acked_.offset; }
  // The last head that the backup was told; that of the terms before.
  const LogPosition& head_sent() const { return head_sent_; }
  // The last head that the backup said is in its superline; that of the terms
  // before it said any.
  const LogPosition& head_published() const { return head_published_; }
  // What the backup was told to be durable; 0: nothing yet.
  Lsn durable_told() const { return durable_told_; }
  // Nothing is sent and not acknowledged.
  bool is_idle() const { return under_way_.empty(); }
  // Batches and heads of the session's life, and how many were acknowledged.
  uint64_t batches() const { return batches_; }
  uint64_t batches_acked() const { return batches_acked_; }

 private:
  ReplicaSession(const ReplicatedRing& ring, const SessionTerms& terms,
                 const Plan& plan, Fabric& fabric, ConnectionId connection);

  // What the backup acknowledges as one.
  struct UnderWay {
    RingEnd end;                      // behind all batches up to this one
    std::optional<LogPosition> head;  // of a head, not a batch
    bool is_durable_update = false;   // neither
  };

  // How much is posted to a backup that is behind.
  struct Pace {
    uint64_t batch_bytes_max = 0;
    size_t under_way_max = 0;
  };

  absl::Status Post(const RingEnd& end, const Pace& pace);
  RingEnd NextBatch(const RingEnd& end, uint64_t bytes_max) const;
  RingEnd BehindRecord(const RingEnd& at) const;
  bool HasCredit() const;
  bool HasRoomFor(uint64_t bytes) const;
  bool HasRoomForMessage() const;
  absl::Status PostMessage(LocalBytes message, size_t slot);
  uint64_t SendsUnderWay() const;
  absl::Status PostBatch(RingOffset end);
  PersistRequester::Range RangeAt(RingOffset begin, uint64_t bytes) const;
  absl::Status TakeAck(const Completion& completion);
  absl::Status TakeOther(std::span<const std::byte> message);
  absl::Status TakeResendRequest(const ResendRequest& request);
  absl::Status SendAgain();
  void TakeAcked(const UnderWay& acked);
  void TakePersisted();

  const ReplicatedRing ring_;
  const SessionTerms terms_;
  Fabric& fabric_;
  const ConnectionId connection_;
  const Fabric::Limits limits_;

  PersistRequester requester_;
  RingEnd posted_;
  RingEnd acked_;
  NumberedQueue<RingEnd> unpersisted_;  // ends of batches
  LogPosition head_sent_;
  LogPosition head_published_;
  Lsn durable_told_;
  NumberedQueue<UnderWay> under_way_;  // without an ack
  uint64_t batches_ = 0;
  uint64_t batches_acked_ = 0;
  ReadPromise read_promise_;
  std::optional<Promise> overtaken_by_;
  std::unique_ptr<PostedReceives> acks_;
  std::unique_ptr<MessageSlots> messages_;  // heads, durable updates
  std::vector<size_t> free_messages_;
  // What the backup wants again: [next, end) is not posted yet.
  struct Again {
    RingOffset begin;
    RingOffset next;
    RingOffset end;
  };
  std::optional<Again> again_;
  uint64_t again_posts_ = 0;  // under way, the notice included
  bool is_notice_free_ = true;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_SESSION_REPLICA_SESSION_H_
