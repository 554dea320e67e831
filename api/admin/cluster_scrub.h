// SPDX-License-Identifier: Apache-2.0
// cluster_scrub: has the nodes of a cluster scrub their replicas of one log,
// and waits for what they find: what `alpheus scrub` runs.
//
// Idea: each node is asked to begin, all at once, and then how far it is, until
// it has ended a pass that began after that (recovery/scrub/scrubbing.h). Nodes
// do it whether somebody waits or not.
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

struct ReplicaScrub {
  uint64_t node = 0;
  std::string address;
  // OK, or why it did not end, as of ReplicaReading. DataLoss: damage remains.
  absl::Status status;
  Scrubbed said;  // last, if it said anything
};

struct ClusterScrubOptions {
  std::string cluster_file = {};
  std::string log_name = "main";
  uint64_t node = 0;  // only the replica of this node; 0: all
  // A node that says nothing for so long is given up; it goes on by itself.
  uint32_t timeout_ms = 5'000;
  // Between two questions.
  uint32_t interval_ms = 50;
  // Is told whenever a node has said how far it is.
  std::function<void(const ReplicaScrub&)> progress = {};
};

// One for each replica, in the order of the cluster file. Errors: as
// LoadClusterFile and CheckLogName; NotFound (no such node).
absl::StatusOr<std::vector<ReplicaScrub>> ScrubCluster(
    const ClusterScrubOptions& options);

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_CLUSTER_SCRUB_H_
