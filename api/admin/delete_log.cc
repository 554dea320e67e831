// SPDX-License-Identifier: Apache-2.0
#include "api/admin/delete_log.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"
#include "api/wiring/adapter.h"
#include "api/wiring/fabric_pump.h"
#include "api/wiring/membership.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/configuration.h"
#include "quorum/members/log_id.h"
#include "recovery/deletion/log_deletion.h"

namespace alpheus {
namespace {

using quorum::ClusterConfiguration;
using recovery::LogDeletion;

constexpr uint64_t kBackOffNanosMax = 200'000'000;
constexpr int64_t kBallotLookNanos = 10'000'000;

absl::Status CheckMayDelete(const DeleteLogOptions& options,
                            const ClusterConfiguration& cluster) {
  if (!cluster.encryption || options.as_node == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "log ", options.log_name, ": node ", options.as_node,
      " can't delete it: this cluster encrypts, and members delete by an "
      "operator's certificate only, not by a node's. Nothing was done; use "
      "`alpheus delete-log` with the operator's certificate"));
}

// Drives the deletion, and the source of its ballots.
class Driven {
 public:
  Driven(LogDeletion& deletion, quorum::Membership& ballots)
      : deletion_(deletion), ballots_(ballots) {}

  void OnConnectionEvent(const fabric::ConnectionEvent& event) {
    deletion_.OnConnectionEvent(event);
  }
  void OnCompletion(const fabric::Completion& completion) {
    deletion_.OnCompletion(completion);
  }
  Polled Poll() {
    ballots_.Poll();
    return deletion_.Poll();
  }
  Deadline NextPoll() const {
    const Deadline own = deletion_.NextPoll();
    const Deadline of_ballots = ballots_.NextPoll();
    return of_ballots.at_nanos() < own.at_nanos() ? of_ballots : own;
  }

 private:
  LogDeletion& deletion_;
  quorum::Membership& ballots_;
};

recovery::LogDeletionOptions DeletionOf(const DeleteLogOptions& options,
                                        const ClusterConfiguration& cluster,
                                        NodeId self, RandomSource& random) {
  recovery::LogDeletionOptions deletion;
  deletion.cluster_id = cluster.cluster_id;
  deletion.log_id = quorum::LogIdOf(cluster.cluster_id, options.log_name);
  deletion.self = {self, random.Next() | 1};
  deletion.sizes = cluster.sizes;
  deletion.configuration_id = cluster.id;
  for (const quorum::ClusterMember& member : cluster.members) {
    deletion.peers.push_back({member.node, member.address.ToString()});
  }
  deletion.deadline =
      Deadline::In(std::chrono::milliseconds(options.timeout_ms));
  deletion.key = cluster.key;
  return deletion;
}

std::vector<uint64_t> NumbersOf(const std::vector<NodeId>& nodes) {
  std::vector<uint64_t> numbers;
  for (const NodeId node : nodes) numbers.push_back(node.value);
  return numbers;
}

// Names the log as people do.
absl::Status Spelled(const absl::Status& status, const std::string& log_name) {
  return {status.code(),
          absl::StrCat("log ", log_name, ": ", status.message())};
}

}  // namespace

absl::StatusOr<DeletedLog> DeleteLog(const DeleteLogOptions& options) {
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log_name));
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  ALPHEUS_RETURN_IF_ERROR(CheckMayDelete(options, cluster));
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<Connectivity> connectivity,
      Connectivity::Open(cluster, NodeId(options.as_node)));
  // A ballot has a node in it; BA4 (ballot.h) keeps processes apart.
  const NodeId self = options.as_node == 0 ? cluster.members.front().node
                                           : NodeId(options.as_node);
  recovery::LogDeletionOptions deletion =
      DeletionOf(options, cluster, self, connectivity->random);
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<quorum::Membership> ballots,
                           OpenMembership(cluster,
                                          {.log_name = options.log_name,
                                           .self = deletion.self,
                                           .look_ns = kBallotLookNanos},
                                          connectivity->random));
  FabricPump pump(*connectivity->fabric);
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const std::unique_ptr<LogDeletion> tried,
        LogDeletion::Start(*connectivity->fabric, Clock::Real(),
                           connectivity->random, *ballots, deletion));
    Driven driven(*tried, *ballots);
    pump.RunUntilDone(driven);
    if (tried->status().ok()) {
      return DeletedLog{NumbersOf(tried->removed()), NumbersOf(tried->left())};
    }
    deletion.above = std::max(deletion.above, tried->refused_by());
    const int64_t now = Clock::Real().NowNanos();
    const bool is_last = !absl::IsUnavailable(tried->status()) ||
                         deletion.deadline.HasPassed(now);
    if (is_last) return Spelled(tried->status(), options.log_name);
    pump.DropUntil(Deadline::AtNanos(
        now +
        static_cast<int64_t>(connectivity->random.Next() % kBackOffNanosMax)));
  }
}

}  // namespace alpheus
