// SPDX-License-Identifier: Apache-2.0
// members_change: a change of a log's members, as an operator asks for it and
// an opening makes it; and where members can be reached.
//
// Thread safety: plain values.
// References: protocol P-A5.3; opening_quorums.h has the rules.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_MEMBERS_CHANGE_H_
#define ALPHEUS_RECOVERY_PROTOCOL_MEMBERS_CHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "log/base/ids.h"
#include "quorum/arithmetic/quorum.h"

namespace alpheus::recovery {

// A member and its address.
struct PeerAddress {
  NodeId node;
  std::string address;  // as the fabric writes it

  bool operator==(const PeerAddress&) const = default;
};

// A change of the configuration that an opening makes.
struct MembersChange {
  // Lists before and after; nodes in ascending order.
  uint64_t from_id = 1;
  quorum::QuorumSizes from;
  std::vector<NodeId> from_nodes;
  uint64_t to_id = 1;
  quorum::QuorumSizes to;
  std::vector<NodeId> to_nodes;
  // Nodes of both lists that have lost their replica and have a new, blank one.
  std::vector<NodeId> replaced;

  bool operator==(const MembersChange&) const = default;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_MEMBERS_CHANGE_H_
