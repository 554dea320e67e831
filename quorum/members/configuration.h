// SPDX-License-Identifier: Apache-2.0
// configuration: the members that keep a log, and their addresses.
//
// Idea: safety rests on the part that is in every superline (Configuration,
// log/format/superline.h): id, N, W, and the members with their incarnations. A
// ClusterConfiguration is that part before the members are formatted, with what
// only a running node needs: addresses, R, and which members may be primary. R
// is not persisted because N and W bound it: any R that satisfies QU1
// (quorum.h) meets every quorum that wrote under this configuration.
//
// Invariants:
//   CF1. N, W and R satisfy QU1 (quorum.h); N = members.size().
//   CF2. No two members share a node, or an address (P-H17).
//   CF3. Nodes fit a ballot (BA2, ballot.h), and one at least may be primary.
//   CF4. Members are sorted by node, so that two nodes that read their lists in
//        another order have equal configurations.
// Thread safety: values and pure functions.
// References: protocol P-A2, P-H16 to P-H18.
#ifndef ALPHEUS_QUORUM_MEMBERS_CONFIGURATION_H_
#define ALPHEUS_QUORUM_MEMBERS_CONFIGURATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/members/address.h"
#include "quorum/members/cluster_key.h"

namespace alpheus::quorum {

struct ClusterMember {
  NodeId node;  // 1 to kBallotNodeMax, given by the operator
  Address address;
  bool may_be_primary = true;  // false: it only ever holds a replica
  // Where clients of the service reach it, by name or number.
  std::optional<Address> clients = {};

  bool operator==(const ClusterMember&) const = default;
};

// The network between nodes and primaries.
enum class ClusterFabric {
  kTcp,    // sockets, and programs at both ends
  kVerbs,  // adapters with RDMA
};

// Where processes find ZooKeeper, if they use it.
struct ZookeeperService {
  // Servers of one ensemble. At least one, unless no name led anywhere: then
  // the service is of no use.
  std::vector<Address> servers;
  std::string path = "/alpheus";  // under which all clusters' znodes are
  // name:password, and its file; empty: znodes are open to everybody.
  std::string identity_file = {};
  std::string identity = {};
  // Allows no identity even if other machines reach the servers.
  bool insecure_without_identity = false;
  // An administrator with all rights, as name:digest; empty: the identity may
  // give rights.
  std::string admin = {};
  uint32_t session_timeout_ms = 6'000;
  // Says which servers were left out, since their names led nowhere when the
  // file was read; empty: none.
  std::string warning = {};

  bool operator==(const ZookeeperService&) const = default;
};

// Checks a path of znodes: absolute, of plain parts. Errors: InvalidArgument.
absl::Status CheckZnodePath(std::string_view path);

// Files with which processes of a cluster encrypt what they send to each other,
// all PEM. "{node}" in a path is the number of the process's node, or
// "operator" for a command.
struct NodeEncryption {
  std::string authorities_file;  // which sign the certificates of all
  std::string certificate_file;  // of this process
  std::string key_file;
  std::string revoked_file = {};  // lists of revoked ones; empty: none

  bool operator==(const NodeEncryption&) const = default;
};

struct ClusterConfiguration {
  Uuid cluster_id;
  uint64_t id = 1;  // grows with each change
  QuorumSizes sizes;
  std::vector<ClusterMember> members;
  // The key and its file; not set: no proofs are asked for.
  std::string key_file = {};
  // Allows no key even if other machines reach it.
  bool insecure_without_key = false;
  ClusterKey key = {};
  ClusterFabric fabric = ClusterFabric::kTcp;
  std::optional<ZookeeperService> zookeeper = {};  // nothing: static
  std::optional<NodeEncryption> encryption = {};   // nothing: none

  bool operator==(const ClusterConfiguration&) const = default;
};

// Returns the member, or nullptr if the cluster has none such.
const ClusterMember* FindMember(const ClusterConfiguration& cluster,
                                NodeId node);

// The input of a ClusterConfiguration; W and R as in MakeQuorumSizes.
struct ClusterOptions {
  Uuid cluster_id;
  uint64_t configuration_id = 1;
  std::optional<uint32_t> write_quorum;
  std::optional<uint32_t> read_quorum;
  std::vector<ClusterMember> members;  // in any order
  std::string key_file = {};
  bool insecure_without_key = false;
  ClusterFabric fabric = ClusterFabric::kTcp;
  std::optional<ZookeeperService> zookeeper = {};
  std::optional<NodeEncryption> encryption = {};
};

// Checks CF2 and CF3 for each member and each pair. It does not check that one
// may be primary: the list may be incomplete. Errors: InvalidArgument (names
// the first violation).
absl::Status CheckMembers(std::span<const ClusterMember> members);

// Makes a configuration. Errors: InvalidArgument (CF1 to CF3; cluster_id or
// configuration_id is 0).
absl::StatusOr<ClusterConfiguration> MakeClusterConfiguration(
    ClusterOptions options);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_CONFIGURATION_H_
