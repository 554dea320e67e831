// SPDX-License-Identifier: Apache-2.0
// cuttable_links: links to the nodes of a cluster, and to its servers of
// ZooKeeper, that can be cut, for programs that use the cluster file with these
// links.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_LINKS_CUTTABLE_LINKS_H_
#define ALPHEUS_TOOLS_NEMESIS_LINKS_CUTTABLE_LINKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nemesis/links/cutting_proxy.h"
#include "tools/nemesis/processes/cluster.h"

namespace alpheus::demo {

class CuttableLinks {
 public:
  // Makes a link to each node and server, and a file beside the cluster's own
  // that names them; `name` tells several such files apart.
  // Errors: Unavailable (no port; the file can't be written).
  static absl::StatusOr<std::unique_ptr<CuttableLinks>> Make(
      const Cluster& cluster, const std::string& name = "linked");

  const std::string& cluster_file() const { return cluster_file_; }
  // Cuts the links to these nodes; the others stay as they are.
  void Cut(const std::vector<int>& nodes, CutDirection direction);
  // Cuts the links to all servers of ZooKeeper.
  void CutZookeeper(CutDirection direction);
  // Heals all links.
  void Heal();

 private:
  CuttableLinks() = default;

  std::string cluster_file_;
  std::vector<std::unique_ptr<CuttingProxy>> links_;  // to node i + 1
  std::vector<std::unique_ptr<CuttingProxy>> zookeeper_links_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_LINKS_CUTTABLE_LINKS_H_
