// SPDX-License-Identifier: Apache-2.0
#include "replication/backup_session.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/flatten.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"
#include "log/pmem/backends.h"
#include "replication/ack.h"
#include "replication/durable_update.h"
#include "replication/head_update.h"
#include "replication/persist/planner.h"

namespace alpheus {
namespace {

// Acks are cumulative: when all are under way, the next one says it for both.
constexpr size_t kAcksUnderWay = 16;

}  // namespace

template <Persistence P>
BackupSession<P>::BackupSession(P& pmem, const ReplicaMemory& memory,
                                const SessionTerms& terms, const Plan& plan,
                                Fabric& fabric, ConnectionId connection)
    : pmem_(pmem),
      memory_(memory),
      terms_(terms),
      fabric_(fabric),
      connection_(connection),
      watermarks_{WatermarkEncoder(memory.log_id, 0, terms.epoch),
                  WatermarkEncoder(memory.log_id, 1, terms.epoch)},
      responder_(pmem, plan),
      next_(terms.next),
      announced_(terms.next.offset),
      watermark_lsn_(terms.next.lsn - 1),
      free_acks_(kAcksUnderWay) {
  std::iota(free_acks_.begin(), free_acks_.end(), 0);
}

template <Persistence P>
absl::StatusOr<std::unique_ptr<BackupSession<P>>> BackupSession<P>::Start(
    P& pmem, const ReplicaMemory& memory, const SessionTerms& terms,
    Fabric& fabric, ConnectionId connection) {
  ALPHEUS_RETURN_IF_ERROR(MakeSuperlinePlan(terms.platform).status());
  std::unique_ptr<BackupSession> session(new BackupSession(
      pmem, memory, terms, RecordPlanOfBackup(), fabric, connection));
  ALPHEUS_ASSIGN_OR_RETURN(
      session->acks_, MessageSlots::Make(fabric, kAcksUnderWay, kAckBytes));
  ALPHEUS_ASSIGN_OR_RETURN(
      session->receives_,
      PostedReceives::Make(fabric, connection, terms.credits,
                           kHeadUpdateBytes));
  return session;
}

template <Persistence P>
ALPHEUS_FLATTEN absl::Status BackupSession<P>::Take(
    const Completion& completion) {
  if (completion.status != CompletionStatus::kOk) {
    return absl::UnavailableError(
        absl::StrCat("epoch ", terms_.epoch.value, ", LSN ", next_.lsn.value,
                     ": the connection to the primary broke: ",
                     OperationName(completion.operation), ": ",
                     CompletionStatusName(completion.status)));
  }
  switch (completion.operation) {
    case Operation::kReceiveImmediate:
      return TakeAnnouncement(completion);
    case Operation::kReceive:
      return TakeMessage(completion);
    case Operation::kSend:
      free_acks_.push_back(completion.work.value);
      return absl::OkStatus();
    default:
      return absl::DataLossError(
          absl::StrCat("epoch ", terms_.epoch.value,
                       ": the primary did what no primary "
                       "does: ",
                       OperationName(completion.operation)));
  }
}

template <Persistence P>
absl::Status BackupSession<P>::TakeAnnouncement(const Completion& completion) {
  const uint64_t capacity = memory_.ring.capacity();
  const uint64_t end = uint64_t{completion.immediate} * kLineBytes;
  if (end >= capacity || completion.bytes == 0) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary announced ",
        completion.bytes, " bytes up to place ", end, " of a ring of ",
        capacity, "; close the session, its memory may be damaged"));
  }
  // No batch is empty, so the same place again is a whole lap on.
  const uint64_t place = memory_.ring.Place(announced_);
  announced_ =
      announced_ + (end > place ? end - place : end + capacity - place);
  // More than a lap would be flushed beyond the ring.
  if (announced_ - next_.offset > capacity) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary announced ",
        announced_ - next_.offset, " bytes from offset ", next_.offset.value,
        " on, more than the ring of ", capacity,
        "; close the session, its memory may be damaged"));
  }
  ++batches_;
  return receives_->Taken(completion.work);
}

template <Persistence P>
absl::Status BackupSession<P>::TakeMessage(const Completion& completion) {
  const auto update = DecodeDurableUpdate(receives_->BytesOf(completion));
  if (!update) return TakeHead(completion);
  const bool is_ours =
      (update->epoch == terms_.epoch && update->session == terms_.session) ||
      IsMutant("kDurableOfAnotherSession");
  if (!is_ours) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value,
        ": the primary told what is durable, LSN ", update->durable_lsn.value,
        ", of epoch ", update->epoch.value,
        " or another session of this one; close the session"));
  }
  durable_lsn_ = std::max(durable_lsn_, update->durable_lsn);
  ++batches_;
  return receives_->Taken(completion.work);
}

