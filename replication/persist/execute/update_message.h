// SPDX-License-Identifier: Apache-2.0
// update_message: the messages between both ends of an update.
//
// Idea: a message names its session, its number there and the places of a and b
// in the responder's region. It carries their bytes, or, if these were written,
// only names them. A checksum says whether all of it is there. Recovery uses
// that for a message that lies in persistent memory and that no program
// received (P-R5).
//
//   a line    magic, session, sequence, a: offset, bytes, b: offset, bytes,
//             checksum; little-endian words
//   then      the bytes of a, those of b: not if it is an address
//
// Thread safety: pure functions.
// References: remote persistence taxonomy §3.2, §3.3; protocol P-B6 P-R5.
#ifndef ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_MESSAGE_H_
#define ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "log/base/bytes.h"
#include "replication/wire/ack.h"

namespace alpheus::replication {

// A part's place in the responder's region; no bytes: there is no such part.
struct UpdatePlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  bool operator==(const UpdatePlace&) const = default;
};

struct UpdateMessage {
  SessionId session;
  uint64_t sequence = 0;  // number of the update, from 1
  UpdatePlace a = {};
  UpdatePlace b = {};
  // Both are empty in an address.
  std::span<const std::byte> bytes_of_a = {};
  std::span<const std::byte> bytes_of_b = {};

  bool is_address() const { return bytes_of_a.empty() && bytes_of_b.empty(); }
};

inline constexpr size_t kUpdateMessageHeaderBytes = kLineBytes;

// Encodes a message; returns its bytes. Requires: they fit.
size_t EncodeUpdateMessage(const UpdateMessage& message,
                           std::span<std::byte> into);
// Decodes the message at the front of `bytes`; there may be more. Returns
// nothing if it is not whole. The result points into `bytes`.
std::optional<UpdateMessage> DecodeUpdateMessage(
    std::span<const std::byte> bytes);

// The responder's work, counted since the session began.
struct UpdateReport {
  SessionId session;
  uint64_t acks = 0;      // the plan's acks
  uint64_t receives = 0;  // receives posted again, as credits

  bool operator==(const UpdateReport&) const = default;
};
inline constexpr size_t kUpdateReportBytes = 32;

void EncodeUpdateReport(const UpdateReport& report,
                        std::span<std::byte, kUpdateReportBytes> into);
std::optional<UpdateReport> DecodeUpdateReport(
    std::span<const std::byte> bytes);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_MESSAGE_H_
