// SPDX-License-Identifier: Apache-2.0
// reject_counters: counts of the peers that a node rejected, by peer and
// reason.
//
// Idea: a rejection carries its reason in the status. All are counted. The
// operator is warned only of the first of each peer and reason, so that a peer
// that comes again and again fills no log file. A peer is its host, as its port
// changes each time.
//
// Invariants:
//   REF1. Memory is bounded: kPeersReported pairs of peer and reason are
//         remembered as told; further ones are only counted.
// Thread safety: one thread.
// References: protocol P-A5, P-H17; docs/use/operating.md#security.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_REJECT_COUNTERS_H_
#define ALPHEUS_RECOVERY_PROTOCOL_REJECT_COUNTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace alpheus::recovery {

// Reasons, in the order of the handshake. On the wire, never renumber.
enum class RejectReason : uint32_t {
  kMalformed = 0,       // bytes that are no message
  kOtherVersion,        // another protocol version
  kOtherCluster,        // id
  kUnknownLog,          // id
  kNoRoom,              // too many connections
  kNoKeyHere,           // the peer has a key, this node none
  kNoProof,             // a request without a proof
  kWrongKey,            // its proof does not hold
  kTooSlow,             // no proof in time
  kOutOfTurn,           // a message that is not due
  kOlderConfiguration,  // its list of members
  kStaleEpoch,          // another primary has this or a later promise
};
inline constexpr size_t kRejectReasonCount = 12;

// Counts, in the order of the reasons.
using RejectCounts = std::array<uint64_t, kRejectReasonCount>;

// Returns, for instance, "wrong key".
std::string_view RejectReasonName(RejectReason reason);

// Returns the status with the reason. Requires: !status.ok().
absl::Status Rejection(RejectReason reason, absl::Status status);
// Returns the reason that Rejection added, or nothing.
std::optional<RejectReason> ReasonOf(const absl::Status& status);

class RejectCounters {
 public:
  static constexpr size_t kPeersReported = 1024;

  // Counts a rejection; returns true if the operator is to be warned of it.
  // `peer` is an address as the fabric writes it.
  bool Note(std::string_view peer, RejectReason reason);

  uint64_t count(RejectReason reason) const {
    return counts_[static_cast<size_t>(reason)];
  }
  const RejectCounts& counts() const { return counts_; }
  uint64_t total() const;

 private:
  RejectCounts counts_{};
  std::set<std::pair<std::string, RejectReason>> reported_;  // REF1
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_REJECT_COUNTERS_H_
