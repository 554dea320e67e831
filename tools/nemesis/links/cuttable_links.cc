// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/links/cuttable_links.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::demo {

absl::StatusOr<std::unique_ptr<CuttableLinks>> CuttableLinks::Make(
    const Cluster& cluster, const std::string& name) {
  std::unique_ptr<CuttableLinks> links(new CuttableLinks());
  std::vector<std::string> addresses;
  for (int node = 1; node <= cluster.node_count(); ++node) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<CuttingProxy> link,
                             CuttingProxy::Start(cluster.address(node)));
    addresses.push_back(link->address());
    links->links_.push_back(std::move(link));
  }
  std::vector<std::string> zookeeper;
  for (const std::string& server : cluster.zookeeper()) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<CuttingProxy> link,
                             CuttingProxy::Start(server));
    zookeeper.push_back(link->address());
    links->zookeeper_links_.push_back(std::move(link));
  }
  links->cluster_file_ = absl::StrCat(cluster.file(), ".", name);
  ALPHEUS_RETURN_IF_ERROR(
      cluster.WriteFile(links->cluster_file_, addresses, zookeeper));
  return links;
}

void CuttableLinks::Cut(const std::vector<int>& nodes, CutDirection direction) {
  for (const int node : nodes) {
    links_[static_cast<size_t>(node) - 1]->Cut(direction);
  }
}

void CuttableLinks::CutZookeeper(CutDirection direction) {
  for (const auto& link : zookeeper_links_) link->Cut(direction);
}

void CuttableLinks::Heal() {
  for (const auto& link : links_) link->Heal();
  for (const auto& link : zookeeper_links_) link->Heal();
}

}  // namespace alpheus::demo
