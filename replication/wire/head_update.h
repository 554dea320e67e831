// SPDX-License-Identifier: Apache-2.0
// head_update: a primary's message to a backup that the log's head has moved,
// or its ceiling.
//
// Idea: this is a message between the batches of a session. It takes one of the
// session's credits and is acknowledged like a batch: an ack that counts it
// says that both are in the backup's superline (P-A6, P-A3.7). It names epoch
// and session, as an ack does (P-H21).
//
// Thread safety: pure functions.
// References: protocol P-A6, P-L4, P-H21; docs/design/replication.md.
#ifndef ALPHEUS_REPLICATION_WIRE_HEAD_UPDATE_H_
#define ALPHEUS_REPLICATION_WIRE_HEAD_UPDATE_H_

#include <cstddef>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "log/core/space/ceiling.h"
#include "replication/wire/ack.h"
#include "replication/wire/summed_words.h"

namespace alpheus::replication {

struct HeadUpdate {
  Epoch epoch;
  SessionId session;
  RingBounds bounds;

  bool operator==(const HeadUpdate&) const = default;
};

inline constexpr size_t kHeadUpdateBytes = SummedBytes(7);

void EncodeHeadUpdate(const HeadUpdate& update,
                      std::span<std::byte, kHeadUpdateBytes> into);
// Returns nothing if the bytes are none, or were changed on their way.
std::optional<HeadUpdate> DecodeHeadUpdate(std::span<const std::byte> bytes);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_WIRE_HEAD_UPDATE_H_
