// SPDX-License-Identifier: Apache-2.0
// update_message: what both ends of an update say to each other in messages.
//
// Idea: a message names its session, its number there and the places in the
// responder's region where a and b belong, and brings their bytes or, where
// these were written, only names them. A checksum says whether all of it is
// there: a message that lies in persistent memory and was never received by a
// program is found by it (P-R5).
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

namespace alpheus {

// Bytes of the responder's region; of none: there is no such part.
struct UpdatePlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  bool operator==(const UpdatePlace&) const = default;
};

struct UpdateMessage {
  SessionId session;
  uint64_t sequence = 0;  // from 1, of updates
  UpdatePlace a = {};
  UpdatePlace b = {};
  // Both empty: an address.
  std::span<const std::byte> bytes_of_a = {};
  std::span<const std::byte> bytes_of_b = {};

  bool is_address() const { return bytes_of_a.empty() && bytes_of_b.empty(); }
};

inline constexpr size_t kUpdateMessageHeaderBytes = kLineBytes;

// Returns how many bytes it has. Requires: they fit.
size_t EncodeUpdateMessage(const UpdateMessage& message,
                           std::span<std::byte> into);
// Of the first bytes; there may be more. Nothing if they are no whole message.
// What it returns points into them.
std::optional<UpdateMessage> DecodeUpdateMessage(
    std::span<const std::byte> bytes);

// What the responder has done, all since the session began.
struct UpdateReport {
  SessionId session;
  uint64_t acks = 0;      // of the plan
  uint64_t receives = 0;  // that are posted again: credits

  bool operator==(const UpdateReport&) const = default;
};
inline constexpr size_t kUpdateReportBytes = 32;

void EncodeUpdateReport(const UpdateReport& report,
                        std::span<std::byte, kUpdateReportBytes> into);
std::optional<UpdateReport> DecodeUpdateReport(
    std::span<const std::byte> bytes);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_UPDATE_MESSAGE_H_
