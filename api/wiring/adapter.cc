// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/adapter.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/wiring/node_tls.h"
#include "api/wiring/shared_adapters.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/log_group.h"
#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/socket_exchange.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/verbs/adapter_choice.h"
#include "replication/fabric/verbs/verbs_fabric.h"

namespace alpheus {
namespace {

// Time to find the route to an address. On the same network it takes
// microseconds, or three requests of the kernel for its host.
constexpr int kResolveMs = 2'000;

absl::StatusOr<std::string> ChooseSource(
    const quorum::ClusterConfiguration& cluster, NodeId near) {
  std::vector<std::string> addresses;
  for (const quorum::ClusterMember& member : cluster.members) {
    addresses.insert(member.node == near ? addresses.begin() : addresses.end(),
                     member.address.ToString());
  }
  absl::Status why;
  for (const std::string& address : addresses) {
    absl::StatusOr<std::string> host =
        fabric::verbs::SourceHostTowards(address, kResolveMs);
    if (host.ok()) return host;
    if (why.ok()) why = host.status();
  }
  return why;
}

int64_t PatienceOf(const AdapterOptions& options, int64_t of_the_fabric) {
  return std::max(of_the_fabric, int64_t{options.patience_ms} * 1'000'000);
}

}  // namespace

absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenAdapter(
    const quorum::ClusterConfiguration& cluster, NodeId near,
    RandomSource& random, const AdapterOptions& options) {
  if (cluster.fabric == quorum::ClusterFabric::kTcp) {
    fabric::tcp::TcpFabricOptions tcp;
    tcp.shares_sockets = true;
    static_assert(recovery::kLogGroups == fabric::tcp::kGroups);
    tcp.group_of = recovery::GroupOfHello;
    tcp.exchange = options.exchange;
    tcp.adapter = options.number;
    tcp.warn = options.say;
    tcp.on_rejected = options.on_rejected;
    tcp.anonymous_max = options.unopened_max;
    tcp.limits.retry_ns = PatienceOf(options, tcp.limits.retry_ns);
    if (cluster.encryption) {
      std::shared_ptr<NodeTls> tls = options.tls;
      if (tls == nullptr) {
        ALPHEUS_ASSIGN_OR_RETURN(
            tls, NodeTls::Load(*cluster.encryption, cluster.cluster_id, near,
                               options.say));
      }
      tcp.tls = [tls] { return tls->Current(); };
    }
    return std::make_unique<fabric::tcp::TcpFabric>(tcp, Clock::Real(), random);
  }
  fabric::verbs::VerbsFabricOptions verbs;
  verbs.anonymous_max = options.unopened_max;
  verbs.limits.retry_ns = PatienceOf(options, verbs.limits.retry_ns);
  ALPHEUS_ASSIGN_OR_RETURN(verbs.source_host, ChooseSource(cluster, near));
  ALPHEUS_ASSIGN_OR_RETURN(
      std::unique_ptr<fabric::verbs::VerbsFabric> fabric,
      fabric::verbs::VerbsFabric::Open(verbs, Clock::Real(), random));
  if (options.say != nullptr) {
    options.say(absl::StrCat("fabric: verbs, adapter ", fabric->device(),
                             ", from ", verbs.source_host));
  }
  return fabric;
}

absl::Status CheckIsOfThisMachine(const std::string& address) {
  // An RDMA adapter listens at the address of a network interface too.
  return fabric::tcp::CheckIsOfThisMachine(address);
}

absl::StatusOr<std::unique_ptr<Connectivity>> Connectivity::Open(
    const quorum::ClusterConfiguration& cluster, NodeId near,
    Audience::Say say) {
  auto made = std::make_unique<Connectivity>();
  if (cluster.fabric == quorum::ClusterFabric::kTcp) {
    ALPHEUS_ASSIGN_OR_RETURN(
        SharedAdapters::Share share,
        SharedAdapters::OfProcess().AddShare(cluster, near, std::move(say)));
    made->fabric = std::move(share.fabric);
    made->seat = std::move(share.seat);
  } else {
    ALPHEUS_ASSIGN_OR_RETURN(
        made->fabric,
        OpenAdapter(cluster, near, made->random, {.say = std::move(say)}));
  }
  return made;
}

}  // namespace alpheus
