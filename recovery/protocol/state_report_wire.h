// SPDX-License-Identifier: Apache-2.0
// state_report_wire: the encoding of a state report in registered memory, for
// the primary to read.
//
// Bytes that arrive are never trusted. Too few, too many or impossible bytes
// are no report. Bytes whose sum does not hold are not decoded at all (MSG1 of
// messages.h).
//
// Thread safety: pure functions.
// References: protocol P-A4.3; state_report.h; docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_STATE_REPORT_WIRE_H_
#define ALPHEUS_RECOVERY_PROTOCOL_STATE_REPORT_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// A decoded report is consistent in itself: runs and records (STR1 of
// state_report.h), no more LSNs than the ring has lines, epochs that own what
// they hold. `log_id` seeds the sum and the keys of the table. Errors of
// decoding: Unavailable (MSG1), DataLoss (the bytes are no report).
std::vector<std::byte> EncodeStateReport(Uuid log_id,
                                         const StateReport& report);
absl::StatusOr<StateReport> DecodeStateReport(Uuid log_id,
                                              std::span<const std::byte> bytes);
// Returns the most bytes that a report for such a ring has. Compare it with
// Promised::report_bytes before memory is allocated for them.
uint64_t StateReportBytesMax(uint64_t ring_capacity);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_STATE_REPORT_WIRE_H_
