// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/fabric_pair.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/rdma_hosts.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/verbs/verbs_fabric.h"

namespace alpheus::bench::remotelog {
namespace {

constexpr uint64_t kClientsMax = 8;
constexpr uint64_t kMemoryBytes = kClientsMax * kClientBytes;

absl::StatusOr<Region> OpenMemory(const std::string& path) {
  if (path.empty()) return Region::Anonymous(kMemoryBytes);
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::OpenForWriting(path));
  if (region.medium() == RegionMedium::kPersistentMemory &&
      region.bytes().size() >= kMemoryBytes) {
    return region;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": medium ", RegionMediumName(region.medium()), ", ",
      region.bytes().size(), " bytes; the server's log needs ", kMemoryBytes,
      " bytes of persistent memory, or none is named"));
}

absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenVerbs(
    const std::string& host, RandomSource& random) {
  fabric::verbs::VerbsFabricOptions options;
  options.source_host = host;
  return fabric::verbs::VerbsFabric::Open(options, Clock::Real(), random);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FabricPair>> FabricPair::OverTcp(
    const std::string& memory) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, OpenMemory(memory));
  std::unique_ptr<FabricPair> made(
      new FabricPair(std::move(region), "127.0.0.1:0"));
  for (auto* fabric : {&made->client_, &made->server_}) {
    *fabric = std::make_unique<fabric::tcp::TcpFabric>(
        fabric::tcp::TcpFabricOptions(), Clock::Real(), made->random_);
  }
  return made;
}

absl::StatusOr<std::unique_ptr<FabricPair>> FabricPair::OverVerbs(
    const std::string& memory) {
  const std::vector<std::string> hosts = replicated::RdmaHosts();
  if (hosts.size() < 2) {
    return absl::UnavailableError(
        "ALPHEUS_VERBS_ADDRESSES names no two addresses of adapters with RDMA; "
        "`tools/dev vm-test remotelog` runs it in a guest");
  }
  ALPHEUS_ASSIGN_OR_RETURN(Region region, OpenMemory(memory));
  std::unique_ptr<FabricPair> made(
      new FabricPair(std::move(region), absl::StrCat(hosts[1], ":0")));
  ALPHEUS_ASSIGN_OR_RETURN(made->client_, OpenVerbs(hosts[0], made->random_));
  ALPHEUS_ASSIGN_OR_RETURN(made->server_, OpenVerbs(hosts[1], made->random_));
  return made;
}

FabricTransport::Ends FabricPair::Ends(uint64_t warm_up) {
  return {.client = *client_,
          .server = *server_,
          .clock = Clock::Real(),
          .listen_address = listen_address_,
          .memory = region_.bytes().first(kMemoryBytes),
          .is_pmem = region_.medium() == RegionMedium::kPersistentMemory,
          .warm_up = warm_up};
}

}  // namespace alpheus::bench::remotelog
