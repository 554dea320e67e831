// SPDX-License-Identifier: Apache-2.0
// In place of zookeeper_client.cc where ZooKeeper's C client is missing.
#include "quorum/membership/zookeeper/zookeeper_client.h"

namespace alpheus::quorum {

bool HasZookeeperClient() { return false; }

absl::StatusOr<std::unique_ptr<Znodes>> OpenZookeeper(
    const ZookeeperService& /*service*/, const Clock& /*clock*/) {
  return absl::UnimplementedError(
      "this program was built without a client of ZooKeeper. Install "
      "libzookeeper-st-dev and build it again, or write membership = "
      "\"static\" into the cluster file");
}

}  // namespace alpheus::quorum
