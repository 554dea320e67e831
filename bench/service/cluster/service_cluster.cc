// SPDX-License-Identifier: Apache-2.0
#include "bench/service/cluster/service_cluster.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "bench/service/grpc/service_calls.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {

using replicated::ClusterFolder;
using replicated::PeerProcess;

namespace {

constexpr std::chrono::milliseconds kServiceStartTimeout{30'000};
// The third replica joins in less.
constexpr std::chrono::milliseconds kJoinTime{500};
// A busy machine must not decide who is primary.
constexpr const char* kSilenceMs = "5000";

std::string DaemonPath() {
  std::error_code ignored;  // then the start fails
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (self.parent_path() / "alpheusd").string();
}

}  // namespace

double CoreMicrosOf(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return static_cast<double>(time.tv_sec) * 1e6 +
         static_cast<double>(time.tv_nsec) / 1e3;
}

absl::StatusOr<PeerProcess> StartDaemon(const std::string& folder,
                                        uint64_t node,
                                        const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "--cluster",   ClusterFolder::ClusterFile(folder),
      "--node",      absl::StrCat(node),
      "--directory", ClusterFolder::DirectoryOf(folder, node)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return PeerProcess::Start(DaemonPath(), std::move(arguments),
                            absl::StrCat(folder, "/node", node, ".txt"));
}

absl::StatusOr<std::unique_ptr<ServiceCluster>> ServiceCluster::Start(
    const std::string& parent, uint64_t ring_bytes, bool has_metrics) {
  ALPHEUS_ASSIGN_OR_RETURN(ClusterFolder folder,
                           ClusterFolder::Make({.parent = parent,
                                                .ring_bytes = ring_bytes,
                                                .nodes = kNodes,
                                                .write_quorum = kWriteQuorum}));
  std::unique_ptr<ServiceCluster> made(
      new ServiceCluster(std::move(folder), ring_bytes));
  ALPHEUS_RETURN_IF_ERROR(made->StartNodes(has_metrics));
  ALPHEUS_RETURN_IF_ERROR(AwaitReady(made->nodes_, kServiceStartTimeout,
                                     [&] { return made->FindPrimary(); }));
  std::this_thread::sleep_for(kJoinTime);
  std::rotate(
      made->addresses_.begin(),
      made->addresses_.begin() + static_cast<std::ptrdiff_t>(made->primary_),
      made->addresses_.end());
  return made;
}

absl::Status ServiceCluster::StartNodes(bool has_metrics) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<uint16_t> ports,
                           replicated::FreePorts(2 * kNodes));
  for (uint64_t node = 1; node <= kNodes; ++node) {
    addresses_.push_back(absl::StrCat("127.0.0.1:", ports[node - 1]));
    std::vector<std::string> more = {
        "--stand",      log_,       "--serve",          addresses_.back(),
        "--silence-ms", kSilenceMs, "--silence-ms-max", kSilenceMs};
    if (has_metrics) {
      metrics_addresses_.push_back(
          absl::StrCat("127.0.0.1:", ports[kNodes + node - 1]));
      more.insert(more.end(), {"--metrics", metrics_addresses_.back()});
    }
    ALPHEUS_ASSIGN_OR_RETURN(PeerProcess process,
                             StartDaemon(folder_.path(), node, more));
    nodes_.push_back(std::move(process));
  }
  return absl::OkStatus();
}

absl::Status ServiceCluster::FindPrimary() {
  for (size_t i = 0; i < addresses_.size(); ++i) {
    const auto is_primary = ServiceCalls(addresses_[i], log_).IsPrimary();
    if (!is_primary.ok() || !*is_primary) continue;
    primary_ = i;
    return absl::OkStatus();
  }
  return absl::UnavailableError("no node is primary");
}

std::pair<double, double> ServiceCluster::CoreMicros() const {
  double others = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (i != primary_) others += CoreMicrosOf(nodes_[i].pid());
  }
  return {CoreMicrosOf(primary()), others};
}

}  // namespace alpheus::bench::service
