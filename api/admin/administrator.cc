// SPDX-License-Identifier: Apache-2.0
#include "api/admin/administrator.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/options.h"
#include "api/admin/change_members.h"
#include "api/admin/instruct_candidates.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/configuration.h"
#include "recovery/protocol/messages.h"

namespace alpheus {
namespace {

using quorum::ClusterConfiguration;

// Checks ORD1 and ORD2. Both lists are as their texts have them, before names
// of files and hosts are followed.
absl::Status CheckSecrets(const std::string& place,
                          const ClusterConfiguration& given,
                          const ClusterConfiguration& own) {
  const auto refuse = [&place](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, ": ", what,
        ". A change of the members through a node keeps it; for another one "
        "use `alpheus reconfigure`. Nothing was changed"));
  };
  if (given.key_file != own.key_file) {
    return refuse(absl::StrCat("key_file is \"", given.key_file,
                               "\", and that of this node's list is \"",
                               own.key_file, "\""));
  }
  if (given.insecure_without_key != own.insecure_without_key) {
    return refuse("insecure_without_key is not as in this node's list");
  }
  if (given.zookeeper != own.zookeeper) {
    return refuse("[zookeeper] is not as in this node's list");
  }
  if (given.encryption != own.encryption) {
    return refuse("[encryption] is not as in this node's list");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrimaryReport> ClusterAdministrator::Elect(
    const std::string& log, uint64_t node, const OrderBounds& bounds) {
  return InstructCandidates(
      {cluster_file_, log, node, bounds.timeout_ms, node_, bounds.gives_up},
      recovery::InstructionKind::kElect);
}

absl::StatusOr<PrimaryReport> ClusterAdministrator::Drain(
    const std::string& log, uint64_t node, const OrderBounds& bounds) {
  return InstructCandidates(
      {cluster_file_, log, node, bounds.timeout_ms, node_, bounds.gives_up},
      recovery::InstructionKind::kDrain);
}

absl::StatusOr<std::vector<ScrubResult>> ClusterAdministrator::Scrub(
    const std::string& log, uint64_t node, const OrderBounds& bounds) {
  ClusterScrubOptions options;
  options.cluster_file = cluster_file_;
  options.log_name = log;
  options.node = node;
  options.as_node = node_;
  options.timeout_ms = std::min(options.timeout_ms, bounds.timeout_ms);
  const Deadline end =
      Deadline::In(std::chrono::milliseconds(bounds.timeout_ms));
  options.gives_up = [&] {
    return end.HasPassed(Clock::Real().NowNanos()) ||
           (bounds.gives_up && bounds.gives_up());
  };
  return ScrubCluster(options);
}

absl::StatusOr<RecoveryReport> ClusterAdministrator::Replace(
    const std::string& log, const std::vector<uint64_t>& nodes,
    const OrderBounds& bounds) {
  ChangeMembersOptions options;
  options.cluster_file = cluster_file_;
  options.replaced = nodes;
  options.log_name = log;
  options.timeout_ms = bounds.timeout_ms;
  options.as_node = node_;
  return ChangeLogMembers(options);
}

absl::StatusOr<RecoveryReport> ClusterAdministrator::Reconfigure(
    const std::string& log, const std::string& text,
    const OrderBounds& bounds) {
  ChangeMembersOptions options;
  options.previous_cluster_file = cluster_file_;
  // Beside the node's own, for the files that both name.
  options.cluster_file = absl::StrCat(cluster_file_, " (the new list)");
  options.log_name = log;
  options.timeout_ms = bounds.timeout_ms;
  options.as_node = node_;
  if (text.size() > quorum::kClusterFileBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.cluster_file, ": has ", text.size(),
                     " bytes; no cluster file has more than ",
                     quorum::kClusterFileBytesMax));
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      const ClusterConfiguration given,
      quorum::ParseClusterFile(text, options.cluster_file));
  ALPHEUS_ASSIGN_OR_RETURN(const std::string own_text,
                           quorum::ReadClusterText(cluster_file_));
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration own,
                           quorum::ParseClusterFile(own_text, cluster_file_));
  ALPHEUS_RETURN_IF_ERROR(CheckSecrets(options.cluster_file, given, own));
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration from,
                           quorum::LoadClusterText(own_text, cluster_file_));
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration to,
                           quorum::LoadClusterText(text, options.cluster_file));
  return ChangeLogMembers(options, from, to);
}

absl::StatusOr<Uuid> ClusterAdministrator::CreateLog(
    const std::string& log, uint64_t region_bytes, const OrderBounds& bounds) {
  FormatOptions options;
  options.cluster_file = cluster_file_;
  options.log_name = log;
  options.region_bytes = region_bytes;
  options.timeout_ms = bounds.timeout_ms;
  options.as_node = node_;
  return Log::Format(options);
}

absl::StatusOr<DeletedLog> ClusterAdministrator::DeleteLog(
    const std::string& log, const OrderBounds& bounds) {
  DeleteLogOptions options;
  options.cluster_file = cluster_file_;
  options.log_name = log;
  options.timeout_ms = bounds.timeout_ms;
  options.as_node = node_;
  return ::alpheus::DeleteLog(options);
}

}  // namespace alpheus
