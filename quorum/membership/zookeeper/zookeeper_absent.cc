// SPDX-License-Identifier: Apache-2.0
// In place of zookeeper_client.cc where ZooKeeper's C client is missing.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "quorum/membership/zookeeper/zookeeper_client.h"

namespace alpheus::quorum {

bool HasZookeeperClient() { return false; }

absl::StatusOr<std::unique_ptr<Znodes>> OpenZookeeper(
    const ZookeeperService& service, const Clock& /*clock*/) {
  const auto append = [](std::string* out, const Address& server) {
    out->append(server.ToString());
  };
  return absl::UnimplementedError(absl::StrCat(
      "the cluster file names ZooKeeper at ",
      absl::StrJoin(service.servers, ", ", append),
      ", and this program was built without a client of ZooKeeper. Install "
      "libzookeeper-st-dev and build it again, or write membership = "
      "\"static\" into that file"));
}

}  // namespace alpheus::quorum
