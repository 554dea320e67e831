// SPDX-License-Identifier: Apache-2.0
// cuttable_links: links to the nodes of a cluster that can be cut, for those
// who use the cluster file that names them.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_CUTTABLE_LINKS_H_
#define ALPHEUS_TOOLS_NEMESIS_CUTTABLE_LINKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nemesis/cluster.h"
#include "tools/nemesis/cutting_proxy.h"

namespace alpheus::demo {

class CuttableLinks {
 public:
  // A link to each node, and a file beside the cluster's own that names them.
  // Errors: Unavailable (no port; the file can't be written).
  static absl::StatusOr<std::unique_ptr<CuttableLinks>> Make(
      const Cluster& cluster);

  const std::string& cluster_file() const { return cluster_file_; }
  // The others are as before.
  void Cut(const std::vector<int>& nodes, CutDirection direction);
  // All of them.
  void Heal();

 private:
  CuttableLinks() = default;

  std::string cluster_file_;
  std::vector<std::unique_ptr<CuttingProxy>> links_;  // to node i + 1
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_CUTTABLE_LINKS_H_
