// SPDX-License-Identifier: Apache-2.0
#include "replication/session/backup_session.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/flatten.h"
#include "log/base/status_macros.h"
#include "log/format/checksum.h"
#include "log/format/record.h"
#include "log/pmem/backends.h"
#include "replication/persist/plan/planner.h"
#include "replication/wire/ack.h"
#include "replication/wire/durable_update.h"
#include "replication/wire/head_update.h"
#include "replication/wire/summed_words.h"

namespace alpheus::replication {
namespace {

// Acks in flight. Acks are cumulative: when no slot is free, the next ack
// covers both.
constexpr size_t kAcksInFlight = 16;
// Bytes summed in one Step: some 0.1 ms.
constexpr uint64_t kSumBytesMax = uint64_t{1} << 20;
// Requests for one record. A record that is damaged each time is damaged at the
// primary, or the link is of no use.
constexpr int kTriesMax = 3;

}  // namespace

template <Persistence P>
BackupSession<P>::BackupSession(P& pmem, const BackupMemory& memory,
                                const SessionTerms& terms, const Plan& plan,
                                fabric::Fabric& fabric,
                                fabric::ConnectionId connection)
    : pmem_(pmem),
      memory_(memory),
      terms_(terms),
      fabric_(fabric),
      connection_(connection),
      watermarks_{WatermarkEncoder(memory.log_id, 0, terms.epoch),
                  WatermarkEncoder(memory.log_id, 1, terms.epoch)},
      responder_(pmem, plan),
      next_(terms.next),
      persisted_end_(terms.next.offset),
      announced_(terms.next.offset),
      ceiling_(terms.ceiling),
      watermark_lsn_(terms.next.lsn - 1),
      free_acks_(kAcksInFlight) {
  std::iota(free_acks_.begin(), free_acks_.end(), 0);
}

template <Persistence P>
absl::StatusOr<std::unique_ptr<BackupSession<P>>> BackupSession<P>::Start(
    P& pmem, const BackupMemory& memory, const SessionTerms& terms,
    fabric::Fabric& fabric, fabric::ConnectionId connection) {
  ALPHEUS_RETURN_IF_ERROR(MakeSuperlinePlan(terms.platform).status());
  std::unique_ptr<BackupSession> session(new BackupSession(
      pmem, memory, terms, RecordPlanOfBackup(), fabric, connection));
  ALPHEUS_ASSIGN_OR_RETURN(
      session->acks_, MessageSlots::Make(fabric, kAcksInFlight, kAckBytes));
  // One more receive for a notice (resend.h), if the fabric has room; else the
  // notice may have to be sent more than once.
  const uint32_t room = std::max(fabric.limits().receives_max, terms.credits);
  ALPHEUS_ASSIGN_OR_RETURN(
      session->receives_,
      PostedReceives::Make(fabric, connection,
                           std::min(terms.credits + 1, room),
                           kHeadUpdateBytes));
  return session;
}

template <Persistence P>
ALPHEUS_FLATTEN absl::Status BackupSession<P>::OnCompletion(
    const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::kOk) {
    return absl::UnavailableError(
        absl::StrCat("epoch ", terms_.epoch.value, ", LSN ", next_.lsn.value,
                     ": the connection to the primary broke: ",
                     fabric::OperationName(completion.operation), ": ",
                     fabric::CompletionStatusName(completion.status)));
  }
  switch (completion.operation) {
    case fabric::Operation::kReceiveImmediate:
      return OnAnnouncement(completion);
    case fabric::Operation::kReceive:
      return OnMessage(completion);
    case fabric::Operation::kSend:
      free_acks_.push_back(completion.work.value);
      return absl::OkStatus();
    default:
      return absl::DataLossError(
          absl::StrCat("epoch ", terms_.epoch.value,
                       ": the primary did what no primary "
                       "does: ",
                       fabric::OperationName(completion.operation)));
  }
}

