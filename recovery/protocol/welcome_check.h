// SPDX-License-Identifier: Apache-2.0
// welcome_check: whether a replica that welcomed a primary can be a member of
// the log that is about to be opened.
//
// Thread safety: pure.
// References: protocol P-A2 (ring capacity); messages.h.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_WELCOME_CHECK_H_
#define ALPHEUS_RECOVERY_PROTOCOL_WELCOME_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

// The immediate of a batch names one of 2^32 lines (256 GiB).
inline constexpr uint64_t kReplicatedRingBytesMax = uint64_t{1} << 38;

// A ring that no replicated log has. Errors: InvalidArgument.
absl::Status CheckReplicatedRing(uint64_t ring_capacity);

// NotFound, with what makes it one.
absl::Status HasNoReplica(NodeId node);

// Each error is the replica's alone. Whether capacities are equal is judged
// with the answers (chooser.h): a replica that is new may have another one. So
// is whether it is a member still, if its configuration is older.
// Errors: NotFound, DataLoss.
absl::Status CheckWelcome(const Welcome& welcome);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_PROTOCOL_WELCOME_CHECK_H_
