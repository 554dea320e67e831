// SPDX-License-Identifier: Apache-2.0
// durable_update: a primary's message to its backups about what is durable.
//
// Idea: a backup knows what it has persisted, but not what W replicas have.
// While records flow each header names what was durable before it. When they
// stop, this message, between the batches of a session, names the last durable
// LSN. So a reader that follows the log at that backup sees it to its end
// (remote_tail.h). Nothing is persisted for it; a backup that misses it only
// knows less.
//
// Thread safety: pure functions.
// References: protocol P-A1, P-A3.3, P-H21; docs/design/replication.md.
#ifndef ALPHEUS_REPLICATION_WIRE_DURABLE_UPDATE_H_
#define ALPHEUS_REPLICATION_WIRE_DURABLE_UPDATE_H_

#include <cstddef>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "replication/wire/ack.h"
#include "replication/wire/summed_words.h"

namespace alpheus::replication {

struct DurableUpdate {
  Epoch epoch;
  SessionId session;
  Lsn durable_lsn;  // W replicas have persisted all up to it

  bool operator==(const DurableUpdate&) const = default;
};

inline constexpr size_t kDurableUpdateBytes = SummedBytes(4);

void EncodeDurableUpdate(const DurableUpdate& update,
                         std::span<std::byte, kDurableUpdateBytes> into);
// Returns nothing if the bytes are none, or were changed on their way.
std::optional<DurableUpdate> DecodeDurableUpdate(
    std::span<const std::byte> bytes);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_WIRE_DURABLE_UPDATE_H_
