// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/reports/membership_problem.h"

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/wiring/membership.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/configuration.h"
#include "quorum/membership/membership.h"

namespace alpheus::cli {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;

// Returns "ZooKeeper at 127.0.0.1:2181, 127.0.0.1:2182 (cluster.toml)".
std::string NameOf(const quorum::ZookeeperService& service,
                   const std::string& cluster_file) {
  std::vector<std::string> servers;
  for (const quorum::Address& server : service.servers) {
    servers.push_back(server.ToString());
  }
  return absl::StrCat("ZooKeeper at ", absl::StrJoin(servers, ", "), " (",
                      cluster_file, ")");
}

}  // namespace

absl::StatusOr<std::string> MembershipProblem(const LogSource& source,
                                              uint32_t timeout_ms) {
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::ClusterConfiguration cluster,
                           quorum::LoadClusterFile(source.cluster));
  if (!cluster.zookeeper) return "";
  const std::string name = NameOf(*cluster.zookeeper, source.cluster);
  // It stands for nothing, so any member's number will do.
  EntropyRandom random;
  MembershipOptions options;
  options.log_name = source.log;
  options.self = {cluster.members.front().node, random.Next() | 1};
  options.observes = true;
  const absl::StatusOr<std::unique_ptr<quorum::Membership>> membership =
      OpenMembership(cluster, options, random);
  if (!membership.ok()) {
    return absl::StrCat(name, ": ", membership.status().message());
  }
  const int64_t end =
      Clock::Real().NowNanos() + int64_t{timeout_ms} * kNanosPerMilli;
  for (;;) {
    (*membership)->Poll();
    const absl::Status problem = (*membership)->problem();
    if (!problem.ok()) return absl::StrCat(name, ": ", problem.message());
    // A session alone says nothing of rights, and of who made what is there.
    if ((*membership)->is_settled()) return "";
    if (Clock::Real().NowNanos() >= end) {
      const quorum::SessionState state = (*membership)->session().state;
      // Lists that change all the time are never settled.
      if (state == quorum::SessionState::kConnected) return "";
      return absl::StrCat(
          name, " did not answer within ", timeout_ms,
          " ms; expected a session. The log goes on without it, and clients do "
          "not learn who is primary. Start it, or correct `servers`");
    }
    constexpr int kWaitMillis = 5;
    pollfd ready = {(*membership)->descriptor(), POLLIN, 0};
    (void)::poll(&ready, 1, kWaitMillis);
  }
}

}  // namespace alpheus::cli
