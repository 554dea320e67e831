// SPDX-License-Identifier: Apache-2.0
// server_hello_check: checks whether a replica that greeted a primary can be a
// member of the log that is being opened.
//
// Thread safety: pure.
// References: protocol P-A2 (ring capacity); messages.h.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_SERVER_HELLO_CHECK_H_
#define ALPHEUS_RECOVERY_PROTOCOL_SERVER_HELLO_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

// The immediate of a batch names one of 2^32 lines (256 GiB).
inline constexpr uint64_t kReplicatedRingBytesMax = uint64_t{1} << 38;

// Checks that a replicated log can have such a ring. Errors: InvalidArgument.
absl::Status CheckReplicatedRing(uint64_t ring_capacity);

// Returns NotFound, with the remedy.
absl::Status HasNoReplica(NodeId node);

// Checks a ServerHello by itself. The reports show whether the capacities are
// equal (chooser.h), as a new replica may have another one. They also show
// whether a replica with an older configuration still is a member. Errors:
// NotFound, DataLoss.
absl::Status CheckServerHello(const ServerHello& server_hello);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_SERVER_HELLO_CHECK_H_
