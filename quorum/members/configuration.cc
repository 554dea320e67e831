// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/configuration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "quorum/arithmetic/ballot.h"

namespace alpheus::quorum {
namespace {

absl::Status CheckNode(NodeId node) {
  if (node.value >= 1 && node.value <= kBallotNodeMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "member with node ", node.value, "; it must be 1 to ", kBallotNodeMax,
      ", to fit a ballot. Give the node another id"));
}

absl::Status CheckPair(const ClusterMember& a, const ClusterMember& b) {
  if (a.node == b.node) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", a.node.value, " is a member twice, at ",
                     a.address.ToString(), " and ", b.address.ToString(),
                     ". Each member needs a node id of its own"));
  }
  if (a.address == b.address) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nodes ", a.node.value, " and ", b.node.value, " share the address ",
        a.address.ToString(), ". Each member needs an address of its own"));
  }
  return absl::OkStatus();
}

// Returns the formatted replica of `node`. Errors: InvalidArgument (there is
// none, or it has incarnation 0).
absl::StatusOr<Member> FindFormatted(std::span<const Member> formatted,
                                     NodeId node) {
  const auto is_of_node = [node](const Member& m) { return m.node == node; };
  const auto found =
      std::find_if(formatted.begin(), formatted.end(), is_of_node);
  if (found == formatted.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no formatted replica of member ", node.value,
                     ". Format all members by one command"));
  }
  if (found->incarnation == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "replica of member ", node.value,
        " has incarnation 0, which is never valid. Format it again"));
  }
  return *found;
}

// CF2: a file that was copied to another node has the same incarnation.
absl::Status CheckIncarnations(std::span<const Member> members) {
  for (size_t i = 0; i < members.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (members[i].incarnation != members[j].incarnation) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "replicas of members ", members[j].node.value, " and ",
          members[i].node.value, " share the incarnation ",
          absl::Hex(members[i].incarnation),
          ": one is a copy of the other. Format one of them again"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const ClusterMember* FindMember(const ClusterConfiguration& cluster,
                                NodeId node) {
  for (const ClusterMember& member : cluster.members) {
    if (member.node == node) return &member;
  }
  return nullptr;
}

absl::Status CheckMembers(std::span<const ClusterMember> members) {
  for (size_t i = 0; i < members.size(); ++i) {
    ALPHEUS_RETURN_IF_ERROR(CheckNode(members[i].node));
    for (size_t j = 0; j < i; ++j) {
      ALPHEUS_RETURN_IF_ERROR(CheckPair(members[j], members[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckZnodePath(std::string_view path) {
  bool is_good = path.size() > 1 && path.size() <= 256 && path[0] == '/' &&
                 path.back() != '/';
  for (size_t i = 1; is_good && i < path.size(); ++i) {
    const char c = path[i];
    is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9') || c == '_' || c == '-' ||
              (c == '/' && path[i - 1] != '/');
  }
  if (is_good && !path.starts_with("/zookeeper")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::string_view(path.data(), path.size()),
      "\" is no path for znodes. Write one such as /alpheus: parts of letters, "
      "digits, - and _, each after a /, and not below /zookeeper"));
}

absl::StatusOr<ClusterConfiguration> MakeClusterConfiguration(
    ClusterOptions options) {
  if (options.cluster_id.is_zero()) {
    return absl::InvalidArgumentError(
        "cluster id is zero, which names no cluster. Draw a random one");
  }
  if (options.configuration_id == 0) {
    return absl::InvalidArgumentError(
        "configuration id is 0; the first one is 1, each change adds 1");
  }
  ClusterConfiguration cluster;
  // Checks the sizes first: they bound the number of members.
  ALPHEUS_ASSIGN_OR_RETURN(
      cluster.sizes,
      MakeQuorumSizes(static_cast<uint32_t>(options.members.size()),
                      options.write_quorum, options.read_quorum));
  ALPHEUS_RETURN_IF_ERROR(CheckMembers(options.members));
  if (std::none_of(options.members.begin(), options.members.end(),
                   [](const ClusterMember& m) { return m.may_be_primary; })) {
    return absl::InvalidArgumentError(
        "no member may be primary, so nobody could ever open the log. Set "
        "may_be_primary for at least one");
  }
  cluster.cluster_id = options.cluster_id;
  cluster.id = options.configuration_id;
  cluster.fabric = options.fabric;
  cluster.key_file = std::move(options.key_file);
  cluster.insecure_without_key = options.insecure_without_key;
  cluster.zookeeper = std::move(options.zookeeper);
  cluster.members = std::move(options.members);
  std::sort(cluster.members.begin(), cluster.members.end(),
            [](const ClusterMember& a, const ClusterMember& b) {
              return a.node < b.node;
            });
  return cluster;
}

absl::StatusOr<Configuration> PersistedConfiguration(
    const ClusterConfiguration& cluster, std::span<const Member> formatted) {
  if (formatted.size() != cluster.members.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        formatted.size(), " formatted replicas for ", cluster.members.size(),
        " members. There must be one for each"));
  }
  Configuration configuration;
  configuration.id = cluster.id;
  configuration.replica_count = cluster.sizes.replica_count;
  configuration.write_quorum = cluster.sizes.write_quorum;
  for (const ClusterMember& member : cluster.members) {
    ALPHEUS_ASSIGN_OR_RETURN(const Member found,
                             FindFormatted(formatted, member.node));
    configuration.members.push_back(found);
  }
  ALPHEUS_RETURN_IF_ERROR(CheckIncarnations(configuration.members));
  return configuration;
}

absl::Status CheckPeerConfiguration(const Configuration& own,
                                    const Configuration& peer) {
  if (own == peer) return absl::OkStatus();
  if (own.id == peer.id) {
    return absl::InvalidArgumentError(absl::StrCat(
        "two configurations with id ", own.id,
        " differ: here N = ", own.replica_count, ", W = ", own.write_quorum,
        ", at the peer N = ", peer.replica_count, ", W = ", peer.write_quorum,
        ", or other members. Give all nodes one cluster file"));
  }
  if (own.id < peer.id) {
    return absl::FailedPreconditionError(absl::StrCat(
        "configuration ", own.id, " of this node is older than ", peer.id,
        " of the peer. Bring this node up to date before it takes part"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "configuration ", peer.id, " of the peer is older than ", own.id,
      " of this node. Bring the peer up to date before it takes part"));
}

}  // namespace alpheus::quorum
