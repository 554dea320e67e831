// SPDX-License-Identifier: Apache-2.0
#include "replication/replica_session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"

namespace alpheus {

ReplicaSession::ReplicaSession(const ReplicatedRing& ring,
                               const SessionTerms& terms, Fabric& fabric,
                               ConnectionId connection)
    : ring_(ring),
      terms_(terms),
      fabric_(fabric),
      connection_(connection),
      limits_(fabric.limits()),
      posted_{terms.next.lsn - 1, terms.next.offset},
      acked_(posted_) {}

absl::StatusOr<std::unique_ptr<ReplicaSession>> ReplicaSession::Start(
    const ReplicatedRing& ring, const SessionTerms& terms, Fabric& fabric,
    ConnectionId connection) {
  std::unique_ptr<ReplicaSession> session(
      new ReplicaSession(ring, terms, fabric, connection));
  ALPHEUS_ASSIGN_OR_RETURN(
      session->acks_, MessageSlots::Make(fabric, terms.credits, kAckBytes));
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
  under_way_.push_back(end);
  ++batches_;
  return absl::OkStatus();
}

bool ReplicaSession::HasRoomFor(uint64_t bytes) const {
  if (batches_ - batches_acked_ >= terms_.credits &&
      !IsMutant(Mutant::kCreditsIgnored)) {
    return false;
  }
  // One more where the batch goes round the end of the ring.
  const uint64_t pieces = bytes / limits_.message_bytes_max + 2;
  return writes_ + pieces <= limits_.sends_max;
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
  ++writes_;
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
      --writes_;
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
      (newly != 0 && under_way_[newly - 1].lsn != ack->persisted_lsn)) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the backup acknowledged LSN ",
        ack->persisted_lsn.value, " with batch ", ack->batches, "; ",
        batches_acked_, " of ", batches_, " batches up to LSN ",
        posted_.lsn.value, " were acknowledged before"));
  }
  if (newly == 0) return absl::OkStatus();
  acked_ = under_way_[newly - 1];
  under_way_.erase(under_way_.begin(),
                   under_way_.begin() + static_cast<ptrdiff_t>(newly));
  batches_acked_ = ack->batches;
  return absl::OkStatus();
}

}  // namespace alpheus