template <Persistence P>
absl::Status BackupSession<P>::TakeHead(const Completion& completion) {
  const auto update = DecodeHeadUpdate(receives_->BytesOf(completion));
  const bool is_ours =
      update &&
      ((update->epoch == terms_.epoch && update->session == terms_.session) ||
       IsMutant("kHeadOfAnotherSession"));
  if (!is_ours) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary sent ", completion.bytes,
        " bytes that are no head of this session"));
  }
  if (update->head.lsn < head_.lsn || update->head.offset < head_.offset) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary moved the head back from ",
        "LSN ", head_.lsn.value, " at offset ", head_.offset.value, " to LSN ",
        update->head.lsn.value, " at offset ", update->head.offset.value));
  }
  head_ = update->head;
  head_is_new_ = true;
  ++batches_;
  return receives_->Taken(completion.work);
}

template <Persistence P>
ALPHEUS_FLATTEN absl::Status BackupSession<P>::Step() {
  if (acked_ == batches_) return absl::OkStatus();
  const uint64_t acked_before = acked_;
  const std::array<WrittenBytes, 2> announced = Announced();
  ALPHEUS_RETURN_IF_ERROR(
      responder_.Respond(announced, [this] { return Acknowledge(); }));
  if (acked_ == acked_before) return receives_->PostAll();
  // After the ack, so that no primary waits for it.
  fabric_.HandOver();
  StoreWatermark();
  return receives_->PostAll();
}

// What no Step has persisted yet.
template <Persistence P>
std::array<WrittenBytes, 2> BackupSession<P>::Announced() const {
  const Ring& ring = memory_.ring;
  const uint64_t bytes = announced_ - next_.offset;
  const uint64_t until_end = std::min(bytes, ring.UntilEnd(next_.offset));
  const uint64_t wrapped =
      IsMutant("kBackupWrapUnflushed") ? 0 : bytes - until_end;
  return {WrittenBytes(ring.At(next_.offset), until_end),
          WrittenBytes(ring.data(), wrapped)};
}

template <Persistence P>
absl::Status BackupSession<P>::Acknowledge() {
  ALPHEUS_RETURN_IF_ERROR(WalkAnnounced());
  if (head_is_new_ && !IsMutant("kHeadAckedUnpublished")) {
    ALPHEUS_RETURN_IF_ERROR(PublishHead());
  }
  persisted_ = batches_;
  return free_acks_.empty() ? absl::OkStatus() : SendAck();
}

// A head that is the end has the end's place and chain; one before it is the
// place of a record, which only a walk from the old head could tell.
template <Persistence P>
absl::Status BackupSession<P>::PublishHead() {
  const bool can_be =
      head_.lsn == next_.lsn
          ? head_ == next_
          : head_.lsn < next_.lsn && head_.offset < next_.offset &&
                next_.offset - head_.offset <= memory_.ring.capacity() &&
                head_.offset.value % kLineBytes == 0;
  if (!can_be && !IsMutant("kHeadUnchecked")) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary's head, LSN ",
        head_.lsn.value, " at offset ", head_.offset.value,
        ", is no place of this log, which ends before LSN ", next_.lsn.value,
        " at offset ", next_.offset.value, "; it was not published"));
  }
  if (!memory_.publish_head) {
    return absl::FailedPreconditionError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary moved the head to LSN ",
        head_.lsn.value, ", and this session can't publish it"));
  }
  head_is_new_ = false;
  return memory_.publish_head(terms_.epoch, head_);
}

// Headers only: the payload's checksum is the scan's business.
template <Persistence P>
absl::Status BackupSession<P>::WalkAnnounced() {
  RecordCursor cursor(memory_.ring, *memory_.table, next_, announced_,
                      RecordCursor::Payloads::kSkip);
  while (cursor.position().offset < announced_) {
    if (cursor.Next() == RecordCursor::Step::kRecord) {
      const Lsn named(cursor.record().header.durable_lsn());
      durable_lsn_ = std::max(durable_lsn_, named);
      continue;
    }
    const LogPosition& at = cursor.position();
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ", LSN ", at.lsn.value, " at offset ",
        at.offset.value, ": the primary announced records up to offset ",
        announced_.value,
        ", and there is none; nothing of it was acknowledged. Close the "
        "session, and verify the replica"));
  }
  next_ = cursor.position();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status BackupSession<P>::SendAck() {
  const size_t slot = free_acks_.back();
  const LocalBytes message = acks_->At(slot);
  EncodeAck({terms_.epoch, terms_.session, persisted_lsn(), persisted_},
            message.bytes.first<kAckBytes>());
  ALPHEUS_RETURN_IF_ERROR(fabric_.PostSend(connection_, WorkId(slot), message));
  free_acks_.pop_back();
  acked_ = persisted_;
  return absl::OkStatus();
}

template <Persistence P>
void BackupSession<P>::StoreWatermark() {
  if (watermark_lsn_ == persisted_lsn()) return;
  watermark_lsn_ = persisted_lsn();
  pmem_.StoreLineNt(WatermarkLine(memory_.region, watermark_line_),
                    watermarks_[watermark_line_].Encode(watermark_lsn_));
  if (IsMutant("kBackupMarksOneLine")) return;
  watermark_line_ = 1 - watermark_line_;
}

template <Persistence P>
absl::Status BackupSession<P>::PersistWatermark() {
  StoreWatermark();
  return pmem_.Fence() ? absl::OkStatus() : pmem_.Error();
}

ALPHEUS_INSTANTIATE_CLASS(BackupSession);

}  // namespace alpheus
