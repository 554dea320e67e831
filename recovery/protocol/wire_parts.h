// SPDX-License-Identifier: Apache-2.0
// wire_parts: encodings that several kinds of bytes between a primary and a
// replica share (messages.h, state_report_wire.h).
//
// A Read that meets impossible bytes marks its reader as bad; its result is
// then of no use.
// Everything that is sent ends with its sum: a CRC32C of all bytes before it,
// seeded with the magic and the log. So bytes that were changed on their way,
// and bytes of another kind or log, are detected before any of them is decoded.
//
// Thread safety: pure functions.
// References: docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_WIRE_PARTS_H_
#define ALPHEUS_RECOVERY_PROTOCOL_WIRE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "recovery/protocol/byte_stream.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::recovery {

// Offsets stay below, so that sums with them never overflow.
inline constexpr uint64_t kOffsetEnd = uint64_t{1} << 62;

inline constexpr size_t kSumBytes = 4;

// Appends the sum of all that `to` has. `magic` is its first word; `log_id` is
// zeros where the bytes name the log themselves.
void PutSum(ByteWriter& to, uint32_t magic, Uuid log_id);
// Returns the bytes without their sum. Errors: Unavailable (they are not what
// was sent; `what` names them, with its article).
absl::StatusOr<std::span<const std::byte>> ReadSummed(
    const char* what, uint32_t magic, Uuid log_id,
    std::span<const std::byte> bytes);

// Writes all replica_count members, and the list that it was made from.
// Requires: at most kMembersMax each.
void Put(ByteWriter& to, const Configuration& configuration);
Configuration ReadConfiguration(ByteReader& from);

void Put(ByteWriter& to, const LogPosition& position);
LogPosition ReadPosition(ByteReader& from);

void Put(ByteWriter& to, const EpochTable& table);
// `log_id` seeds the table's keys.
EpochTable ReadTable(ByteReader& from, Uuid log_id);

void Put(ByteWriter& to, const replication::Platform& platform);
replication::Platform ReadPlatform(ByteReader& from);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_WIRE_PARTS_H_
