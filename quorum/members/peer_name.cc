// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/peer_name.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "log/base/status_macros.h"
#include "quorum/members/uuid_text.h"

namespace alpheus::quorum {
namespace {

constexpr uint64_t kNodeMax = 65'535;

std::string Describe(NodeId node) {
  return node == NodeId(0) ? "an operator" : absl::StrCat("node ", node.value);
}

absl::StatusOr<PeerName> PeerOfCluster(std::string_view uri, Uuid cluster_id) {
  ALPHEUS_ASSIGN_OR_RETURN(const PeerName name, ParsePeerName(uri));
  if (name.cluster_id == cluster_id) return name;
  return absl::PermissionDeniedError(absl::StrCat(
      "its certificate is of another cluster, ", name.cluster_id.ToString(),
      ", not ", cluster_id.ToString()));
}

}  // namespace

absl::StatusOr<PeerName> ParsePeerName(std::string_view uri) {
  const auto bad = [uri] {
    return absl::InvalidArgumentError(absl::StrCat(
        "the certificate's name \"", absl::string_view(uri.data(), uri.size()),
        "\" is none of a cluster. Expected alpheus://CLUSTER_ID/node/NUMBER, "
        "or "
        "alpheus://CLUSTER_ID/operator"));
  };
  absl::string_view rest(uri.data(), uri.size());
  if (!absl::ConsumePrefix(&rest, "alpheus://")) return bad();
  const size_t slash = rest.find('/');
  if (slash == absl::string_view::npos) return bad();
  const std::optional<Uuid> cluster = ParseUuid({rest.data(), slash});
  if (!cluster || cluster->is_zero()) return bad();
  rest.remove_prefix(slash + 1);
  if (rest == "operator") return PeerName{*cluster, NodeId(0)};
  uint64_t node = 0;
  const bool is_node = absl::ConsumePrefix(&rest, "node/") &&
                       absl::SimpleAtoi(rest, &node) && node > 0 &&
                       node <= kNodeMax && rest == absl::StrCat(node);
  if (!is_node) return bad();
  return PeerName{*cluster, NodeId(node)};
}

absl::Status CheckIsOfCluster(std::string_view uri, Uuid cluster_id) {
  if (uri.empty()) return absl::OkStatus();
  return PeerOfCluster(uri, cluster_id).status();
}

absl::Status CheckIsNode(std::string_view uri, Uuid cluster_id, NodeId node) {
  if (uri.empty()) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const PeerName name, PeerOfCluster(uri, cluster_id));
  if (name.node == node) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "its certificate is that of ", Describe(name.node), ", not of ",
      Describe(node),
      ". Put each node's own certificate in place, or correct the addresses of "
      "the cluster"));
}

absl::Status CheckIsOperator(std::string_view uri, Uuid cluster_id) {
  if (uri.empty()) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const PeerName name, PeerOfCluster(uri, cluster_id));
  if (name.is_operator()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("its certificate is that of ", Describe(name.node),
                   ", and only an operator may do this"));
}

absl::Status CheckActsAs(std::string_view uri, Uuid cluster_id, NodeId node) {
  if (uri.empty()) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const PeerName name, PeerOfCluster(uri, cluster_id));
  if (name.is_operator() || name.node == node) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("its certificate is that of ", Describe(name.node),
                   ", and it acts as ", Describe(node)));
}

}  // namespace alpheus::quorum
