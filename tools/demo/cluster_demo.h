// SPDX-License-Identifier: Apache-2.0
// cluster_demo: proves, for people to read, that a cluster of three nodes
// replaces its primary without an operator, and loses nothing that was
// acknowledged.
//
// Three nodes run on this machine, with ZooKeeper where that is installed. On
// each a program stands for primary; the one that is elected appends the lines
// of a file from several threads. It is killed in mid-stream together with its
// node, and another one goes on; the node comes back. Then an operator drains
// the primary, and elects one. At the end each replica of the last epoch is
// read alone and compared with every acknowledgement, byte by byte
// (recovery_oracle.h).
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_DEMO_CLUSTER_DEMO_H_
#define ALPHEUS_TOOLS_DEMO_CLUSTER_DEMO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace alpheus::demo {

struct ClusterDemoOptions {
  std::string file;  // lines to feed
  uint64_t threads = 4;
  uint64_t seed = 0;
  std::string directory;  // parent of its own directory
  uint64_t region_bytes = 64 << 20;
};

// Runs the demonstration and prints its steps.
// Errors: DataLoss (a violation; the message names it, and the place of the
// regions); others: the demonstration could not run.
absl::Status RunClusterDemo(const ClusterDemoOptions& options);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_DEMO_CLUSTER_DEMO_H_
