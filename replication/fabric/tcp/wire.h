// SPDX-License-Identifier: Apache-2.0
// wire: the messages of two software adapters, byte by byte.
//
// Idea: every message is a header of one size and, for some opcodes, a payload
// whose length the header tells. Encoding and decoding are pure functions, so
// that they are tested and fuzzed without a socket.
//
// Invariants:
//   TW1. A header that decodes has a known opcode, a length within its opcode's
//        bounds, zeros where zeros belong and, after the handshake, a sum that
//        holds. No length, place or number is used before that.
//   TW2. The first 12 bytes of a hello and of an accept (magic, opcode,
//        version) mean the same in all versions of the protocol.
// Thread safety: functions without state.
// References: docs/design/fabric.md#the-wire-of-the-adapter-over-tcp-version-1.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_WIRE_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace alpheus::fabric::tcp {

inline constexpr uint32_t kWireMagic = 0x46504c41;  // "ALPF" in memory
inline constexpr uint32_t kWireVersion = 1;
inline constexpr size_t kWireHeaderBytes = 48;

// On the wire, never renumber.
enum class WireOpcode : uint8_t {
  // Handshake; `immediate` is the version, the payload a hello (no hello in a
  // reject) and private data.
  kHello = 1,
  kAccept = 2,
  kReject = 3,
  // Requests, numbered by `sequence` from 1 on.
  kWrite = 16,
  kWriteImmediate = 17,
  kRead = 18,         // asks for `length` bytes; no payload
  kCompareSwap = 19,  // payload: expected, desired
  kFetchAdd = 20,     // payload: the addend
  kFlush = 21,        // `length` of the range; no payload
  kSend = 22,
  // Answers. All are cumulative: every request before `sequence` has been
  // executed.
  kAck = 32,          // ... and that one, too
  kReadReply = 33,    // payload: the bytes
  kAtomicReply = 34,  // payload: the old word
  kNak = 35,          // that one failed; `immediate` is a WireFailure
  // Keep-alive.
  kPing = 48,
  kPong = 49,
};

// On the wire, never renumber.
enum class WireFailure : uint32_t {
  kRemoteAccess = 1,
  kReceiverNotReady = 2,
  kReceiveTooSmall = 3,
};

struct WireHeader {
  WireOpcode opcode = WireOpcode::kPing;
  uint32_t immediate = 0;
  uint64_t length = 0;
  uint64_t key = 0;
  uint64_t offset = 0;
  uint64_t sequence = 0;

  bool operator==(const WireHeader&) const = default;
};

// Limits of what one side takes from the other; larger lengths are refused.
struct WireBounds {
  uint64_t message_bytes_max = 0;
  uint32_t private_bytes_max = 0;
};

std::array<std::byte, kWireHeaderBytes> EncodeHeader(const WireHeader& header);
// Returns nothing if the bytes are no header (TW1), or a hello or accept of
// another version.
std::optional<WireHeader> DecodeHeader(
    std::span<const std::byte, kWireHeaderBytes> bytes,
    const WireBounds& bounds);

// Returns how many bytes follow the header. Requires: it was decoded.
uint64_t PayloadBytes(const WireHeader& header);

bool IsHandshake(WireOpcode opcode);
bool IsRequest(WireOpcode opcode);

// Each side's limits, before its private data.
struct WireHello {
  uint32_t sends_max = 0;
  uint32_t receives_max = 0;
  uint64_t message_bytes_max = 0;
  uint64_t window_bytes = 0;  // see docs/design/fabric.md#window

  bool operator==(const WireHello&) const = default;
};
inline constexpr size_t kWireHelloBytes = 24;

std::array<std::byte, kWireHelloBytes> EncodeHello(const WireHello& hello);
// Returns nothing if it is too short or a limit is 0.
std::optional<WireHello> DecodeHello(std::span<const std::byte> payload);

// Little-endian words of payloads.
void PutWord(uint64_t value, std::byte* to);
uint64_t GetWord(const std::byte* from);

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_WIRE_H_
