// SPDX-License-Identifier: Apache-2.0
// opening_world: members of one log on a simulated network, each with a replica
// on modelled memory, and primaries that open epochs of it and may write then.
//
// Host i is node i + 1. Hosts beyond the members have no replica.
#ifndef ALPHEUS_TESTS_RECOVERY_OPENING_OPENING_WORLD_H_
#define ALPHEUS_TESTS_RECOVERY_OPENING_OPENING_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/base/random.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/core/ring/ring_log.h"
#include "quorum/membership/membership.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/replica/local_replica.h"
#include "recovery/resync/epoch_succession.h"
#include "recovery/resync/member_upkeep.h"
#include "recovery/server/replica_server.h"
#include "replication/primary/replicator.h"
#include "tests/support/fabrics/scripted_replica.h"
#include "tests/support/fixtures/log_harness.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

inline constexpr Uuid kOpeningCluster{1, 2};
inline constexpr Uuid kOpeningLog{3, 4};

class OpeningWorld {
 public:
  using Model = model::ModelPersistence;

  struct Options {
    int members = 3;
    int write_quorum = 2;
    uint64_t seed = 1;
    uint64_t ring_capacity = 2048;
    uint64_t message_bytes_max = uint64_t{1} << 20;
    // Members are served by ReplicaServer, which can't be looked into.
    bool real_server = false;
    // Logs let members join that were away; needs real_server.
    bool resyncs = false;
    // Logs may change their members; in place of `resyncs`.
    bool succeeds = false;
    // As SuccessionOptions::open_ballots.
    std::function<absl::StatusOr<std::unique_ptr<quorum::BallotSource>>()>
        open_ballots = {};
    // The key of primaries, and of members with a real_server unless other_keys
    // has another one for their number.
    quorum::ClusterKey key = {};
    std::map<int, quorum::ClusterKey> other_keys = {};
    // Nodes behind the members, each with a blank replica.
    int spares = 0;
    // As LocalReplicaOptions, of all replicas of nodes.
    uint64_t read_whole_bytes_max = kReadWholeBytesMax;
    // Nanoseconds after which nodes with a real_server ask each other whether
    // the log was deleted; 0: never.
    int64_t inquires_ns = 0;
    // Most nanoseconds between two such rounds.
    int64_t inquires_again_ns_max = 600'000'000'000;
    // Hosts behind all others, which the world leaves alone.
    int onlookers = 0;
  };

  // A process that is or wants to be primary.
  struct Primary {
    int host = 0;
    recovery::EpochOpeningOptions asked;
    std::optional<Random> random;
    std::unique_ptr<quorum::BallotSource> ballots;
    std::unique_ptr<Model> cache_pmem;
    std::unique_ptr<recovery::LocalReplica<Model>> cache;
    std::unique_ptr<recovery::EpochOpening> opening;
    std::optional<recovery::EpochOpened> opened;
    std::vector<fabric::Completion> of_sessions;  // that nobody took
    // Made by StartLog.
    std::unique_ptr<replication::Replicator::Observer> others;
    std::unique_ptr<recovery::MemberUpkeep> upkeep;  // with Options::resyncs
    std::unique_ptr<recovery::EpochSuccession> succession;  // succeeds
    std::unique_ptr<replication::Replicator> replicator;    // without
    std::unique_ptr<ReplicationSink> sink;
    SteppingClock log_clock;
    NoWaiter log_waiter;
    std::unique_ptr<RingLog<Model>> log;

    const absl::Status& status() const { return opening->status(); }
  };

  explicit OpeningWorld(const Options& options);
  // All members were off: these are their memories, and nobody is up yet.
  OpeningWorld(const Options& options,
               std::span<const std::vector<std::byte>> images);

  model::SimNetwork& network() { return *network_; }
  recovery::LocalReplica<Model>& replica(int node) {
    return *node_at(node).replica;
  }
  Model& pmem(int node) { return node_at(node).pmem; }
  ScriptedReplica& server(int node) { return *node_at(node).server; }
  const quorum::QuorumSizes& sizes() const { return sizes_; }

