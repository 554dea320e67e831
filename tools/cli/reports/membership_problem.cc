// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/reports/membership_problem.h"

#include <poll.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "api/wiring/membership.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/membership/membership.h"

namespace alpheus::cli {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;

}  // namespace

absl::StatusOr<std::string> MembershipProblem(const LogSource& source,
                                              uint32_t timeout_ms) {
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::ClusterConfiguration cluster,
                           quorum::LoadClusterFile(source.cluster));
  if (!cluster.zookeeper) return "";
  // It stands for nothing, so any member's number will do.
  EntropyRandom random;
  MembershipOptions options;
  options.log_name = source.log;
  options.self = {cluster.members.front().node, random.Next() | 1};
  options.observes = true;
  const absl::StatusOr<std::unique_ptr<quorum::Membership>> membership =
      OpenMembership(cluster, options, random);
  if (!membership.ok()) {
    return absl::StrCat("ZooKeeper: ", membership.status().message());
  }
  const int64_t end =
      Clock::Real().NowNanos() + int64_t{timeout_ms} * kNanosPerMilli;
  for (;;) {
    (*membership)->Poll();
    const absl::Status problem = (*membership)->problem();
    if (!problem.ok()) return absl::StrCat("ZooKeeper: ", problem.message());
    // A session alone says nothing of rights, and of who made what is there.
    if ((*membership)->is_settled()) return "";
    if (Clock::Real().NowNanos() >= end) {
      const quorum::SessionState state = (*membership)->session().state;
      // Lists that change all the time are never settled.
      if (state == quorum::SessionState::kConnected) return "";
      return absl::StrCat(
          "ZooKeeper did not answer within ", timeout_ms,
          " ms. The log goes on without it, and clients do not learn who is "
          "primary. Is it running, and can it be reached?");
    }
    constexpr int kWaitMillis = 5;
    pollfd ready = {(*membership)->descriptor(), POLLIN, 0};
    (void)::poll(&ready, 1, kWaitMillis);
  }
}

}  // namespace alpheus::cli
