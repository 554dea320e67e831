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
  cluster.encryption = std::move(options.encryption);
  cluster.members = std::move(options.members);
  std::sort(cluster.members.begin(), cluster.members.end(),
            [](const ClusterMember& a, const ClusterMember& b) {
              return a.node < b.node;
            });
  return cluster;
}

}  // namespace alpheus::quorum
