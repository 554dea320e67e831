// SPDX-License-Identifier: Apache-2.0
// service_cluster: three nodes of alpheusd in processes of their own that stand
// for a log and serve it, over loopback.
//
// It uses the alpheusd that was built beside this program.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_SERVICE_CLUSTER_SERVICE_CLUSTER_H_
#define ALPHEUS_BENCH_SERVICE_CLUSTER_SERVICE_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/peers/peer_process.h"

namespace alpheus::bench::service {

inline constexpr int kNodes = 3;
inline constexpr int kWriteQuorum = 2;

// Returns the microseconds of cores that a process has taken so far; 0: it has
// ended.
double CoreMicrosOf(pid_t pid);

// Starts the node's daemon with further arguments. Errors: Unavailable.
absl::StatusOr<replicated::PeerProcess> StartDaemon(
    const std::string& folder, uint64_t node,
    const std::vector<std::string>& more = {});

class ServiceCluster {
 public:
  // Starts three nodes in a new folder below `parent`; returns when one of them
  // is primary, and serves the log. `has_metrics`: they show metrics. Errors:
  // Unavailable; DeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<ServiceCluster>> Start(
      const std::string& parent, uint64_t ring_bytes, bool has_metrics = false);

  // Returns where the nodes listen for clients, the primary first.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // Returns where the nodes show their metrics; none if they don't.
  const std::vector<std::string>& metrics_addresses() const {
    return metrics_addresses_;
  }
  const std::string& log() const { return log_; }
  uint64_t ring_bytes() const { return ring_bytes_; }
  pid_t primary() const { return nodes_[primary_].pid(); }
  // Returns the core time of the primary, and of the others together.
  std::pair<double, double> CoreMicros() const;

 private:
  ServiceCluster(replicated::ClusterFolder folder, uint64_t ring_bytes)
      : folder_(std::move(folder)), ring_bytes_(ring_bytes) {}

  absl::Status StartNodes(bool has_metrics);
  absl::Status FindPrimary();

  const replicated::ClusterFolder folder_;
  const uint64_t ring_bytes_;
  const std::string log_ = replicated::BenchLogName(0);
  std::vector<replicated::PeerProcess> nodes_;
  std::vector<std::string> addresses_;
  std::vector<std::string> metrics_addresses_;
  size_t primary_ = 0;
};

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_CLUSTER_SERVICE_CLUSTER_H_
