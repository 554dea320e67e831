// SPDX-License-Identifier: Apache-2.0
// retries: times as queue pairs encode them, in a few bits.
//
// Thread safety: pure functions.
// References: InfiniBand Architecture 1.2.1 §9.7.5.2.8 (RNR NAK timer codes),
// §9.9.2.1.1 (local ACK timeout); ibv_modify_qp(3).
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_RETRIES_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_RETRIES_H_

#include <cstdint>

namespace alpheus::fabric::verbs {

// Retries of a request to a silent peer; 7, the most, would be forever with
// Soft-RoCE.
inline constexpr uint8_t kRetries = 6;
// Retries of a request to a peer without a receive; 7 would be forever.
inline constexpr uint8_t kNotReadyRetries = 6;

// Returns the local ACK timeout code. With kRetries a peer is never given up
// after more than `retry_ns`, and after more than half of it if the adapter
// takes the code as it is. Requires: retry_ns >= 100'000.
uint8_t AckTimeoutCode(int64_t retry_ns);
int64_t AckTimeoutNanos(uint8_t code);

// Returns the RNR NAK timer code: the shortest with which kNotReadyRetries take
// at least 15/16 of `wait_ns`, or the longest.
uint8_t NotReadyTimerCode(int64_t wait_ns);

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_RETRIES_H_
