// SPDX-License-Identifier: Apache-2.0
// cluster_scrub: makes the nodes of a cluster scrub their replicas of one log,
// and collects their findings: the core of `alpheus scrub`.
//
// Idea: all nodes are asked to begin at once. Then each is asked for its
// progress until it has ended a pass that began after the first question
// (recovery/scrub/scrubbing.h). Nodes scrub whether a client waits or not.
//
// Thread safety: one thread.
// References: docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_API_ADMIN_CLUSTER_SCRUB_H_
#define ALPHEUS_API_ADMIN_CLUSTER_SCRUB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

struct ScrubResult {
  uint64_t node = 0;
  std::string address;
  // OK, or the reason why it did not end, as in ReplicaReading. DataLoss:
  // damage remains.
  absl::Status status;
  recovery::Scrubbed said;  // last report, if any
};

struct ClusterScrubOptions {
  std::string cluster_file = {};
  std::string log_name = "main";
  uint64_t node = 0;  // only the replica of this node; 0: all
  // Time without a reply after which a node is given up, in milliseconds; the
  // node continues by itself.
  uint32_t timeout_ms = 5'000;
  // Node for which this process asks, by its certificate, if the cluster
  // encrypts ([encryption] of the cluster file); 0: an operator.
  uint64_t as_node = 0;
  // Time between two questions, in milliseconds.
  uint32_t interval_ms = 50;
  // Called whenever a node has reported its progress.
  std::function<void(const ScrubResult&)> progress = {};
  // Asked after each interval by the calling thread. Once it returns true,
  // nodes that have not ended are waited for no more (Cancelled). They scrub on
  // by themselves.
  std::function<bool()> gives_up = {};
};

// Scrubs, and returns one entry per replica, in the order of the cluster file.
// Errors: as LoadClusterFile and CheckLogName; NotFound (no such node).
absl::StatusOr<std::vector<ScrubResult>> ScrubCluster(
    const ClusterScrubOptions& options);

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_CLUSTER_SCRUB_H_
