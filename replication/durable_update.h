// SPDX-License-Identifier: Apache-2.0
// durable_update: what a primary tells its backups of what is durable.
//
// Idea: a backup knows what it has persisted, not what W replicas have. While
// records flow each header names what was durable before it. When they stop,
// this message, between the batches of a session, names the last one, so that
// whoever follows the log at that backup sees it to its end (remote_tail.h).
// Nothing is persisted for it; a backup that never hears of it only knows less.
//
// Thread safety: pure functions.
// References: protocol P-A1, P-A3.3, P-H21; docs/design/replication.md.
#ifndef ALPHEUS_REPLICATION_DURABLE_UPDATE_H_
#define ALPHEUS_REPLICATION_DURABLE_UPDATE_H_

#include <cstddef>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "replication/ack.h"
#include "replication/summed_words.h"

namespace alpheus {

struct DurableUpdate {
  Epoch epoch;
  SessionId session;
  Lsn durable_lsn;  // W replicas have persisted all up to it

  bool operator==(const DurableUpdate&) const = default;
};

inline constexpr size_t kDurableUpdateBytes = SummedBytes(4);

void EncodeDurableUpdate(const DurableUpdate& update,
                         std::span<std::byte, kDurableUpdateBytes> into);
// Nothing if it is none, or was changed on its way.
std::optional<DurableUpdate> DecodeDurableUpdate(
    std::span<const std::byte> bytes);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_DURABLE_UPDATE_H_
