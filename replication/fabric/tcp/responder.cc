// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/responder.h"

#include <algorithm>
#include <utility>

namespace alpheus::fabric::tcp {
namespace {

// Headers of the kept stream were decoded when they came.
constexpr WireBounds kNoBounds{.message_bytes_max = ~uint64_t{0},
                               .private_bytes_max = ~uint32_t{0}};

RemoteAddress Target(const WireHeader& header, uint64_t landed) {
  return {.key = RegionKey(header.key), .offset = header.offset + landed};
}

}  // namespace

void Responder::OnHeader(const WireHeader& header, Outbox* outbox) {
  const bool is_next = !is_waiting() && !keeps();
  if (!is_next) {
    Keep(EncodeHeader(header));
    if (!is_waiting()) Replay(outbox);
    return;
  }
  current_ = header;
  Begin(outbox);
}

size_t Responder::OnPayload(std::span<const std::byte> bytes, Outbox* outbox) {
  if (!is_waiting() && !keeps()) return Continue(bytes, outbox);
  Keep(bytes);
  if (!is_waiting()) Replay(outbox);
  return bytes.size();
}

void Responder::Keep(std::span<const std::byte> bytes) {
  // Drops executed bytes, or a stream that is never empty would grow forever.
  if (kept_begin_ > kept_.size() / 2) {
    kept_.erase(kept_.begin(),
                kept_.begin() + static_cast<int64_t>(kept_begin_));
    kept_bytes_ -= kept_begin_;
    kept_begin_ = 0;
  }
  kept_.insert(kept_.end(), bytes.begin(), bytes.end());
  kept_bytes_ += bytes.size();
  // Headers count in the window, too (TRQ2), and so does the awaited message.
  if (kept_.size() - kept_begin_ > window_bytes_) BreakOff();
}

void Responder::ForgetKept() {
  kept_bytes_ -= kept_.size();
  kept_ = {};
  kept_begin_ = 0;
}

void Responder::Replay(Outbox* outbox) {
  while (health_ == Health::kGood && !is_waiting() && keeps()) {
    const auto rest = std::span<const std::byte>(kept_).subspan(kept_begin_);
    if (is_busy_) {
      const size_t taken = Continue(rest, outbox);
      if (taken == 0) return;  // half a word: the rest comes later
      kept_begin_ += taken;
      continue;
    }
    // Headers are kept whole.
    current_ = *DecodeHeader(rest.first<kWireHeaderBytes>(), kNoBounds);
    kept_begin_ += kWireHeaderBytes;
    Begin(outbox);
  }
  if (!keeps()) ForgetKept();
}

void Responder::Begin(Outbox* outbox) {
  if (current_.sequence != executed_ + 1) {
    return BreakOff();  // TRP1
  }
  is_busy_ = true;
  landed_ = 0;
  switch (current_.opcode) {
    case WireOpcode::kWrite:
    case WireOpcode::kWriteImmediate: {
      // Checks the whole range, so that a write past the end lands nothing.
      const auto region = regions_.Find(Target(current_, 0), current_.length,
                                        RemoteAccess::kWrite);
      if (!region.ok()) return FailWith(WireFailure::kRemoteAccess);
      break;
    }
    case WireOpcode::kRead:
      return ReplyToRead(outbox);
    case WireOpcode::kFlush:
      return ExecuteFlush();
    case WireOpcode::kSend:
      return BeginSend();
    default:  // atomics wait for their operands
      waits_for_room_ = !HasRoomForAnswers(*outbox);
      return;
  }
  if (current_.length == 0) Finish();
}

size_t Responder::Continue(std::span<const std::byte> bytes, Outbox* outbox) {
  if (current_.opcode == WireOpcode::kCompareSwap ||
      current_.opcode == WireOpcode::kFetchAdd) {
    return ReadOperands(bytes, outbox);
  }
  const size_t taken =
      current_.opcode == WireOpcode::kSend ? LandSend(bytes) : Land(bytes);
  landed_ += taken;
  const bool is_whole = landed_ == current_.length;
  if (health_ == Health::kGood && is_whole) Finish();
  return taken;
}

size_t Responder::Land(std::span<const std::byte> bytes) {
  const uint64_t left = current_.length - landed_;
  const auto to =
      regions_.Find(Target(current_, landed_), left, RemoteAccess::kWrite);
  if (!to.ok()) {  // TRP2
    FailWith(WireFailure::kRemoteAccess);
    return 0;
  }
  const size_t landing = bytes.size() >= left
                             ? static_cast<size_t>(left)
                             : WholeWords(to->data(), bytes.size());
  StoreWords(to->data(), bytes.first(landing));
  return landing;
}

size_t Responder::LandSend(std::span<const std::byte> bytes) {
  const LocalBytes& into = receives_.front().into;
  if (!regions_.Holds(into.key)) {  // TRP2
    CompleteReceive(Operation::kReceive, CompletionStatus::kLocalAccess, 0);
    health_ = Health::kBroken;
    return 0;
  }
  std::byte* const to = into.bytes.data() + landed_;
  const uint64_t left = current_.length - landed_;
  const size_t landing = bytes.size() >= left ? static_cast<size_t>(left)
                                              : WholeWords(to, bytes.size());
  StoreWords(to, bytes.first(landing));
  return landing;
}

size_t Responder::ReadOperands(std::span<const std::byte> bytes,
                               Outbox* outbox) {
  const size_t left = static_cast<size_t>(current_.length - landed_);
  const std::span<const std::byte> taken =
      bytes.first(std::min(left, bytes.size()));
  std::ranges::copy(taken, operands_.begin() + static_cast<int64_t>(landed_));
  landed_ += taken.size();
  if (landed_ == current_.length) ExecuteAtomic(outbox);
  return taken.size();
}

void Responder::BeginSend() {
  is_parked_ = receives_.empty();
  if (is_parked_) {
    // Its whole payload would have to be kept (TRP4).
    if (current_.length + kWireHeaderBytes > window_bytes_) {
      FailWith(WireFailure::kReceiverNotReady);
    }
    return;
  }
  if (current_.length > receives_.front().into.bytes.size()) {
    CompleteReceive(Operation::kReceive, CompletionStatus::kReceiveTooSmall, 0);
    return FailWith(WireFailure::kReceiveTooSmall);
  }
  if (current_.length == 0) Finish();
}

void Responder::Finish() {
  switch (current_.opcode) {
    case WireOpcode::kWriteImmediate:
      return FinishImmediate();
    case WireOpcode::kSend:
      CompleteReceive(Operation::kReceive, CompletionStatus::kOk, 0);
      return Executed();
    default:
      return Executed();
  }
}

void Responder::FinishImmediate() {
  is_parked_ = receives_.empty();
  if (is_parked_) return;
  CompleteReceive(Operation::kReceiveImmediate, CompletionStatus::kOk,
                  current_.immediate);
  Executed();
}

void Responder::PostReceive(WorkId work, const LocalBytes& into,
                            Outbox* outbox) {
  receives_.push_back({work, into});
  if (!is_parked_ || health_ != Health::kGood) return;
  is_parked_ = false;
  if (current_.opcode == WireOpcode::kSend) {
    BeginSend();
  } else {
    FinishImmediate();
  }
  Replay(outbox);
}

// FB1: copies, so that later writes don't show in this read; they wait until
// all of it was copied.
void Responder::ReplyToRead(Outbox* outbox) {
  waits_for_room_ = true;
  while (waits_for_room_ && HasRoomForAnswers(*outbox)) {
    if (!AppendReplyPiece(outbox)) return;
    is_in_reply_ = landed_ < current_.length;
    waits_for_room_ = is_in_reply_;
  }
  if (waits_for_room_) return;
  Executed();
  answered_ = executed_;
}

bool Responder::AppendReplyPiece(Outbox* outbox) {
  const uint64_t left = current_.length - landed_;
  const auto from =
      regions_.Find(Target(current_, landed_), left, RemoteAccess::kRead);
  if (!from.ok()) {  // TRP2
    FailWith(WireFailure::kRemoteAccess);
    // In the middle of a reply no failure can be sent.
    if (is_in_reply_) health_ = Health::kBroken;
    return false;
  }
  if (landed_ == 0) {
    outbox->AppendAnswer(EncodeHeader({.opcode = WireOpcode::kReadReply,
                                       .immediate = 0,
                                       .length = current_.length,
                                       .key = 0,
                                       .offset = 0,
                                       .sequence = current_.sequence}));
  }
  const size_t piece = left <= kReplyPieceBytes
                           ? static_cast<size_t>(left)
                           : WholeWords(from->data(), kReplyPieceBytes);
  std::vector<std::byte> bytes(piece);
  LoadWords(from->first(piece), bytes.data());
  outbox->AppendAnswer(std::move(bytes));
  landed_ += piece;
  return true;
}

bool Responder::HasRoomForAnswers(const Outbox& outbox) {
  return outbox.answer_bytes() < kAnswerBytesMax;
}

void Responder::Advance(Outbox* outbox) {
  if (!waits_for_room_ || health_ != Health::kGood) return;
  if (current_.opcode == WireOpcode::kRead) {
    ReplyToRead(outbox);
  } else {
    waits_for_room_ = !HasRoomForAnswers(*outbox);
  }
  if (!is_waiting()) Replay(outbox);
}

void Responder::ExecuteFlush() {
  const auto range =
      regions_.Find(Target(current_, 0), current_.length, RemoteAccess::kRead);
  if (!range.ok()) return FailWith(WireFailure::kRemoteAccess);
  // Executed writes are in memory: there is nothing to do.
  Executed();
}

void Responder::ExecuteAtomic(Outbox* outbox) {
  const auto word =
      regions_.Find(Target(current_, 0), kWordBytes, RemoteAccess::kAll);
  if (!word.ok() || BytesToWord(word->data()) != 0) {
    return FailWith(WireFailure::kRemoteAccess);
  }
  auto* const place = reinterpret_cast<uint64_t*>(word->data());
  // Order: a thread of this host may poll the word, and then read what was
  // written before.
  uint64_t before = GetWord(&operands_[0]);
  if (current_.opcode == WireOpcode::kCompareSwap) {
    // Either way `before` then has the old value: on success it equals the
    // expected one.
    (void)__atomic_compare_exchange_n(
        place, &before, GetWord(&operands_[kWordBytes]), /*weak=*/false,
        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  } else {
    before = __atomic_fetch_add(place, before, __ATOMIC_ACQ_REL);
  }
  outbox->AppendAnswer(EncodeHeader({.opcode = WireOpcode::kAtomicReply,
                                     .immediate = 0,
                                     .length = kWordBytes,
                                     .key = 0,
                                     .offset = 0,
                                     .sequence = current_.sequence}));
  std::array<std::byte, kWordBytes> value;
  std::memcpy(value.data(), &before, kWordBytes);  // as it lies in memory
  outbox->AppendAnswer(std::span<const std::byte>(value));
  Executed();
  answered_ = executed_;
}

void Responder::Executed() {
  executed_ = current_.sequence;
  is_busy_ = false;
}

void Responder::CompleteReceive(Operation operation, CompletionStatus status,
                                uint32_t immediate) {
  completions_->push_back({.connection = connection_,
                           .work = receives_.front().work,
                           .operation = operation,
                           .status = status,
                           .bytes = current_.length,
                           .immediate = immediate});
  receives_.pop_front();
}

void Responder::FailWith(WireFailure failure) {
  health_ = Health::kFailed;
  failure_ = failure;
}

void Responder::Fail() {
  current_ = {};
  is_parked_ = waits_for_room_ = is_in_reply_ = false;
  ForgetKept();
  while (!receives_.empty()) {
    CompleteReceive(Operation::kReceive, CompletionStatus::kFlushed, 0);
  }
}

}  // namespace alpheus::fabric::tcp