template <Persistence P>
absl::Status BackupSession<P>::OnAnnouncement(
    const fabric::Completion& completion) {
  const uint64_t capacity = memory_.ring.capacity();
  const uint64_t end = uint64_t{completion.immediate} * kLineBytes;
  if (end >= capacity || completion.bytes == 0) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary announced ",
        completion.bytes, " bytes up to place ", end, " of a ring of ",
        capacity, "; close the session, its memory may be damaged"));
  }
  // No batch is empty, so the same place again means a whole lap.
  const uint64_t place = memory_.ring.Place(announced_);
  announced_ =
      announced_ + (end > place ? end - place : end + capacity - place);
  // More than a lap would be flushed past the ring's end.
  if (announced_ - next_.offset > capacity) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary announced ",
        announced_ - next_.offset, " bytes from offset ", next_.offset.value,
        " on, more than the ring of ", capacity,
        "; close the session, its memory may be damaged"));
  }
  // BS7.
  if (announced_ > ceiling_) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary announced bytes up to ",
        "offset ", announced_.value, ", and the ceiling here is ",
        ceiling_.value, "; close the session, its memory may be damaged"));
  }
  ++batches_;
  return receives_->Taken(completion.work);
}

template <Persistence P>
absl::Status BackupSession<P>::OnMessage(const fabric::Completion& completion) {
  if (!AreSummed(receives_->BytesOf(completion))) {
    return absl::UnavailableError(absl::StrCat(
        "epoch ", terms_.epoch.value, ", LSN ", next_.lsn.value, ": ",
        completion.bytes,
        " bytes of the primary were changed on their way: their sum does not "
        "hold; the session ends, and begins again"));
  }
  if (const auto resent = DecodeResent(receives_->BytesOf(completion))) {
    ALPHEUS_RETURN_IF_ERROR(OnResent(*resent));
    return receives_->Taken(completion.work);
  }
  const auto update = DecodeDurableUpdate(receives_->BytesOf(completion));
  if (!update) return OnHead(completion);
  const bool is_ours =
      update->epoch == terms_.epoch && update->session == terms_.session;
  if (!is_ours) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value,
        ": the primary announced what is durable, LSN ",
        update->durable_lsn.value, ", of epoch ", update->epoch.value,
        " or another session of this one; close the session"));
  }
  durable_lsn_ = std::max(durable_lsn_, update->durable_lsn);
  ++batches_;
  return receives_->Taken(completion.work);
}

template <Persistence P>
absl::Status BackupSession<P>::OnHead(const fabric::Completion& completion) {
  const auto update = DecodeHeadUpdate(receives_->BytesOf(completion));
  const bool is_ours = update && update->epoch == terms_.epoch &&
                       update->session == terms_.session;
  if (!is_ours) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary sent ", completion.bytes,
        " bytes that are no head of this session"));
  }
  const LogPosition& before = bounds_.head;
  const LogPosition& head = update->bounds.head;
  if (head.lsn < before.lsn || head.offset < before.offset ||
      update->bounds.ceiling < bounds_.ceiling) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value,
        ": the primary moved the head or the ceiling back, from LSN ",
        before.lsn.value, " at offset ", before.offset.value, " and ",
        bounds_.ceiling.value, " to LSN ", head.lsn.value, " at offset ",
        head.offset.value, " and ", update->bounds.ceiling.value));
  }
  bounds_ = update->bounds;
  bounds_are_new_ = true;
  ++batches_;
  return receives_->Taken(completion.work);
}

template <Persistence P>
ALPHEUS_FLATTEN absl::Status BackupSession<P>::Step() {
  if (acked_ == batches_) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(PersistResent());
  const uint64_t acked_before = acked_;
  const std::array<WrittenBytes, 2> announced = Announced();
  ALPHEUS_RETURN_IF_ERROR(
      responder_.Respond(announced, [this] { return Acknowledge(); }));
  if (acked_ == acked_before) return receives_->PostAll();
  // After the ack, so that the primary does not wait for the watermark.
  fabric_.FlushSends();
  StoreWatermark();
  return receives_->PostAll();
}

