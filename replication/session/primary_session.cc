// SPDX-License-Identifier: Apache-2.0
#include "replication/session/primary_session.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "replication/persist/plan/planner.h"
#include "replication/wire/durable_update.h"
#include "replication/wire/head_update.h"
#include "replication/wire/summed_words.h"

namespace alpheus::replication {

namespace {

// Messages in flight. A head moves every sixteenth of a ring, and durable LSNs
// are announced when a log is idle: with two, a message hardly ever waits.
constexpr size_t kMessagesInFlight = 2;
// For bytes that are sent again: the slot after those of messages, and the work
// id.
constexpr size_t kNoticeSlot = kMessagesInFlight;
constexpr fabric::WorkId kAgain{0xffff'fffe};
// A batch that wraps at the end of the ring has two ranges.
constexpr uint64_t kRangesMax = 2;
// Batches in flight to a backup that is behind: one is persisted while the next
// one arrives.
constexpr size_t kInFlightBehind = 2;
// Limits for a backup that catches up. Appending threads send these batches,
// and pay for each with latency: 32 KiB take some 10 us to send over loopback.
// Four of them keep a network of 10 Gbit/s and 0.1 ms busy.
constexpr uint64_t kCatchUpBytes = uint64_t{32} << 10;
constexpr size_t kCatchUpInFlight = 4;

}  // namespace

PrimarySession::PrimarySession(const ReplicatedRing& ring,
                               const SessionTerms& terms, const Plan& plan,
                               fabric::Fabric& fabric,
                               fabric::ConnectionId connection)
    : ring_(ring),
      terms_(terms),
      fabric_(fabric),
      connection_(connection),
      limits_(fabric.limits()),
      requester_(plan, fabric, connection),
      posted_{terms.next.lsn - 1, terms.next.offset},
      acked_(posted_),
      unpersisted_(terms.credits),
      bounds_sent_{terms.head, terms.ceiling},
      bounds_published_(bounds_sent_),
      in_flight_(terms.credits),
      free_messages_(kMessagesInFlight) {
  std::iota(free_messages_.begin(), free_messages_.end(), 0);
}

absl::StatusOr<std::unique_ptr<PrimarySession>> PrimarySession::Start(
    const ReplicatedRing& ring, const SessionTerms& terms,
    fabric::Fabric& fabric, fabric::ConnectionId connection) {
  ALPHEUS_ASSIGN_OR_RETURN(const Plan plan, MakeSessionPlan(terms.platform));
  ALPHEUS_RETURN_IF_ERROR(MakeSuperlinePlan(terms.platform).status());
  std::unique_ptr<PrimarySession> session(
      new PrimarySession(ring, terms, plan, fabric, connection));
  // All acks may be under way, and the backup's last word behind them, which
  // needs no credit.
  const uint32_t receives =
      std::min(terms.credits + 1, fabric.limits().receives_max);
  ALPHEUS_ASSIGN_OR_RETURN(
      session->acks_,
      PostedReceives::Make(fabric, connection, receives, kAckBytes));
  ALPHEUS_ASSIGN_OR_RETURN(
      session->messages_,
      MessageSlots::Make(fabric, kMessagesInFlight + 1, kHeadUpdateBytes));
  return session;
}

absl::Status PrimarySession::Advance(const RingEnd& end, Pace pace) {
  const bool is_slow = pace == Pace::kCatchUp;
  const uint64_t batch_bytes_max =
      is_slow ? std::min(terms_.batch_bytes_max, kCatchUpBytes)
              : terms_.batch_bytes_max;
  const size_t in_flight_max = is_slow ? kCatchUpInFlight : kInFlightBehind;
  while (posted_.offset != end.offset) {
    const RingEnd batch = NextBatch(end, batch_bytes_max);
    const bool is_behind = batch.offset != end.offset;
    if (is_behind && in_flight_.size() >= in_flight_max) break;
    if (batch.offset > bounds_published_.ceiling) break;  // RSE6
    if (!HasRoomFor(batch.offset - posted_.offset)) break;
    ALPHEUS_RETURN_IF_ERROR(PostBatch(batch.offset));
    posted_ = batch;
    unpersisted_.Push(batch);
    in_flight_.Push({batch, {}});
    ++batches_;
  }
  return absl::OkStatus();
}

RingEnd PrimarySession::NextBatch(const RingEnd& end,
                                  uint64_t bytes_max) const {
  if (end.offset - posted_.offset <= bytes_max) return end;
  RingEnd batch = EndAfterRecord(posted_);
  while (batch.offset < end.offset) {
    const RingEnd next = EndAfterRecord(batch);
    if (next.offset - posted_.offset > bytes_max) break;
    batch = next;
  }
  return batch;
}

// Trusts the headers: they are of finished records of this process.
RingEnd PrimarySession::EndAfterRecord(const RingEnd& at) const {
  RingOffset offset = at.offset;
  HeaderWords header = LoadHeader(ring_.ring.At(offset));
  if (header.type() == static_cast<uint8_t>(RecordType::kPad)) {
    offset = offset + ring_.ring.UntilEnd(offset);
    header = LoadHeader(ring_.ring.At(offset));
  }
  return {at.lsn + 1, offset + RecordBytes(header.payload_bytes())};
}

absl::Status PrimarySession::AdvanceBounds(const RingBounds& bounds) {
  RingBounds next = bounds_sent_;
  const bool is_after_all = posted_.lsn + 1 >= bounds.head.lsn;
  if (is_after_all && bounds.head.lsn > next.head.lsn) next.head = bounds.head;
  const RingOffset lap = next.head.offset + ring_.ring.capacity();
  next.ceiling = std::max(next.ceiling, std::min(bounds.ceiling, lap));
  if (next == bounds_sent_ || !HasRoomForMessage()) return absl::OkStatus();
  const size_t slot = free_messages_.back();
  const fabric::LocalBytes message = messages_->At(slot);
  EncodeHeadUpdate({terms_.epoch, terms_.session, next},
                   message.bytes.first<kHeadUpdateBytes>());
  ALPHEUS_RETURN_IF_ERROR(PostMessage(message, slot));
  bounds_sent_ = next;
  in_flight_.Push({posted_, next});
  return absl::OkStatus();
}

absl::Status PrimarySession::AdvanceDurable(Lsn lsn) {
  if (lsn <= durable_announced_ || !HasRoomForMessage())
    return absl::OkStatus();
  return PostDurable(lsn);
}

absl::Status PrimarySession::Beat(Lsn lsn) {
  return is_idle() ? Ask(lsn) : absl::OkStatus();
}

absl::Status PrimarySession::Ask(Lsn lsn) {
  if (!HasRoomForMessage()) return absl::OkStatus();
  return PostDurable(std::max(lsn, durable_announced_));
}

absl::Status PrimarySession::PostDurable(Lsn lsn) {
  const size_t slot = free_messages_.back();
  fabric::LocalBytes message = messages_->At(slot);
  message.bytes = message.bytes.first(kDurableUpdateBytes);
  EncodeDurableUpdate({terms_.epoch, terms_.session, lsn},
                      message.bytes.first<kDurableUpdateBytes>());
  ALPHEUS_RETURN_IF_ERROR(PostMessage(message, slot));
  durable_announced_ = lsn;
  in_flight_.Push({posted_, {}, /*is_durable_update=*/true});
  return absl::OkStatus();
}

absl::Status PrimarySession::PostMessage(fabric::LocalBytes message,
                                         size_t slot) {
  ALPHEUS_RETURN_IF_ERROR(
      fabric_.PostSend(connection_, fabric::WorkId(slot), message));
  free_messages_.pop_back();
  ++batches_;
  return absl::OkStatus();
}

bool PrimarySession::HasRoomForMessage() const {
  return HasCredit() && !free_messages_.empty() &&
         SendsInFlight() < limits_.sends_max;
}

bool PrimarySession::HasCredit() const {
  return batches_ - batches_acked_ < terms_.credits;
}

bool PrimarySession::HasRoomFor(uint64_t bytes) const {
  return HasCredit() &&
         SendsInFlight() + requester_.PostsMax(bytes, kRangesMax) <=
             limits_.sends_max;
}

uint64_t PrimarySession::SendsInFlight() const {
  return requester_.posts_in_flight() + kMessagesInFlight -
         free_messages_.size() + again_posts_;
}

// The immediate names the line at which the batch ends (P-L7).
absl::Status PrimarySession::PostBatch(RingOffset end) {
  const uint64_t bytes = end - posted_.offset;
  const uint64_t until_end = ring_.ring.UntilEnd(posted_.offset);
  const auto immediate =
      static_cast<uint32_t>(ring_.ring.Place(end) / kLineBytes);
  if (bytes <= until_end) {
    const PersistRequester::Range range = RangeAt(posted_.offset, bytes);
    return requester_.Post({&range, 1}, immediate);
  }
  const std::array<PersistRequester::Range, kRangesMax> ranges = {
      RangeAt(posted_.offset, until_end),
      RangeAt(posted_.offset + until_end, bytes - until_end)};
  return requester_.Post(ranges, immediate);
}

PersistRequester::Range PrimarySession::RangeAt(RingOffset begin,
                                                uint64_t bytes) const {
  const uint64_t place = ring_.ring.Place(begin);
  return {{ring_.local_key, {ring_.ring.data() + place, bytes}},
          {ring_.backup_key, place}};
}

absl::Status PrimarySession::OnCompletion(
    const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::kOk) {
    return absl::UnavailableError(absl::StrCat(
        "epoch ", terms_.epoch.value, ", LSN ", acked_.lsn.value + 1,
        ": the connection to the backup broke: ",
        fabric::OperationName(completion.operation), ": ",
        fabric::CompletionStatusName(completion.status),
        "; whether it has the records is unknown"));
  }
  if (completion.work == PersistRequester::kWork) {
    requester_.OnCompletion(completion);
    OnPersisted();
    return SendAgain();
  }
  if (completion.work == kAgain) {
    --again_posts_;
    is_notice_free_ |= completion.operation == fabric::Operation::kSend;
    return SendAgain();
  }
  switch (completion.operation) {
    case fabric::Operation::kSend:
      free_messages_.push_back(completion.work.value);
      return absl::OkStatus();
    case fabric::Operation::kReceive:
      return OnAck(completion);
    default:
      return absl::DataLossError(
          absl::StrCat("epoch ", terms_.epoch.value,
                       ": the backup did what no backup does: ",
                       fabric::OperationName(completion.operation)));
  }
}

absl::Status PrimarySession::OnAck(const fabric::Completion& completion) {
  if (const auto again = DecodeResendRequest(acks_->BytesOf(completion))) {
    ALPHEUS_RETURN_IF_ERROR(acks_->Taken(completion.work));
    return OnResendRequest(*again);
  }
  const auto ack = DecodeAck(acks_->BytesOf(completion));
  if (!ack) return OnOtherMessage(acks_->BytesOf(completion));
  // An ack counts although the connection broke after it.
  ALPHEUS_RETURN_IF_ERROR(CountAck(*ack));
  return acks_->Taken(completion.work);
}

absl::Status PrimarySession::CountAck(const Ack& ack) {
  const bool is_ours =
      ack.epoch == terms_.epoch && ack.session == terms_.session;
  if (!is_ours) return absl::OkStatus();
  const uint64_t newly = ack.batches - batches_acked_;
  if (ack.batches < batches_acked_ || newly > in_flight_.size() ||
      (newly != 0 && in_flight_.At(in_flight_.first() + newly - 1).end.lsn !=
                         ack.persisted_lsn)) {
    return absl::DataLossError(absl::StrCat(
        "epoch ", terms_.epoch.value, ": the backup acknowledged LSN ",
        ack.persisted_lsn.value, " with batch ", ack.batches, "; ",
        batches_acked_, " of ", batches_, " batches up to LSN ",
        posted_.lsn.value, " were acknowledged before"));
  }
  for (uint64_t i = 0; i < newly; ++i) {
    OnBatchAcked(in_flight_.Pop());
  }
  batches_acked_ = ack.batches;
  OnPersisted();
  return absl::OkStatus();
}

// A promise of this epoch, or of an older one, does not end the session.
absl::Status PrimarySession::OnOtherMessage(
    std::span<const std::byte> message) {
  const std::optional<quorum::Promise> promise =
      read_promise_ ? read_promise_(message) : std::nullopt;
  if (promise && (promise->epoch > terms_.epoch || promise->epoch == Epoch())) {
    overtaken_by_ = promise;
    return absl::AbortedError(
        promise->epoch == Epoch()
            ? "another process of its machine takes this replica, to open the "
              "log"
            : absl::StrCat("its promise is given: ",
                           quorum::DescribeOpening(*promise)));
  }
  if (!promise && !AreSummed(message)) {
    return absl::UnavailableError(absl::StrCat(
        "epoch ", terms_.epoch.value, ", LSN ", acked_.lsn.value + 1,
        ": an ack of ", message.size(),
        " bytes was damaged on the way: their sum does not hold; whether the "
        "backup has the records is unknown"));
  }
  return absl::DataLossError(absl::StrCat("epoch ", terms_.epoch.value,
                                          ": the backup sent ", message.size(),
                                          " bytes that are no ack"));
}

// The bytes are still in the ring: they stay until they are acknowledged.
absl::Status PrimarySession::OnResendRequest(const ResendRequest& request) {
  if (request.epoch != terms_.epoch || request.session != terms_.session) {
    return absl::OkStatus();
  }
  const bool can_be = !again_ && request.offset >= acked_.offset &&
                      request.offset < posted_.offset && request.bytes > 0 &&
                      request.bytes <= posted_.offset - request.offset &&
                      request.bytes <= ring_.ring.UntilEnd(request.offset) &&
                      request.offset.value % kLineBytes == 0 &&
                      request.bytes % kLineBytes == 0;
  if (!can_be) {
    return absl::DataLossError(
        absl::StrCat("epoch ", terms_.epoch.value, ": the backup wants ",
                     request.bytes, " bytes at offset ", request.offset.value,
                     " again; sent and not acknowledged are those from offset ",
                     acked_.offset.value, " to ", posted_.offset.value));
  }
  again_ = {request.offset, request.offset, request.offset + request.bytes};
  return SendAgain();
}

// Sends pieces while there is room, and the notice after them.
absl::Status PrimarySession::SendAgain() {
  if (!again_) return absl::OkStatus();
  while (again_->next < again_->end) {
    if (SendsInFlight() >= limits_.sends_max) return absl::OkStatus();
    const uint64_t bytes =
        std::min(again_->end - again_->next, limits_.message_bytes_max);
    const PersistRequester::Range range = RangeAt(again_->next, bytes);
    ALPHEUS_RETURN_IF_ERROR(
        fabric_.PostWrite(connection_, kAgain, range.from, range.to));
    again_->next = again_->next + bytes;
    ++again_posts_;
  }
  if (!is_notice_free_ || SendsInFlight() >= limits_.sends_max) {
    return absl::OkStatus();
  }
  fabric::LocalBytes notice = messages_->At(kNoticeSlot);
  notice.bytes = notice.bytes.first(kResentBytes);
  EncodeResent({terms_.epoch, terms_.session, again_->begin},
               notice.bytes.first<kResentBytes>());
  ALPHEUS_RETURN_IF_ERROR(fabric_.PostSend(connection_, kAgain, notice));
  is_notice_free_ = false;
  ++again_posts_;
  again_.reset();
  return absl::OkStatus();
}

void PrimarySession::OnBatchAcked(const InFlight& acked) {
  if (acked.bounds) {
    bounds_published_ = *acked.bounds;
  } else if (!acked.is_durable_update) {
    requester_.OnAck();
  }
}

void PrimarySession::OnPersisted() {
  while (requester_.posted() - requester_.persisted() < unpersisted_.size()) {
    acked_ = unpersisted_.Pop();
  }
}

}  // namespace alpheus::replication
