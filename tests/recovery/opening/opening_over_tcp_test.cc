// SPDX-License-Identifier: Apache-2.0
// Opening an epoch over the software adapter, where what is posted leaves with
// one of the next calls.
#include <sched.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "log/base/random.h"
#include "log/core/ring/format_region.h"
#include "log/format/layout.h"
#include "quorum/membership/static_membership.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/replica/local_replica.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "tests/support/fabrics/scripted_replica.h"
#include "tests/support/fixtures/log_harness.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {
namespace {

using Model = model::ModelPersistence;

constexpr Uuid kCluster{1, 2};
constexpr Uuid kLog{3, 4};

// Runs `before_scan` first.
class ScanningReplica final : public recovery::LocalOpenersReplica<Model> {
 public:
  ScanningReplica(recovery::LocalReplica<Model>& replica,
                  std::function<void()> before_scan)
      : LocalOpenersReplica(replica, /*fence=*/{}),
        before_scan_(std::move(before_scan)) {}

  absl::StatusOr<bool> Continue(uint64_t bytes_max) override {
    if (before_scan_) std::exchange(before_scan_, nullptr)();
    return LocalOpenersReplica::Continue(bytes_max);
  }

 private:
  std::function<void()> before_scan_;
};

// A replica of a log with three members, on an adapter of its own.
struct Host {
  explicit Host(uint64_t node)
      : fabric(fabric::tcp::TcpFabricOptions(), clock, random),
        pmem(LayoutOfAll().region_bytes) {
    FormatIdentity identity;
    identity.cluster_id = kCluster;
    identity.log_id = kLog;
    identity.node = NodeId(node);
    identity.configuration.replica_count = 3;
    identity.configuration.write_quorum = 2;
    identity.configuration.members = {
        {NodeId(1), 101}, {NodeId(2), 102}, {NodeId(3), 103}};
    EXPECT_TRUE(
        FormatRegion(pmem, pmem.region(), LayoutOfAll(), identity).ok());
    replica = *recovery::LocalReplica<Model>::Open(pmem, pmem.region(),
                                                   {.name = "replica"});
  }
  static Layout LayoutOfAll() {
    return *Layout::ForRing(2048, /*table_capacity=*/102);
  }

  // Hands what the adapter brings to `user`.
  template <class User>
  void Pump(User& user) {
    std::array<fabric::Completion, 16> completions;
    std::vector<fabric::ConnectionEvent> events;
    const size_t count = fabric.Poll(completions, &events);
    for (const fabric::ConnectionEvent& event : events)
      user.OnConnectionEvent(event);
    for (size_t i = 0; i < count; ++i) user.OnCompletion(completions[i]);
  }

  SteppingClock clock;
  EntropyRandom random;
  fabric::tcp::TcpFabric fabric;
  Model pmem;
  std::unique_ptr<recovery::LocalReplica<Model>> replica;
};

// A member that another one opens an epoch with.
struct Peer {
  explicit Peer(uint64_t node)
      : host(node),
        server(host.fabric, NodeId(node), host.pmem, host.replica.get()),
        address{NodeId(node), *host.fabric.Listen("127.0.0.1:0")} {
    server.on_request = [this](const recovery::Message& message) {
      is_asked |= std::holds_alternative<recovery::Prepare>(message);
      return true;
    };
  }

  Host host;
  ScriptedReplica server;
  recovery::PeerAddress address;
  bool is_asked = false;
};

// A scan takes 0.3 s per GiB: peers and own replica should scan at once.
TEST(OpeningOverTcpTest, PeersAreAskedBeforeTheOwnReplicaIsScanned) {
  Host primary(1);
  Peer second(2);
  Peer third(3);
  const auto pump_peers = [&] {
    second.host.Pump(second.server);
    third.host.Pump(third.server);
    sched_yield();
  };
  recovery::EpochOpeningOptions options;
  options.cluster_id = kCluster;
  options.log_id = kLog;
  options.self = {NodeId(1), 7};
  options.sizes = *quorum::MakeQuorumSizes(3, 2);
  options.peers = {second.address, third.address};
  quorum::StaticMembership ballots =
      *quorum::StaticMembership::Make(options.self);
  bool is_asked_before_scan = false;
  const auto before_scan = [&] {
    // On loopback what was sent is there at once; what was not, never.
    for (int i = 0; i < 1000 && !is_asked_before_scan; ++i) {
      pump_peers();
      is_asked_before_scan = second.is_asked || third.is_asked;
    }
  };
  const auto opening = *recovery::EpochOpening::Start(
      primary.fabric, primary.clock, primary.random, ballots, options,
      std::make_unique<ScanningReplica>(*primary.replica, before_scan));
  while (opening->Poll() != Polled::kDone) {
    primary.Pump(*opening);
    pump_peers();
  }
  EXPECT_TRUE(opening->status().ok()) << opening->status();
  EXPECT_TRUE(is_asked_before_scan);
}

}  // namespace
}  // namespace alpheus::testing