  // Where primaries that begin from now on have their ballots from.
  std::function<std::unique_ptr<quorum::BallotSource>(const quorum::PrimaryId&)>
      make_ballots;

  // Returns the options with which a process on that host would open.
  recovery::EpochOpeningOptions OpeningOptions(int host);
  // The same by another list of members.
  recovery::EpochOpeningOptions OpeningOptions(
      int host, uint64_t id, const std::vector<int>& nodes,
      const quorum::QuorumSizes& sizes);
  recovery::PeerAddress AddressOf(int node) const;
  // A host without a replica.
  int outsider() const { return static_cast<int>(nodes_.size()); }
  // Begins to open; the primary's host may or may not have a replica.
  std::unique_ptr<Primary> Begin(int host,
                                 const recovery::EpochOpeningOptions& asked,
                                 uint64_t incarnation = 0);
  // Lets one event happen. False if the primaries are through.
  bool Step(const std::vector<Primary*>& primaries);
  // Runs an opening until it is over.
  std::unique_ptr<Primary> Open(int host);
  std::unique_ptr<Primary> Open(int host,
                                const recovery::EpochOpeningOptions& options);
  void Drive(const std::vector<Primary*>& primaries);

  // The node's process ends: power cut or kill; it comes back by Restart.
  void Crash(int number, bool power_cut = true);
  void Restart(int number, bool suspect = false);
  bool IsUp(int node) { return node_at(node).replica != nullptr; }
  // Makes the replica anew: empty, with a new incarnation.
  void Reformat(int number);
  // The medium of that node was lost: a blank replica is there now, which knows
  // the configuration of `like`'s superline.
  void Replace(int number, int like);

  // The log of the epoch that was opened, whose calls let the network go on
  // while they wait. Requires: no Append below.
  void StartLog(Primary& primary);
  // Lets one event happen that the host does not see; it may wait for it.
  void StepOthers(int host);
  // The processes of this host stand still, and its adapter works; -1: none.
  int paused_host = -1;
  // Called when an event has happened and all have seen it; may be empty.
  std::function<void()> on_event;

  // One more record of the epoch that was opened, on these nodes; 0 is the
  // primary's working copy.
  void Append(Primary& primary, std::string_view payload,
              const std::vector<int>& nodes);
  // Overwrites the last byte of the record that was appended as the n-th.
  void Damage(int number, const LogPosition& at);
  std::vector<LogPosition> positions;  // of what was appended

  // Returns the payloads that a power cut would leave on that node.
  std::vector<std::string> Payloads(int node);
  std::string Describe();

 private:
  struct Node {
    int host = 0;
    Model pmem;
    std::unique_ptr<recovery::LocalReplica<Model>> replica;
    std::unique_ptr<ScriptedReplica> server;
    Random random{1};  // of nonces
    std::unique_ptr<recovery::ReplicaServer> real_server;

    explicit Node(size_t bytes) : pmem(bytes) {}
    explicit Node(std::span<const std::byte> image) : pmem(image) {}
  };
  class OthersOf;
  class DrivenReplication;

  ReplicationSink& MakeReplication(
      Primary& primary, const replication::Replicator::Options& replicator);

  // Opens the replica as a process that starts.
  void OpenReplica(Node& node, bool suspect = false);
  void Serve(Node& node);
  void Fence(Node& node);
  Node& node_at(int node) { return *nodes_[node - 1]; }
  FormatIdentity IdentityOf(int node) const;
  void MakeNode(const FormatIdentity& identity);
  void Poll(const std::vector<Primary*>& primaries, int but_not = -1);
  Primary* PrimaryAt(const std::vector<Primary*>& primaries, int host);

  const Options options_;
  const quorum::QuorumSizes sizes_;
  const Layout layout_;
  std::unique_ptr<model::SimNetwork> network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  uint64_t next_incarnation_ = 1;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_OPENING_OPENING_WORLD_H_