// Returns the announced bytes that no Step has persisted yet.
template <Persistence P>
std::array<WrittenBytes, 2> BackupSession<P>::Announced() const {
  const Ring& ring = memory_.ring;
  const uint64_t bytes = announced_ - persisted_end_;
  const uint64_t until_end = std::min(bytes, ring.UntilEnd(persisted_end_));
  const uint64_t wrapped = bytes - until_end;
  return {WrittenBytes(ring.At(persisted_end_), until_end),
          WrittenBytes(ring.data(), wrapped)};
}

template <Persistence P>
absl::Status BackupSession<P>::Acknowledge() {
  persisted_end_ = announced_;
  if (awaited_) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(WalkAnnounced());
  if (next_.offset < persisted_end_) return absl::OkStatus();
  if (bounds_are_new_) ALPHEUS_RETURN_IF_ERROR(PublishBounds());
  persisted_ = batches_;
  return free_acks_.empty() ? absl::OkStatus() : SendAck();
}

// A head at the end must have the end's place and chain. An earlier head is the
// place of a record, which only a walk from the old head could check.
template <Persistence P>
absl::Status BackupSession<P>::PublishBounds() {
  const LogPosition& head = bounds_.head;
  const uint64_t capacity = memory_.ring.capacity();
  const bool can_be = head.lsn == next_.lsn
                          ? head == next_
                          : head.lsn < next_.lsn &&
                                head.offset < next_.offset &&
                                next_.offset - head.offset <= capacity &&
                                head.offset.value % kLineBytes == 0;
  if (!can_be) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary's head, LSN ",
        head.lsn.value, " at offset ", head.offset.value,
        ", is no place of this log, which ends before LSN ", next_.lsn.value,
        " at offset ", next_.offset.value, "; it was not published"));
  }
  if (!memory_.publish_bounds) {
    return absl::FailedPreconditionError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary moved the head to LSN ",
        head.lsn.value, ", and this session can't publish it"));
  }
  bounds_are_new_ = false;
  ALPHEUS_RETURN_IF_ERROR(memory_.publish_bounds(terms_.epoch, bounds_));
  ceiling_ = std::max(ceiling_, bounds_.ceiling);
  return absl::OkStatus();
}

