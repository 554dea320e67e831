// SPDX-License-Identifier: Apache-2.0
// backup_session: the backup's end of one connection to its primary.
//
// Idea: the primary writes records straight into this replica's ring, each at
// the place that it has in every replica, one range after the other. The last
// write of a batch carries an immediate, the line at which the batch ends. A
// batch begins where the one before ended, so that a batch that wraps needs no
// second immediate. Step then, in this order:
//   1. persists, under one fence, everything that was announced, by the plan
//      that is enough on every platform (persist_responder.h);
//   2. walks it record by record, so that what is acknowledged can be read;
//   3. sums payloads in slices, so that other logs of the node don't wait for a
//      large record. It does so only where the link has no 32-bit check of its
//      own (planner.h);
//   4. publishes head and ceiling, if a message moved one of them;
//   5. acknowledges the last LSN;
//   6. stores the watermark, which the next batch's fence persists (P-A3.5).
// A payload that does not match its header is asked for again a few times
// (resend.h). Until it is right nothing from it on is acknowledged; if it never
// is, the session ends. A message between the batches may say where the log's
// head is, or what is durable, for readers that follow the log here.
//
// Invariants:
//   BS1. An ack(n) is sent only after a fence that covers every byte of every
//        record up to n (P-INV-15, P-INV-L7).
//   BS2. The watermark names no LSN that no fence of this replica covered
//        (P-H9).
//   BS3. Acks never go back. Their number of batches is the number received
//        (P-R1).
//   BS4. A head is published only up to the next LSN, and acknowledged only
//        when it is in the superline (P-L4, P-L10).
//   BS5. durable_lsn() comes from headers of records that were walked, and from
//        messages of this very session (P-H21).
//   BS6. No ack covers a payload that differs from its header, whether it was
//        damaged on its way, or in the primary's memory after it was summed
//        there. On a link with its own check only scan and scrubbing find
//        damage in the primary's memory.
//   BS7. No byte at or after the ceiling in the superline is taken for part of
//        a batch (P-A3.7).
// Crash states: between two Steps any part of what the primary wrote may be
// persistent, in any order. None of it was acknowledged; the scan takes each
// record as torn or, if it is whole, as one that it has (Verdict::kHave).
// Records that the primary counts by completions are whole then, even if their
// immediate was lost.
// Thread safety: one thread.
// May block: Step and PersistWatermark for the medium's fence (on a plain file:
// for the disk), Step also for page faults of the ring; all members for the
// fabric's lock (fabric.h). None waits for the primary.
// References: protocol P-A3.4, P-A3.5, P-B6, P-R1; Arcadia §4.1.
#ifndef ALPHEUS_REPLICATION_SESSION_BACKUP_SESSION_H_
#define ALPHEUS_REPLICATION_SESSION_BACKUP_SESSION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/core/space/ceiling.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/watermark.h"
#include "log/pmem/persistence.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/execute/persist_responder.h"
#include "replication/session/resend.h"
#include "replication/session/session_terms.h"
#include "replication/wire/message_slots.h"
#include "replication/wire/posted_receives.h"

namespace alpheus::replication {

// The replica that a session writes to. It must outlive the session.
struct BackupMemory {
  std::span<std::byte> region;
  Ring ring;
  const EpochTable* table = nullptr;
  Uuid log_id;
  // Writes head and ceiling to the superline and persists them; returns OK if
  // they are there already. Empty: heads are refused.
  std::function<absl::Status(Epoch, const RingBounds&)> publish_bounds = {};
};

template <Persistence P>
class BackupSession {
 public:
  // Posts the receives: call it before the connection is accepted. Errors: the
  // fabric's; Unimplemented (this replica's platform).
  static absl::StatusOr<std::unique_ptr<BackupSession>> Start(
      P& pmem, const BackupMemory& memory, const SessionTerms& terms,
      fabric::Fabric& fabric, fabric::ConnectionId connection);

  // Takes one completion of the session's connection. After an error the
  // session is of no more use: close the connection. Errors: Unavailable (the
  // connection broke), DataLoss (the announced place or head is impossible).
  absl::Status OnCompletion(const fabric::Completion& completion);

  // Persists and acknowledges what was announced since the last call; costs
  // nothing if nothing was. Errors: DataLoss (the announced bytes are no
  // records, or have other payloads: says where, and what was expected; the
  // head is impossible); the medium's (what is persistent is unknown); those of
  // publish_bounds; the fabric's. After an error the session is of no more use,
  // as in OnCompletion.
  absl::Status Step();
  // Returns true if further Steps must sum payloads before the next ack.
  bool has_more() const { return !awaited_ && next_.offset < persisted_end_; }
  // Returns a sentence about damage found since the last call; empty: none.
  std::string TakeNews() { return std::exchange(news_, ""); }

  // Stores and persists the watermark of the last batch. Call it when the
  // backup is idle, and before the session ends. Errors: the medium's.
  absl::Status PersistWatermark();

  Lsn persisted_lsn() const { return next_.lsn - 1; }
  // Position after the last persisted record.
  const LogPosition& next() const { return next_; }
  // Last LSN that W replicas had persisted, as the primary said in a header or
  // a message.
  Lsn durable_lsn() const { return durable_lsn_; }

 private:
  BackupSession(P& pmem, const BackupMemory& memory, const SessionTerms& terms,
                const Plan& plan, fabric::Fabric& fabric,
                fabric::ConnectionId connection);

  absl::Status OnAnnouncement(const fabric::Completion& completion);
  absl::Status OnMessage(const fabric::Completion& completion);
  absl::Status OnHead(const fabric::Completion& completion);
  absl::Status PublishBounds();
  std::array<WrittenBytes, 2> Announced() const;
  absl::Status Acknowledge();
  absl::Status WalkAnnounced();
  // Sums more of the payload. Returns true once all of it is summed. Errors:
  // DataLoss.
  absl::StatusOr<bool> Sum(const RecordView& record, uint64_t& budget);
  absl::Status AskAgain(const RecordView& record, uint32_t sum);
  absl::Status OnResent(const Resent& resent);
  absl::Status PersistResent();
  absl::Status SendAck();
  void StoreWatermark();

  P& pmem_;
  const BackupMemory memory_;
  const SessionTerms terms_;
  fabric::Fabric& fabric_;
  const fabric::ConnectionId connection_;
  const WatermarkEncoder watermarks_[2];
  PersistResponder<P> responder_;

  LogPosition next_;     // after the last record that is persisted and walked
  WatermarkPlace last_;  // of that record; none before the first
  RingOffset persisted_end_;
  uint64_t summed_ = 0;  // summed bytes of the payload at next_
  uint32_t sum_ = 0;     // their sum
  // awaited_: asked for again, not there yet. resent_: there, not persisted
  // yet.
  std::optional<ResendRequest> awaited_;
  std::optional<ResendRequest> resent_;
  int tries_ = 0;  // requests for the record at next_
  std::string news_;
  RingOffset announced_;  // end of what is announced
  RingBounds bounds_;     // last ones that were announced
  bool bounds_are_new_ = false;
  RingOffset ceiling_;      // in the superline
  uint64_t batches_ = 0;    // announced batches, and messages
  uint64_t persisted_ = 0;  // of these, persisted
  uint64_t acked_ = 0;      // of these, acknowledged
  Lsn durable_lsn_;
  Lsn watermark_lsn_;
  int watermark_line_ = 0;
  std::unique_ptr<PostedReceives> receives_;  // posted again after the ack
  std::unique_ptr<MessageSlots> acks_;
  std::vector<size_t> free_acks_;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_SESSION_BACKUP_SESSION_H_
