// SPDX-License-Identifier: Apache-2.0
#include "replication/replica_session.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"
#include "replication/head_update.h"

namespace alpheus {

namespace {

// Heads move every sixteenth of a ring; two are enough to never wait.
constexpr size_t kHeadsUnderWay = 2;

}  // namespace

ReplicaSession::ReplicaSession(const ReplicatedRing& ring,
                               const SessionTerms& terms, Fabric& fabric,
                               ConnectionId connection)
    : ring_(ring),
      terms_(terms),
      fabric_(fabric),
      connection_(connection),
      limits_(fabric.limits()),
      posted_{terms.next.lsn - 1, terms.next.offset},
      acked_(posted_),
      free_heads_(kHeadsUnderWay) {
  std::iota(free_heads_.begin(), free_heads_.end(), 0);
}

absl::StatusOr<std::unique_ptr<ReplicaSession>> ReplicaSession::Start(
    const ReplicatedRing& ring, const SessionTerms& terms, Fabric& fabric,
    ConnectionId connection) {
  std::unique_ptr<ReplicaSession> session(
      new ReplicaSession(ring, terms, fabric, connection));
  ALPHEUS_ASSIGN_OR_RETURN(
      session->acks_, MessageSlots::Make(fabric, terms.credits, kAckBytes));
  ALPHEUS_ASSIGN_OR_RETURN(
      session->heads_,
      MessageSlots::Make(fabric, kHeadsUnderWay, kHeadUpdateBytes));
  for (uint64_t slot = 0; slot < terms.credits; ++slot) {
    ALPHEUS_RETURN_IF_ERROR(session->PostReceive(slot));
  }
  return session;
}

absl::Status ReplicaSession::PostReceive(uint64_t slot) {
  return fabric_.PostReceive(connection_, WorkId(slot), acks_->At(slot));
}

absl::Status ReplicaSession::Advance(const RingEnd& end) {
  if (end.offset == posted_.offset ||
      !HasRoomFor(end.offset - posted_.offset)) {
    return absl::OkStatus();
  }
  ALPHEUS_RETURN_IF_ERROR(PostBatch(end.offset));
  posted_ = end;
  under_way_.push_back({end, {}});
  ++batches_;
  return absl::OkStatus();
}

absl::Status ReplicaSession::AdvanceHead(const LogPosition& head) {
  const bool is_behind_all =
      posted_.lsn + 1 >= head.lsn || IsMutant(Mutant::kHeadOvertakesRecords);
  if (head.lsn <= head_sent_.lsn || !is_behind_all || !HasCredit() ||
      free_heads_.empty() || sends_ == limits_.sends_max) {
    return absl::OkStatus();
  }
  const size_t slot = free_heads_.back();
  const LocalBytes message = heads_->At(slot);
  EncodeHeadUpdate({terms_.epoch, terms_.session, head},
                   message.bytes.first<kHeadUpdateBytes>());
  ALPHEUS_RETURN_IF_ERROR(fabric_.PostSend(connection_, WorkId(slot), message));
  free_heads_.pop_back();
  ++sends_;
  head_sent_ = head;
  under_way_.push_back({posted_, head});
  ++batches_;
  return absl::OkStatus();
}

bool ReplicaSession::HasCredit() const {
  return batches_ - batches_acked_ < terms_.credits ||
         IsMutant(Mutant::kCreditsIgnored);
}

bool ReplicaSession::HasRoomFor(uint64_t bytes) const {
  if (!HasCredit()) return false;
  // One more where the batch goes round the end of the ring.
  const uint64_t pieces = bytes / limits_.message_bytes_max + 2;
  return sends_ + pieces <= limits_.sends_max;
}

// Pieces of at most a message, none across the end of the ring. Only the last
// one announces: the fabric keeps their order (X1, X2 of fabric.h).
absl::Status ReplicaSession::PostBatch(RingOffset end) {
  RingOffset at = posted_.offset;
  while (at < end) {
    const uint64_t bytes = std::min(
        {end - at, ring_.ring.UntilEnd(at), limits_.message_bytes_max});
    ALPHEUS_RETURN_IF_ERROR(
        PostPiece(ring_.ring.Place(at), bytes, at + bytes == end));
    at = at + bytes;
  }
  return absl::OkStatus();
}

absl::Status ReplicaSession::PostPiece(uint64_t place, uint64_t bytes,
                                       bool is_last) {
  const LocalBytes from{ring_.local_key, {ring_.ring.data() + place, bytes}};
  const RemoteAddress to{ring_.backup_key, place};
  ++sends_;
  if (!is_last) return fabric_.PostWrite(connection_, WorkId(), from, to);
  // A ring's end is its start.
  const uint64_t end = (place + bytes) % ring_.ring.capacity();
  return fabric_.PostWriteImmediate(connection_, WorkId(), from, to,
                                    static_cast<uint32_t>(end / kLineBytes));
}

absl::Status ReplicaSession::Take(const Completion& completion) {
  if (completion.status != CompletionStatus::kOk) {
    return absl::UnavailableError(absl::StrCat(
        "epoch ", terms_.epoch.value, ", LSN ", acked_.lsn.value + 1,
        ": the connection to the backup broke: ",
        OperationName(completion.operation), ": ",
        CompletionStatusName(completion.status),
        "; whether it has the records is unknown"));
  }
  switch (completion.operation) {
    case Operation::kWrite:
    case Operation::kWriteImmediate:
      --sends_;
      return absl::OkStatus();
    case Operation::kSend:
      --sends_;
      free_heads_.push_back(completion.work.value);
      return absl::OkStatus();
    case Operation::kReceive:
      return TakeAck(completion);
    default:
      return absl::DataLossError(
          absl::StrCat("epoch ", terms_.epoch.value,
                       ": the backup did what no backup does: ",
                       OperationName(completion.operation)));
  }
}

absl::Status ReplicaSession::TakeAck(const Completion& completion) {
  const auto ack =
      DecodeAck(acks_->At(completion.work.value).bytes.first(completion.bytes));
  if (!ack) {
    return absl::DataLossError(
        absl::StrCat("epoch ", terms_.epoch.value, ": the backup sent ",
                     completion.bytes, " bytes that are no ack"));
  }
  ALPHEUS_RETURN_IF_ERROR(PostReceive(completion.work.value));
  const bool is_ours =
      ack->epoch == terms_.epoch && ack->session == terms_.session;
  if (!is_ours && !IsMutant(Mutant::kAckOfAnotherSession)) {
    return absl::OkStatus();
  }
  const uint64_t newly = ack->batches - batches_acked_;
  if (ack->batches < batches_acked_ || newly > under_way_.size() ||
      (newly != 0 && under_way_[newly - 1].end.lsn != ack->persisted_lsn)) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the backup acknowledged LSN ",
        ack->persisted_lsn.value, " with batch ", ack->batches, "; ",
        batches_acked_, " of ", batches_, " batches up to LSN ",
        posted_.lsn.value, " were acknowledged before"));
  }
  for (uint64_t i = 0; i < newly; ++i) {
    if (i == 0 || !IsMutant(Mutant::kAckIsNotCumulative)) {
      TakeAcked(under_way_.front());
    }
    under_way_.pop_front();
  }
  batches_acked_ = ack->batches;
  return absl::OkStatus();
}

void ReplicaSession::TakeAcked(const UnderWay& acked) {
  acked_ = acked.end;
  if (acked.head) head_published_ = *acked.head;
}

}  // namespace alpheus
