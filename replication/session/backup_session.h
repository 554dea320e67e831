// SPDX-License-Identifier: Apache-2.0
// backup_session: the backup's end of one connection to its primary.
//
// Idea: the primary writes records straight into this replica's ring, each at
// the place that it has in every replica, one range behind the other; the last
// write of a batch brings an immediate, the line at which the batch ends. The
// batch itself is what lies between the end of the one before and there, so a
// batch that goes round the end of the ring needs no second immediate. Step has
// the plan that is enough on every platform run for all that was announced
// (persist_responder.h): it persists that under one fence. The session's part
// of the ack is to walk it record by record (what is acknowledged can be read)
// and to say its last LSN. Where the link has no 32-bit check of its own
// (planner.h) each payload is summed, too, in slices, so that other logs of the
// node don't wait for a large record. What is not what its primary summed is
// asked for again (resend.h), some times, and nothing from it on is
// acknowledged meanwhile; if it never comes right the session ends. Only then
// the watermark is stored, which the next batch's fence persists (P-A3.5). A
// message between the batches says where the log's head is: it goes into the
// superline, after the records of that Step and before their ack. Another one
// says what is durable, for those who follow the log here.
//
// Invariants:
//   BS1. An ack(n) is sent only after a fence that covers every byte of every
//        record up to n (P-INV-15, P-INV-L7).
//   BS2. The watermark names no LSN that no fence of this replica covered
//        (P-H9).
//   BS3. Acks never go back; their number of batches is what was received
//        (P-R1).
//   BS4. A head is published only up to the next LSN, and acknowledged only
//        when it is in the superline (P-L4, P-L10).
//   BS6. No ack covers a payload that differs from what the header says,
//        whatever happened to it on its way, or in the primary's memory since
//        it was summed there; where the link checks what it carries, only the
//        scan and scrubbing find the latter.
//   BS5. durable_lsn() follows from headers of records that were walked, and
//        from messages of this very session (P-H21).
// Crash states: between two Steps any part of what the primary wrote may be
// persistent, in any order; none of it was acknowledged, and the scan takes
// what is whole of it as torn or have. What the primary counts by completions
// is whole then, whatever became of its immediate.
// Thread safety: one thread.
// References: protocol P-A3.4, P-A3.5, P-B6 P-R1; Arcadia §4.1.
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

namespace alpheus {

// The replica that a session writes to. All of it must outlive the session.
struct ReplicaMemory {
  std::span<std::byte> region;
  Ring ring;
  const EpochTable* table = nullptr;
  Uuid log_id;
  // Writes the head to the superline and persists it; OK if it is there
  // already. Empty: heads are refused.
  std::function<absl::Status(Epoch, const LogPosition&)> publish_head = {};
};

template <Persistence P>
class BackupSession {
 public:
  // Posts the receives, so that it is to be called before the connection is
  // accepted. Errors: of the fabric; Unimplemented (this replica's platform).
  static absl::StatusOr<std::unique_ptr<BackupSession>> Start(
      P& pmem, const ReplicaMemory& memory, const SessionTerms& terms,
      Fabric& fabric, ConnectionId connection);

  // One completion of the session's connection. After an error the session is
  // of no more use: close the connection. Errors: Unavailable (the connection
  // broke), DataLoss (the announced place or head is impossible).
  absl::Status Take(const Completion& completion);

  // Persists and acknowledges what was announced since the last call; costs
  // nothing if nothing was. Errors: DataLoss (announced bytes are no records,
  // or not with these payloads: where, and what was expected; the head is
  // none), the medium's (what is persistent is unknown), those of publish_head,
  // the fabric's. After an error as Take.
  absl::Status Step();
  // Payloads are left to be summed, by further Steps, before the next ack.
  bool has_more() const { return !awaited_ && next_.offset < persisted_end_; }
  // A sentence about damage that was found since the last call; empty: none.
  std::string TakeNews() { return std::exchange(news_, ""); }

  // Stores and persists the watermark that the last batch left; for a backup
  // that has been idle, and before it ends. Errors: the medium's.
  absl::Status PersistWatermark();

  Lsn persisted_lsn() const { return next_.lsn - 1; }
  // Behind the last persisted record.
  const LogPosition& next() const { return next_; }
  // W replicas had persisted so much when the primary wrote the last header, or
  // said so.
  Lsn durable_lsn() const { return durable_lsn_; }

 private:
  BackupSession(P& pmem, const ReplicaMemory& memory, const SessionTerms& terms,
                const Plan& plan, Fabric& fabric, ConnectionId connection);

  absl::Status TakeAnnouncement(const Completion& completion);
  absl::Status TakeMessage(const Completion& completion);
  absl::Status TakeHead(const Completion& completion);
  absl::Status PublishHead();
  std::array<WrittenBytes, 2> Announced() const;
  absl::Status Acknowledge();
  absl::Status WalkAnnounced();
  // True: all of it is summed. Errors: DataLoss.
  absl::StatusOr<bool> Sum(const RecordView& record, uint64_t& budget);
  absl::Status AskAgain(const RecordView& record, uint32_t sum);
  absl::Status TakeResent(const Resent& resent);
  absl::Status PersistResent();
  absl::Status SendAck();
  void StoreWatermark();

  P& pmem_;
  const ReplicaMemory memory_;
  const SessionTerms terms_;
  Fabric& fabric_;
  const ConnectionId connection_;
  const WatermarkEncoder watermarks_[2];
  PersistResponder<P> responder_;

  LogPosition next_;  // behind what is persisted, and walked
  RingOffset persisted_end_;
  uint64_t summed_ = 0;  // bytes of the payload there
  uint32_t sum_ = 0;     // of these
  // Asked for again, and not there yet; and there, but not persisted.
  std::optional<ResendRequest> awaited_;
  std::optional<ResendRequest> resent_;
  int tries_ = 0;  // of the record there
  std::string news_;
  RingOffset announced_;  // behind what is announced
  LogPosition head_;      // the last that was told
  bool head_is_new_ = false;
  uint64_t batches_ = 0;    // announced, or told as a head
  uint64_t persisted_ = 0;  // of these, persisted
  uint64_t acked_ = 0;      // of these, said so
  Lsn durable_lsn_;
  Lsn watermark_lsn_;
  int watermark_line_ = 0;
  std::unique_ptr<PostedReceives> receives_;  // waiting ones go behind the ack
  std::unique_ptr<MessageSlots> acks_;
  std::vector<size_t> free_acks_;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_SESSION_BACKUP_SESSION_H_
