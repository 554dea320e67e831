// SPDX-License-Identifier: Apache-2.0
// cluster_demo: proves, for people to read, that a cluster of three nodes loses
// nothing that was acknowledged when the node that writes dies.
//
// Three nodes run on this machine. The primary, with its own replica on node 1,
// appends the lines of a file from several threads and is killed in mid-stream
// together with its node. Node 2 recovers the log and goes on; node 1 comes
// back; another epoch is opened on all. In the end each replica that this epoch
// was installed on is read by itself and compared with every acknowledgement,
// byte by byte (recovery_oracle.h).
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_DEMO_CLUSTER_DEMO_H_
#define ALPHEUS_TOOLS_DEMO_CLUSTER_DEMO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace alpheus::demo {

struct ClusterDemoOptions {
  std::string file;  // whose lines are fed
  uint64_t threads = 4;
  uint64_t seed = 0;
  std::string directory;  // where its own is made
  uint64_t region_bytes = 64 << 20;
};

// Prints what happens.
// Errors: DataLoss (something was violated; the message says what, and where
// the regions are kept); others: it could not even be tried.
absl::Status RunClusterDemo(const ClusterDemoOptions& options);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_DEMO_CLUSTER_DEMO_H_
