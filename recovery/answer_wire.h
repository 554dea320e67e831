// SPDX-License-Identifier: Apache-2.0
// answer_wire: an answer as it lies in registered memory, for the primary to
// read.
//
// What arrives is never trusted: bytes that are too few, too many, or say what
// can't be, are no answer, and none of bytes whose sum does not fit is decoded
// (MSG1 of messages.h).
//
// Thread safety: pure functions.
// References: protocol P-A4.3; answer.h; docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_ANSWER_WIRE_H_
#define ALPHEUS_RECOVERY_ANSWER_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "recovery/answer.h"

namespace alpheus {

// What is decoded is consistent in itself (runs and held records, AN1 of
// answer.h; no more LSNs than the ring has lines; epochs own what they hold).
// `log_id` seeds the sum and the keys of the table. Errors, of decoding:
// Unavailable (MSG1), DataLoss (it is no answer).
std::vector<std::byte> EncodeAnswer(Uuid log_id, const Answer& answer);
absl::StatusOr<Answer> DecodeAnswer(Uuid log_id,
                                    std::span<const std::byte> bytes);
// No answer of a replica with such a ring has more bytes: to be compared with
// Promised::answer_bytes before memory is made for them.
uint64_t AnswerBytesMax(uint64_t ring_capacity);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_ANSWER_WIRE_H_
