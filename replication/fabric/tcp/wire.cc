// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/wire.h"

#include <algorithm>

#include "log/format/checksum.h"

namespace alpheus::fabric::tcp {
namespace {

// Places of the fields of a header.
constexpr size_t kMagicAt = 0;
constexpr size_t kOpcodeAt = 4;  // then 3 zeros
constexpr size_t kImmediateAt = 8;
constexpr size_t kSumAt = 12;  // zeros in the handshake
constexpr size_t kLengthAt = 16;
constexpr size_t kKeyAt = 24;
constexpr size_t kOffsetAt = 32;
constexpr size_t kSequenceAt = 40;

template <class T>
void Put(T value, std::byte* to) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    to[i] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <class T>
T Get(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<T>(from[i]) << (8 * i));
  }
  return value;
}

// Returns the sum of the header with zeros in the sum's own place.
uint32_t SumOf(std::span<const std::byte, kWireHeaderBytes> header) {
  std::array<std::byte, kWireHeaderBytes> bytes;
  std::ranges::copy(header, bytes.begin());
  Put(uint32_t{0}, &bytes[kSumAt]);
  return Crc32c(kWireMagic, bytes);
}

bool IsLengthGood(const WireHeader& header, const WireBounds& bounds) {
  switch (header.opcode) {
    case WireOpcode::kHello:
    case WireOpcode::kAccept:
      return header.length >= kWireHelloBytes &&
             header.length <= kWireHelloBytes + bounds.private_bytes_max;
    case WireOpcode::kReject:
      return header.length <= bounds.private_bytes_max;
    case WireOpcode::kWrite:
    case WireOpcode::kWriteImmediate:
    case WireOpcode::kRead:
    case WireOpcode::kSend:
    case WireOpcode::kReadReply:
      return header.length <= bounds.message_bytes_max;
    case WireOpcode::kCompareSwap:
      return header.length == 2 * sizeof(uint64_t);
    case WireOpcode::kFetchAdd:
    case WireOpcode::kAtomicReply:
      return header.length == sizeof(uint64_t);
    case WireOpcode::kFlush:
      return true;  // length of a range, which the region bounds
    case WireOpcode::kAck:
    case WireOpcode::kNak:
    case WireOpcode::kPing:
    case WireOpcode::kPong:
      return header.length == 0;
  }
  return false;  // unknown opcode
}

}  // namespace

std::array<std::byte, kWireHeaderBytes> EncodeHeader(const WireHeader& header) {
  std::array<std::byte, kWireHeaderBytes> bytes{};
  Put(kWireMagic, &bytes[kMagicAt]);
  bytes[kOpcodeAt] = static_cast<std::byte>(header.opcode);
  Put(header.immediate, &bytes[kImmediateAt]);
  Put(header.length, &bytes[kLengthAt]);
  Put(header.key, &bytes[kKeyAt]);
  Put(header.offset, &bytes[kOffsetAt]);
  Put(header.sequence, &bytes[kSequenceAt]);
  if (!IsHandshake(header.opcode)) Put(SumOf(bytes), &bytes[kSumAt]);
  return bytes;
}

std::optional<WireHeader> DecodeHeader(
    std::span<const std::byte, kWireHeaderBytes> bytes,
    const WireBounds& bounds) {
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  if (Get<uint32_t>(&bytes[kMagicAt]) != kWireMagic) return std::nullopt;
  WireHeader header;
  header.opcode = static_cast<WireOpcode>(bytes[kOpcodeAt]);
  const bool is_summed = !IsHandshake(header.opcode);
  const bool has_zeros =
      std::ranges::all_of(bytes.subspan(kOpcodeAt + 1, 3), is_zero) &&
      (is_summed || std::ranges::all_of(bytes.subspan(kSumAt, 4), is_zero));
  if (!has_zeros) return std::nullopt;
  if (is_summed && Get<uint32_t>(&bytes[kSumAt]) != SumOf(bytes)) {
    return std::nullopt;
  }
  header.immediate = Get<uint32_t>(&bytes[kImmediateAt]);
  header.length = Get<uint64_t>(&bytes[kLengthAt]);
  header.key = Get<uint64_t>(&bytes[kKeyAt]);
  header.offset = Get<uint64_t>(&bytes[kOffsetAt]);
  header.sequence = Get<uint64_t>(&bytes[kSequenceAt]);
  if (IsHandshake(header.opcode) && header.immediate != kWireVersion) {
    return std::nullopt;
  }
  if (!IsLengthGood(header, bounds)) return std::nullopt;
  return header;
}

uint64_t PayloadBytes(const WireHeader& header) {
  const bool is_of_range =
      header.opcode == WireOpcode::kRead || header.opcode == WireOpcode::kFlush;
  return is_of_range ? 0 : header.length;
}

bool IsHandshake(WireOpcode opcode) {
  return opcode == WireOpcode::kHello || opcode == WireOpcode::kAccept ||
         opcode == WireOpcode::kReject;
}

bool IsRequest(WireOpcode opcode) {
  return opcode >= WireOpcode::kWrite && opcode <= WireOpcode::kSend;
}

std::array<std::byte, kWireHelloBytes> EncodeHello(const WireHello& hello) {
  std::array<std::byte, kWireHelloBytes> bytes{};
  Put(hello.sends_max, &bytes[0]);
  Put(hello.receives_max, &bytes[4]);
  Put(hello.message_bytes_max, &bytes[8]);
  Put(hello.window_bytes, &bytes[16]);
  return bytes;
}

std::optional<WireHello> DecodeHello(std::span<const std::byte> payload) {
  if (payload.size() < kWireHelloBytes) return std::nullopt;
  const WireHello hello{.sends_max = Get<uint32_t>(&payload[0]),
                        .receives_max = Get<uint32_t>(&payload[4]),
                        .message_bytes_max = Get<uint64_t>(&payload[8]),
                        .window_bytes = Get<uint64_t>(&payload[16])};
  if (hello.sends_max == 0 || hello.receives_max == 0 ||
      hello.message_bytes_max == 0 || hello.window_bytes == 0) {
    return std::nullopt;
  }
  return hello;
}

void PutWord(uint64_t value, std::byte* to) { Put(value, to); }
uint64_t GetWord(const std::byte* from) { return Get<uint64_t>(from); }

}  // namespace alpheus::fabric::tcp
