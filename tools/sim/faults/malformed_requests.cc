// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/malformed_requests.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "recovery/protocol/byte_stream.h"
#include "recovery/protocol/wire_parts.h"

namespace alpheus::sim {

using fabric::WorkId;

namespace {

constexpr size_t kSentSlot = 0;
constexpr size_t kReplySlot = 1;
constexpr uint64_t kSendWork = 1;
constexpr uint64_t kReceiveWork = 2;
constexpr uint64_t kGuessWork = 3;
constexpr uint64_t kImmediateWork = 4;
constexpr size_t kGuessedBytes = 64;
// More than a node's receive has room for.
constexpr size_t kSlotBytes = recovery::kMessageBytesMax + 64;

void FillByLot(RandomSource& random, std::span<std::byte> bytes) {
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random.Below(256));
}

void FlipBits(RandomSource& random, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  for (uint64_t i = 0; i <= random.Below(8); ++i) {
    bytes[random.Below(bytes.size())] ^= std::byte{1} << random.Below(8);
  }
}

// Lengths, kinds and numbers are words.
void ChangeWord(RandomSource& random, std::span<std::byte> bytes) {
  constexpr uint64_t kWords[] = {0, 1, 2, 0x7fffffff, 0xffffffff, UINT64_MAX};
  const uint64_t word = kWords[random.Below(std::size(kWords))];
  const size_t size = random.Below(2) == 0 ? sizeof(uint32_t) : sizeof(word);
  if (bytes.size() < size) return;
  const size_t at = random.Below(bytes.size() / size) * size;
  std::memcpy(bytes.data() + at, &word, size);
}

}  // namespace

std::vector<std::byte> DrawMalformed(RandomSource& random,
                                     std::span<const std::byte> good,
                                     size_t bytes_max) {
  std::vector<std::byte> bytes(good.begin(), good.end());
  switch (random.Below(5)) {
    case 0: {
      const bool is_long = random.Below(8) == 0;
      const uint64_t most =
          is_long ? bytes_max : std::min<uint64_t>(bytes_max, 128);
      bytes.resize(random.Below(most + 1));
      FillByLot(random, bytes);
      break;
    }
    case 1:
      FlipBits(random, bytes);
      break;
    case 2:
      ChangeWord(random, bytes);
      break;
    case 3:
      bytes.resize(random.Below(bytes.size() + 1));
      break;
    default:
      bytes.resize(bytes.size() + 1 + random.Below(64));
      FillByLot(random, std::span(bytes).subspan(good.size()));
  }
  bytes.resize(std::min(bytes.size(), bytes_max));
  return bytes;
}

MalformedConversation::MalformedConversation(fabric::Fabric& fabric,
                                             MalformedCall call)
    : fabric_(fabric), call_(std::move(call)) {
  auto slots = replication::MessageSlots::Make(fabric_, 2, kSlotBytes);
  Expect(slots.status());
  if (!slots.ok()) return;
  slots_ = *std::move(slots);
  const absl::StatusOr<fabric::ConnectionId> connection =
      fabric_.Connect(call_.address, call_.hello, call_.deadline);
  Expect(connection.status());
  if (connection.ok()) connection_ = *connection;
}

MalformedConversation::~MalformedConversation() {
  if (connection_ != fabric::ConnectionId())
    fabric_.Close(connection_).IgnoreError();
}

std::vector<std::byte> WithSum(std::span<const std::byte> bytes,
                               std::span<const std::byte> good, Uuid log_id) {
  recovery::ByteWriter summed;
  summed.Raw(
      bytes.first(bytes.size() - std::min(bytes.size(), recovery::kSumBytes)));
  recovery::PutSum(summed, recovery::ByteReader(good).U32(), log_id);
  return summed.Take();
}

// The connection broke, or was never there.
void MalformedConversation::Expect(const absl::Status& step) {
  if (!step.ok()) is_done_ = true;
}

bool MalformedConversation::OnConnectionEvent(
    const fabric::ConnectionEvent& event) {
  if (event.connection != connection_) return false;
  if (event.kind == fabric::ConnectionEvent::Kind::kEstablished) {
    Begin();
    return true;
  }
  if (event.kind == fabric::ConnectionEvent::Kind::kRejected) {
    refusal_ = recovery::DecodeRejection(event.private_data);
    is_done_ = true;
  }
  if (event.kind == fabric::ConnectionEvent::Kind::kUnreachable)
    is_done_ = true;
  // The completion of each posted operation has its result (FB3).
  return true;
}

void MalformedConversation::Begin() {
  fabric::LocalBytes bytes = slots_->At(kSentSlot);
  bytes.bytes = bytes.bytes.first(kGuessedBytes);
  if (call_.guessed_key) {
    const fabric::RemoteAddress there{*call_.guessed_key, 0};
    Expect(fabric_.PostWrite(connection_, WorkId(kGuessWork), bytes, there));
    return;
  }
  if (call_.has_immediate) {
    Expect(fabric_.PostReceive(connection_, WorkId(kReceiveWork),
                               slots_->At(kReplySlot)));
    Expect(fabric_.PostWriteImmediate(connection_, WorkId(kImmediateWork), {},
                                      {}, /*immediate=*/7));
    return;
  }
  SendNext();
}

void MalformedConversation::SendNext() {
  if (next_ == call_.messages.size()) {
    is_done_ = true;
    return;
  }
  const std::vector<std::byte>& message = call_.messages[next_++];
  fabric::LocalBytes slot = slots_->At(kSentSlot);
  std::ranges::copy(message, slot.bytes.begin());
  slot.bytes = slot.bytes.first(message.size());
  Expect(fabric_.PostReceive(connection_, WorkId(kReceiveWork),
                             slots_->At(kReplySlot)));
  Expect(fabric_.PostSend(connection_, WorkId(kSendWork), slot));
}

bool MalformedConversation::OnCompletion(const fabric::Completion& completion) {
  if (completion.connection != connection_) return false;
  const bool is_ok = completion.status == fabric::CompletionStatus::kOk;
  switch (completion.work.value) {
    case kGuessWork:
      if (is_ok) got_ = "room for its bytes, by a key that it guessed";
      if (completion.status == fabric::CompletionStatus::kRemoteAccess) {
        ++operations_refused_;
      }
      is_done_ = true;  // the connection is broken (FB4)
      break;
    case kReceiveWork:
      if (is_ok) {
        OnReply(completion.bytes);
      } else {
        is_done_ = true;
      }
      break;
    default:
      break;  // the reply tells
  }
  return true;
}

void MalformedConversation::OnReply(size_t bytes) {
  const absl::StatusOr<recovery::Message> reply = recovery::DecodeMessage(
      call_.log_id, slots_->At(kReplySlot).bytes.first(bytes));
  if (reply.ok() && std::holds_alternative<recovery::Challenged>(*reply))
    return SendNext();
  is_done_ = true;
  if (absl::IsUnavailable(reply.status())) return;  // it was damaged on the way
  if (reply.ok() && std::holds_alternative<recovery::Changed>(*reply)) {
    refusal_ = absl::InvalidArgumentError("a sum that does not hold");
    return;
  }
  if (reply.ok() && std::holds_alternative<recovery::Failed>(*reply)) {
    refusal_ = std::get<recovery::Failed>(*reply).status;
    return;
  }
  got_ = reply.ok() ? absl::StrCat("message ", reply->index())
                    : std::string("bytes that are no message");
}

}  // namespace alpheus::sim
