// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/membership.h"

#include <utility>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "quorum/membership/static_membership.h"
#include "quorum/membership/zookeeper/znode_membership.h"
#include "quorum/membership/zookeeper/zookeeper_client.h"

namespace alpheus {

absl::StatusOr<std::unique_ptr<quorum::Membership>> OpenMembership(
    const quorum::ClusterConfiguration& cluster,
    const MembershipOptions& options, RandomSource& random) {
  if (!cluster.zookeeper || cluster.zookeeper->servers.empty()) {
    const absl::Status problem =
        cluster.zookeeper ? absl::UnavailableError(cluster.zookeeper->warning)
                          : absl::OkStatus();
    ALPHEUS_ASSIGN_OR_RETURN(
        quorum::StaticMembership membership,
        quorum::StaticMembership::Make(options.self, problem));
    return std::make_unique<quorum::StaticMembership>(std::move(membership));
  }
  quorum::ZnodeMembershipOptions by_znodes;
  by_znodes.self = options.self;
  by_znodes.path = cluster.zookeeper->path;
  by_znodes.cluster_id = cluster.cluster_id;
  by_znodes.log_name = options.log_name;
  by_znodes.warning = cluster.zookeeper->warning;
  by_znodes.observes = options.observes;
  by_znodes.look_ns = options.look_ns;
  by_znodes.register_patience_ns = options.register_patience_ns;
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<quorum::ZnodeMembership> membership,
                           quorum::ZnodeMembership::Start(
                               [service = *cluster.zookeeper] {
                                 return quorum::OpenZookeeper(service,
                                                              Clock::Real());
                               },
                               Clock::Real(), random, by_znodes));
  return membership;
}

}  // namespace alpheus
