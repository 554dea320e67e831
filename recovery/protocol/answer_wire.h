// SPDX-License-Identifier: Apache-2.0
// answer_wire: the encoding of an answer in registered memory, for the primary
// to read.
//
// Bytes that arrive are never trusted. Too few, too many or impossible bytes
// are no answer. Bytes whose sum does not hold are not decoded at all (MSG1 of
// messages.h).
//
// Thread safety: pure functions.
// References: protocol P-A4.3; answer.h; docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_ANSWER_WIRE_H_
#define ALPHEUS_RECOVERY_PROTOCOL_ANSWER_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "recovery/protocol/answer.h"

namespace alpheus {

// A decoded answer is consistent in itself: runs and held records (AN1 of
// answer.h), no more LSNs than the ring has lines, epochs that own what they
// hold. `log_id` seeds the sum and the keys of the table. Errors of decoding:
// Unavailable (MSG1), DataLoss (the bytes are no answer).
std::vector<std::byte> EncodeAnswer(Uuid log_id, const Answer& answer);
absl::StatusOr<Answer> DecodeAnswer(Uuid log_id,
                                    std::span<const std::byte> bytes);
// Returns the most bytes that an answer for such a ring has. Compare it with
// Promised::answer_bytes before memory is allocated for them.
uint64_t AnswerBytesMax(uint64_t ring_capacity);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_PROTOCOL_ANSWER_WIRE_H_