// BS6. Payloads are summed here, in slices, and not by the cursor.
template <Persistence P>
absl::Status BackupSession<P>::WalkAnnounced() {
  const bool is_to_sum = !ChecksBytes(terms_.platform);
  uint64_t budget = kSumBytesMax;
  RecordCursor cursor(memory_.ring, *memory_.table, next_, announced_,
                      RecordCursor::Payloads::kSkip);
  while (cursor.position().offset < announced_) {
    if (budget == 0) return absl::OkStatus();
    if (cursor.Next() == RecordCursor::Step::kRecord) {
      if (is_to_sum) {
        ALPHEUS_ASSIGN_OR_RETURN(const bool is_summed,
                                 Sum(cursor.record(), budget));
        if (!is_summed) return absl::OkStatus();
      }
      const Lsn named(cursor.record().header.durable_lsn());
      durable_lsn_ = std::max(durable_lsn_, named);
      last_ = {next_.offset, next_.chain};
      next_ = cursor.position();
      tries_ = 0;
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
  return absl::OkStatus();
}

template <Persistence P>
absl::StatusOr<bool> BackupSession<P>::Sum(const RecordView& record,
                                           uint64_t& budget) {
  if (record.cleaned || record.aborted()) return true;
  const uint64_t bytes = std::min(budget, record.payload.size() - summed_);
  sum_ = Crc32c(summed_ == 0 ? kCrcStart : sum_,
                record.payload.subspan(summed_, bytes));
  summed_ += bytes;
  budget -= bytes;
  if (summed_ != record.payload.size()) return false;
  summed_ = 0;
  const uint32_t sum = PayloadChecksum(record.seed, sum_);
  if (sum == record.header.payload_crc()) return true;
  ALPHEUS_RETURN_IF_ERROR(AskAgain(record, sum));
  return false;
}

template <Persistence P>
absl::Status BackupSession<P>::AskAgain(const RecordView& record,
                                        uint32_t sum) {
  const std::string what = absl::StrCat(
      "epoch ", terms_.epoch.value, ", LSN ", record.lsn().value, " at offset ",
      record.offset.value, ": its ", record.payload.size(),
      " bytes of payload have checksum ", absl::Hex(sum), ", the header says ",
      absl::Hex(record.header.payload_crc()));
  if (tries_ == kTriesMax) {
    return absl::DataLossError(absl::StrCat(
        what, ", also when it had been sent ", kTriesMax,
        " times more: damaged in the primary's memory, or by a link that is of "
        "no use; nothing from it on was acknowledged. The session ends"));
  }
  news_ = absl::StrCat(what,
                       ": damaged on the way from the primary, or in its "
                       "memory; nothing from it on was acknowledged, and "
                       "the primary is asked for it again");
  // Waits for a free slot: an ack in flight frees one.
  if (free_acks_.empty()) return absl::OkStatus();
  ++tries_;
  awaited_ = {terms_.epoch, terms_.session, record.offset, record.bytes};
  const size_t slot = free_acks_.back();
  const fabric::LocalBytes message = acks_->At(slot);
  EncodeResendRequest(*awaited_, message.bytes.first<kResendRequestBytes>());
  ALPHEUS_RETURN_IF_ERROR(
      fabric_.PostSend(connection_, fabric::WorkId(slot), message));
  free_acks_.pop_back();
  return absl::OkStatus();
}

template <Persistence P>
absl::Status BackupSession<P>::OnResent(const Resent& resent) {
  const bool is_ours = awaited_ && resent.epoch == terms_.epoch &&
                       resent.session == terms_.session &&
                       resent.offset == awaited_->offset;
  if (!is_ours) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the primary says that it sent offset ",
        resent.offset.value, " again, which nobody asked for"));
  }
  resent_ = std::exchange(awaited_, std::nullopt);
  return absl::OkStatus();
}

// BS1, for bytes that came twice.
template <Persistence P>
absl::Status BackupSession<P>::PersistResent() {
  if (!resent_) return absl::OkStatus();
  pmem_.Flush(memory_.ring.At(resent_->offset), resent_->bytes);
  resent_.reset();
  return pmem_.Fence() ? absl::OkStatus() : pmem_.Error();
}

template <Persistence P>
absl::Status BackupSession<P>::SendAck() {
  const size_t slot = free_acks_.back();
  const fabric::LocalBytes message = acks_->At(slot);
  EncodeAck({terms_.epoch, terms_.session, persisted_lsn(), persisted_},
            message.bytes.first<kAckBytes>());
  ALPHEUS_RETURN_IF_ERROR(
      fabric_.PostSend(connection_, fabric::WorkId(slot), message));
  free_acks_.pop_back();
  acked_ = persisted_;
  return absl::OkStatus();
}

template <Persistence P>
void BackupSession<P>::StoreWatermark() {
  if (watermark_lsn_ == persisted_lsn()) return;
  watermark_lsn_ = persisted_lsn();
  pmem_.StoreLineNt(WatermarkLine(memory_.region, watermark_line_),
                    watermarks_[watermark_line_].Encode(watermark_lsn_, last_));
  watermark_line_ = 1 - watermark_line_;
}

template <Persistence P>
absl::Status BackupSession<P>::PersistWatermark() {
  StoreWatermark();
  return pmem_.Fence() ? absl::OkStatus() : pmem_.Error();
}

ALPHEUS_INSTANTIATE_CLASS(BackupSession);

}  // namespace alpheus::replication
