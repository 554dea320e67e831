// SPDX-License-Identifier: Apache-2.0
// adapter: opens the fabric that a cluster's file names.
//
// Idea: the cluster's file names the kind of fabric. The RDMA adapter is found
// without being named: it has the address of this process's member, or reaches
// the first member that can be reached.
//
// Thread safety: pure, except for questions to the system; may block for some
// seconds while it looks for a route to members.
#ifndef ALPHEUS_API_WIRING_ADAPTER_H_
#define ALPHEUS_API_WIRING_ADAPTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/wiring/audience.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/members/configuration.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

class NodeTls;
namespace fabric::tcp {
class SocketExchange;
}  // namespace fabric::tcp

struct AdapterOptions {
  // Sink for events that an operator may want to know, one sentence each.
  std::function<void(const std::string&)> say = nullptr;
  // Called for each peer that the adapter ended by itself. `detail`: more about
  // kNotTrusted. Runs under the adapter's lock, so it must not call the
  // adapter.
  std::function<void(std::string_view peer, fabric::UnauthenticatedEnd why,
                     std::string_view detail)>
      on_rejected = nullptr;
  // Limit on connections that have sent nothing yet.
  uint32_t unopened_max = 64;
  // Milliseconds until a silent peer counts as gone, if that is longer than the
  // fabric's own time. A caller that gives up on peers by itself, later, sets
  // it.
  uint32_t patience_ms = 0;
  // Certificates of the adapter, in a cluster that encrypts. Null: OpenAdapter
  // loads them.
  std::shared_ptr<NodeTls> tls = nullptr;
  // Over TCP: the adapters of this process that share an address, and the
  // number of this one among them. Null: it is the only one.
  std::shared_ptr<fabric::tcp::SocketExchange> exchange = nullptr;
  uint32_t number = 0;
};

// Opens the adapter. `near`: the member of this process, if it is one; else
// NodeId(0). `random` must outlive the fabric.
// Errors for fabric = "verbs": NotFound (no RDMA adapter), Unavailable (none
// reaches a member; the adapter lacks a needed feature). Errors for a cluster
// that is encrypted: as NodeTls::Load (node_tls.h).
absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenAdapter(
    const quorum::ClusterConfiguration& cluster, NodeId near,
    RandomSource& random, const AdapterOptions& options = {});

// Checks that a node can listen there on this machine, as far as that is
// possible without taking the port. Errors: InvalidArgument, Unavailable.
absl::Status CheckIsOfThisMachine(const std::string& address);

// Type of OpenAdapter; tests use other functions.
using AdapterOpener = absl::StatusOr<std::unique_ptr<fabric::Fabric>> (*)(
    const quorum::ClusterConfiguration& cluster, NodeId near,
    RandomSource& random, const AdapterOptions& options);

// Adapter of one log, with a randomness.
struct Connectivity {
  EntropyRandom random;
  std::unique_ptr<fabric::Fabric> fabric;
  Audience::Seat seat;

  // `say` gets sentences for an operator. Over TCP, the logs of this process
  // share adapters (shared_adapters.h): then any thread that uses one of them
  // calls `say`. Errors: as OpenAdapter.
  static absl::StatusOr<std::unique_ptr<Connectivity>> Open(
      const quorum::ClusterConfiguration& cluster, NodeId near,
      Audience::Say say = nullptr);
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_ADAPTER_H_
