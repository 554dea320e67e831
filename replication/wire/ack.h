// SPDX-License-Identifier: Apache-2.0
// ack: the acknowledgement that a backup sends to its primary.
//
// Idea: an ack is one cumulative message: everything up to persisted_lsn is
// inside the backup's persistence domain. It names epoch and session, so that a
// late ack of a closed session counts for nothing (P-H21). It says how many
// batches were announced, which gives the primary its credits back (P-R1).
//
// Thread safety: pure functions.
// References: protocol P-A3.4, P-F8, P-H21, P-R1; docs/design/replication.md.
#ifndef ALPHEUS_REPLICATION_WIRE_ACK_H_
#define ALPHEUS_REPLICATION_WIRE_ACK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "replication/wire/summed_words.h"

namespace alpheus::replication {

// Random, new for each connection between a primary and a backup.
using SessionId = StrongId<struct SessionIdTag>;

struct Ack {
  Epoch epoch;
  SessionId session;
  Lsn persisted_lsn;
  uint64_t batches = 0;  // announced in this session, and persisted

  bool operator==(const Ack&) const = default;
};

inline constexpr size_t kAckBytes = SummedBytes(5);

void EncodeAck(const Ack& ack, std::span<std::byte, kAckBytes> into);
// Returns nothing if the bytes are no ack, or were changed on their way.
std::optional<Ack> DecodeAck(std::span<const std::byte> bytes);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_WIRE_ACK_H_
