// SPDX-License-Identifier: Apache-2.0
// adapter: opens what a cluster's members are talked to with, as its file says.
//
// Idea: the cluster's file names the kind of fabric. Which adapter with RDMA it
// is need not be said: the one that has the address of this process's member,
// or from which the first member that can be is reached.
//
// Thread safety: pure but for what it asks the system; may block for some
// seconds while the way to members is looked for.
#ifndef ALPHEUS_API_WIRING_ADAPTER_H_
#define ALPHEUS_API_WIRING_ADAPTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/members/configuration.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

struct AdapterOptions {
  // Gets a sentence for what an operator may want to know.
  std::function<void(const std::string&)> tell = nullptr;
  // Is told of each peer that the adapter ended by itself. Runs under the
  // adapter's lock: it must not call the adapter.
  std::function<void(std::string_view peer, StrangerEnd why)> on_refused =
      nullptr;
  // Connections that have said nothing yet.
  uint32_t silent_max = 64;
};

// `near`: the member that this process is, if it is one; else NodeId(0).
// `random` must outlive the fabric.
// Errors: of fabric = "verbs": NotFound (no adapter with RDMA), Unavailable (no
// member is reached from one; the adapter lacks what it needs).
absl::StatusOr<std::unique_ptr<Fabric>> OpenAdapter(
    const ClusterConfiguration& cluster, NodeId near, RandomSource& random,
    const AdapterOptions& options = {});

// Whether a node can listen there on this machine, as far as that is known
// without its port, which is not taken. Errors: InvalidArgument, Unavailable.
absl::Status CheckIsOfThisMachine(const std::string& address);

// Its type; tests have nodes open others.
using AdapterOpener = absl::StatusOr<std::unique_ptr<Fabric>> (*)(
    const ClusterConfiguration& cluster, NodeId near, RandomSource& random,
    const AdapterOptions& options);

// An adapter with its randomness, in the order of their use.
struct Connectivity {
  EntropyRandom random;
  std::unique_ptr<Fabric> fabric;

  // Errors: as OpenAdapter.
  static absl::StatusOr<std::unique_ptr<Connectivity>> Open(
      const ClusterConfiguration& cluster, NodeId near);
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_ADAPTER_H_
