// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/requester.h"

#include <algorithm>
#include <array>

#include "replication/fabric/tcp/words.h"
#include "replication/fabric/work_request.h"

namespace alpheus::fabric::tcp {
namespace {

WireHeader MakeHeader(const WorkRequest& request, uint64_t sequence) {
  WireHeader header{.opcode = WireOpcode::kWrite,
                    .immediate = 0,
                    .length = request.local.bytes.size(),
                    .key = request.remote.key.value,
                    .offset = request.remote.offset,
                    .sequence = sequence};
  switch (request.operation) {
    case Operation::kWriteImmediate:
      header.opcode = WireOpcode::kWriteImmediate;
      header.immediate = request.immediate;
      break;
    case Operation::kRead:
      header.opcode = WireOpcode::kRead;
      break;
    case Operation::kCompareSwap:
      header.opcode = WireOpcode::kCompareSwap;
      header.length = 2 * kWordBytes;
      break;
    case Operation::kFetchAdd:
      header.opcode = WireOpcode::kFetchAdd;
      header.length = kWordBytes;
      break;
    case Operation::kFlush:
      header.opcode = WireOpcode::kFlush;
      header.length = request.range_bytes;
      break;
    case Operation::kSend:
      header.opcode = WireOpcode::kSend;
      break;
    default:
      break;
  }
  return header;
}

std::array<std::byte, 2 * kWordBytes> EncodeOperands(
    const WorkRequest& request) {
  std::array<std::byte, 2 * kWordBytes> operands;
  PutWord(request.operands[0], &operands[0]);
  PutWord(request.operands[1], &operands[kWordBytes]);
  return operands;
}

}  // namespace

uint64_t Requester::FlightBytes(const WorkRequest& request) {
  return kWireHeaderBytes + request.local.bytes.size();
}

bool Requester::Send(Outbox* outbox) {
  while (in_flight_ < requests_.size()) {
    Posted& next = requests_[in_flight_];
    const WorkRequest& request = next.request;
    const uint64_t bytes = FlightBytes(request);
    if (in_flight_ > 0 && flight_bytes_ + bytes > window_bytes_) {
      break;  // TRQ2
    }
    if (!request.local.bytes.empty() && !regions_.Holds(request.local.key)) {
      return false;
    }
    const WireHeader header = MakeHeader(request, front_sequence_ + in_flight_);
    outbox->Append(EncodeHeader(header));
    if (IsAtomic(request.operation)) {
      const auto operands = EncodeOperands(request);
      outbox->Append(std::span(operands).first(header.length));
    } else if (PayloadBytes(header) > 0) {
      outbox->AppendLocal(request.local);
    }
    next.end_position = outbox->end_position();
    flight_bytes_ += bytes;
    ++in_flight_;
  }
  return true;
}

void Requester::CompleteFront(CompletionStatus status) {
  const WorkRequest& request = requests_.front().request;
  completions_->push_back({.connection = connection_,
                           .work = request.work,
                           .operation = request.operation,
                           .status = status,
                           .bytes = 0,
                           .immediate = 0});
  if (in_flight_ > 0) {
    --in_flight_;
    flight_bytes_ -= FlightBytes(request);
  }
  requests_.pop_front();
  ++front_sequence_;
}

bool Requester::IsSent(const Outbox& outbox) const {
  return in_flight_ > 0 &&
         requests_.front().end_position <= outbox.sent_position();
}

bool Requester::CompleteBefore(uint64_t sequence, const Outbox& outbox) {
  while (front_sequence_ < sequence) {
    // TRQ3: executed before it was sent?
    if (!IsSent(outbox)) return false;
    if (Fetches(requests_.front().request.operation)) return false;
    CompleteFront(CompletionStatus::kOk);
  }
  return true;
}

bool Requester::OnAck(uint64_t sequence, const Outbox& outbox) {
  return sequence != ~uint64_t{0} && CompleteBefore(sequence + 1, outbox);
}

bool Requester::OnNak(uint64_t sequence, const Outbox& outbox) {
  return CompleteBefore(sequence, outbox) && sequence == front_sequence_ &&
         in_flight_ > 0;
}

bool Requester::OnReply(const WireHeader& header, const Outbox& outbox) {
  if (!CompleteBefore(header.sequence, outbox) ||
      header.sequence != front_sequence_ || !IsSent(outbox)) {
    return false;
  }
  const WorkRequest& request = requests_.front().request;
  const bool is_read = header.opcode == WireOpcode::kReadReply;
  if (is_read ? request.operation != Operation::kRead
              : !IsAtomic(request.operation)) {
    return false;
  }
  if (header.length != request.local.bytes.size()) return false;
  reply_landed_ = 0;
  if (header.length == 0) CompleteFront(CompletionStatus::kOk);
  return true;
}

size_t Requester::OnReplyPayload(std::span<const std::byte> bytes, bool* gone) {
  const LocalBytes& into = requests_.front().request.local;
  *gone = !regions_.Holds(into.key);
  if (*gone) return 0;
  std::byte* const to = into.bytes.data() + reply_landed_;
  const uint64_t left = into.bytes.size() - reply_landed_;
  const size_t landing = bytes.size() >= left ? static_cast<size_t>(left)
                                              : WholeWords(to, bytes.size());
  StoreWords(to, bytes.first(landing));
  reply_landed_ += landing;
  if (landing == left) CompleteFront(CompletionStatus::kOk);
  return landing;
}

CompletionStatus Requester::LocalFailure() const {
  const bool is_front = !requests_.empty() &&
                        !requests_.front().request.local.bytes.empty() &&
                        !regions_.Holds(requests_.front().request.local.key);
  return is_front ? CompletionStatus::kLocalAccess : CompletionStatus::kFlushed;
}

void Requester::Fail(CompletionStatus first) {
  const bool was_its_turn =
      in_flight_ > 0 || first == CompletionStatus::kLocalAccess;
  CompletionStatus status = was_its_turn ? first : CompletionStatus::kFlushed;
  while (!requests_.empty()) {
    CompleteFront(status);
    status = CompletionStatus::kFlushed;
  }
}

}  // namespace alpheus::fabric::tcp
