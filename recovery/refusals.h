// SPDX-License-Identifier: Apache-2.0
// refusals: who was refused by a node, why, and how often.
//
// Idea: whoever refuses says a reason with the status. All are counted; the
// first of each peer and reason is told, so that a peer that comes again and
// again fills no log. A peer is its host: its port is another one each time.
//
// Invariants:
//   REF1. Memory is bounded: of kPeersTold pairs of peer and reason it is known
//         that they were told; further ones are only counted.
// Thread safety: one thread.
// References: protocol P-A5, P-H17; docs/use/operating.md#security.
#ifndef ALPHEUS_RECOVERY_REFUSALS_H_
#define ALPHEUS_RECOVERY_REFUSALS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace alpheus {

// In the order of the handshake. On the wire, never renumber.
enum class Refusal : uint32_t {
  kMalformed = 0,       // bytes that are no message
  kOtherVersion,        // of the protocol
  kOtherCluster,        // id
  kUnknownLog,          // id
  kNoRoom,              // too many connections
  kNoKeyHere,           // the peer has a key, this node none
  kNoProof,             // the peer asked for something without a proof
  kWrongKey,            // its proof is none
  kTooSlow,             // no proof in time
  kOutOfTurn,           // a message that is not due
  kOlderConfiguration,  // its list of members
  kStaleEpoch,          // another primary was promised this one or a later one
};
inline constexpr size_t kRefusalCount = 12;

// By reason, in their order.
using RefusalCounts = std::array<uint64_t, kRefusalCount>;

// "wrong key".
std::string_view RefusalName(Refusal reason);

// The status, with the reason. Requires: !status.ok().
absl::Status Refuse(Refusal reason, absl::Status status);
// What Refuse was told; nothing of other errors.
std::optional<Refusal> ReasonOf(const absl::Status& status);

class Refusals {
 public:
  static constexpr size_t kPeersTold = 1024;

  // Counts it; whether it is to be told. `peer` is an address as the fabric
  // writes it.
  bool Note(std::string_view peer, Refusal reason);

  uint64_t count(Refusal reason) const {
    return counts_[static_cast<size_t>(reason)];
  }
  const RefusalCounts& counts() const { return counts_; }
  uint64_t total() const;

 private:
  RefusalCounts counts_{};
  std::set<std::pair<std::string, Refusal>> told_;  // REF1
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REFUSALS_H_
