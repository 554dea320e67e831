// SPDX-License-Identifier: Apache-2.0
// peer_name: the name that a certificate gives to a process of a cluster.
//
//   alpheus://9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a/node/3
//   alpheus://9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a/operator
//
// Idea: a name is of one cluster, so that one authority may sign for several.
//
// Thread safety: pure functions.
// References: docs/use/operating.md#encryption-between-nodes.
#ifndef ALPHEUS_QUORUM_MEMBERS_PEER_NAME_H_
#define ALPHEUS_QUORUM_MEMBERS_PEER_NAME_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus::quorum {

struct PeerName {
  Uuid cluster_id;
  NodeId node;  // 0: an operator

  bool is_operator() const { return node == NodeId(0); }
  bool operator==(const PeerName&) const = default;
};

// Errors: InvalidArgument (another form).
absl::StatusOr<PeerName> ParsePeerName(std::string_view uri);

// Check what a peer with this name may be. `uri` empty: the fabric asks for no
// names, and everything is OK. Errors: InvalidArgument (another form);
// PermissionDenied (something else).
//
// A process of this cluster:
absl::Status CheckIsOfCluster(std::string_view uri, Uuid cluster_id);
// This node:
absl::Status CheckIsNode(std::string_view uri, Uuid cluster_id, NodeId node);
// An operator:
absl::Status CheckIsOperator(std::string_view uri, Uuid cluster_id);
// This node, or an operator in its place:
absl::Status CheckActsAs(std::string_view uri, Uuid cluster_id, NodeId node);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_PEER_NAME_H_
