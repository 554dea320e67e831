// SPDX-License-Identifier: Apache-2.0
// configuration: who keeps a log and where to reach them.
//
// Idea: the part that safety rests on is in every superline (Configuration,
// log/format/superline.h): id, N, W, and the members with their incarnations.
// A ClusterConfiguration is that part before the members are formatted, with
// what only a running node needs: addresses, R, and who may be primary. R is
// not persisted because N and W bound it: any R that satisfies QU1 (quorum.h)
// meets every quorum that wrote under this configuration.
//
// Invariants:
//   CF1. N, W and R satisfy QU1 (quorum.h); N = members.size().
//   CF2. No two members share a node, or an address; no two that are known
//        share an incarnation (P-H17).
//   CF3. Nodes fit a ballot (BA2, ballot.h), and one at least may be primary.
//   CF4. Members stand in the order of their nodes, so that two nodes that read
//        their lists in another order have equal configurations.
// Thread safety: values and pure functions.
// References: protocol P-A2, P-H16 to P-H18.
#ifndef ALPHEUS_QUORUM_MEMBERS_CONFIGURATION_H_
#define ALPHEUS_QUORUM_MEMBERS_CONFIGURATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/members/address.h"
#include "quorum/members/cluster_key.h"

namespace alpheus {

struct ClusterMember {
  NodeId node;  // 1 to kBallotNodeMax, given by the operator
  Address address;
  bool may_be_primary = true;  // false: it only ever holds a replica

  bool operator==(const ClusterMember&) const = default;
};

// What its nodes and primaries talk over.
enum class ClusterFabric {
  kTcp,    // sockets, and programs at both ends
  kVerbs,  // adapters with RDMA
};

struct ClusterConfiguration {
  Uuid cluster_id;
  uint64_t id = 1;  // grows with each change
  QuorumSizes sizes;
  std::vector<ClusterMember> members;
  // Where the key is, and the key; none: nobody proves anything.
  std::string key_file = {};
  bool insecure_without_key = false;  // even where other machines reach it
  ClusterKey key = {};
  ClusterFabric fabric = ClusterFabric::kTcp;

  bool operator==(const ClusterConfiguration&) const = default;
};

// nullptr: the cluster has no such member.
const ClusterMember* FindMember(const ClusterConfiguration& cluster,
                                NodeId node);

// What a ClusterConfiguration is made of; W and R as in MakeQuorumSizes.
struct ClusterOptions {
  Uuid cluster_id;
  uint64_t configuration_id = 1;
  std::optional<uint32_t> write_quorum;
  std::optional<uint32_t> read_quorum;
  std::vector<ClusterMember> members;  // in any order
  std::string key_file = {};
  bool insecure_without_key = false;
  ClusterFabric fabric = ClusterFabric::kTcp;
};

// Whether each member, and no two of them, satisfy CF2 and CF3. That one may be
// primary is not asked here: the list may be incomplete.
// Errors: InvalidArgument (names the first that does not).
absl::Status CheckMembers(std::span<const ClusterMember> members);

// Errors: InvalidArgument (CF1 to CF3; cluster_id or configuration_id is 0).
absl::StatusOr<ClusterConfiguration> MakeClusterConfiguration(
    ClusterOptions options);

// The part that goes into superlines, once the members are formatted:
// `formatted` has one entry for each member, in any order.
// Errors: InvalidArgument (a node that is missing, unknown or twice there; an
// incarnation that is 0 or another member's too).
absl::StatusOr<Configuration> PersistedConfiguration(
    const ClusterConfiguration& cluster, std::span<const Member> formatted);

// Whether a peer that has configuration `peer` may work with a node that has
// `own` (P-A5).
// Errors: FailedPrecondition (one of the two is older); InvalidArgument (they
// differ under one id).
absl::Status CheckPeerConfiguration(const Configuration& own,
                                    const Configuration& peer);

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_MEMBERS_CONFIGURATION_H_
