// SPDX-License-Identifier: Apache-2.0
// served_world: a node that serves replicas on modelled memory, and primaries
// that do what a test tells them, on a simulated network.
#ifndef ALPHEUS_TESTS_RECOVERY_SERVER_SERVED_WORLD_H_
#define ALPHEUS_TESTS_RECOVERY_SERVER_SERVED_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/core/ring/ring_log.h"
#include "recovery/protocol/messages.h"
#include "recovery/server/local_regions.h"
#include "recovery/server/replica_server.h"
#include "recovery/server/served_log.h"
#include "replication/session/primary_session.h"
#include "tests/support/fabrics/failing_fabric.h"
#include "tests/support/fixtures/log_harness.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

inline constexpr Uuid kCluster{11, 12};
inline constexpr Uuid kLogA{21, 22};
inline constexpr Uuid kLogB{31, 32};
inline constexpr NodeId kNode{1};
inline constexpr replication::SessionId kTheSession{77};
inline constexpr uint64_t kRingBytes = 16384;

// The two members of the logs: the node, and the primaries' own replicas.
Configuration MembersOf();
std::unique_ptr<model::ModelPersistence> FormattedRegion(
    Uuid log_id, NodeId node, uint64_t configuration_id = 1);

// A primary's own replica of a log, and the log that is written there.
class PrimaryLog {
 public:
  explicit PrimaryLog(Uuid log_id);
  ~PrimaryLog();

  // Installs the epoch on what is there, and goes on with it.
  void OpenEpoch(Epoch epoch);
  Lsn Append(std::string_view text);
  // The installation of the last OpenEpoch.
  const recovery::Installation& installation() const { return installation_; }
  Ring ring() const;
  // Behind the last record.
  RingEnd End() const;
  LogPosition EndPosition() const { return WalkToTheEnd(); }
  // Its region, as it is now.
  std::vector<std::byte> Image() const;

 private:
  LogPosition WalkToTheEnd() const;

  std::unique_ptr<model::ModelPersistence> pmem_;
  SteppingClock clock_;
  NoWaiter waiter_;
  recovery::Installation installation_;
  std::unique_ptr<RingLog<model::ModelPersistence>> log_;
};

// One connection of a primary process.
class Peer {
 public:
  Peer(fabric::Fabric& fabric, quorum::PrimaryId primary)
      : fabric_(fabric), self_(primary) {}

  void Connect(const std::string& address, const recovery::Hello& hello);
  void ConnectSaying(const std::string& address, std::string_view bytes);
  recovery::Hello HelloOf(Uuid log_id) const {
    return {kCluster, log_id, self_};
  }

  void Send(const recovery::Message& message);
  void SendBytes(std::span<const std::byte> bytes);
  // Under way until it completes; `done` has the outcomes.
  absl::Status Write(fabric::RegionKey key, uint64_t offset,
                     std::span<std::byte> bytes);
  absl::Status Read(fabric::RegionKey key, uint64_t offset,
                    std::span<std::byte> into);
  absl::Status Announce(uint32_t immediate);
  absl::Status Close() { return fabric_.Close(connection_); }

  void OnConnectionEvent(const fabric::ConnectionEvent& event);
  void OnCompletion(const fabric::Completion& completion);

  quorum::PrimaryId self() const { return self_; }
  fabric::ConnectionId connection() const { return connection_; }
  fabric::Fabric& fabric() { return fabric_; }

  // Everything that this peer has seen.
  std::optional<recovery::ServerHello> server_hello;
  absl::Status rejection;
  std::string rejection_bytes;
  bool established = false;
  bool ended = false;
  std::deque<recovery::Message> replies;
  std::vector<fabric::CompletionStatus> done;  // of writes and reads
  // From Installed on, completions are its.
  std::unique_ptr<replication::PrimarySession> session;
  absl::Status session_status;

 private:
  void PostReceive();

  fabric::Fabric& fabric_;
  const quorum::PrimaryId self_;
  Uuid log_id_;
  fabric::ConnectionId connection_;
  std::unique_ptr<replication::MessageSlots> slots_;
};

// Lets time pass in the middle of a scan, and keeps what it saw.
class WatchedLog final : public recovery::ServedLog {
 public:
  WatchedLog(model::ModelPersistence& pmem,
             std::function<void()> while_scanning);

  Uuid log_id() const override { return inner_.log_id(); }
  recovery::ServerHello server_hello() const override {
    return inner_.server_hello();
  }
  bool is_persistent_memory() const override { return is_memory; }
  quorum::Promise current_promise() const override {
    return inner_.current_promise();
  }
  recovery::Created created() const override { return inner_.created(); }
  recovery::DeletionState deletion() const override {
    return inner_.deletion();
  }
  absl::Status MarkDeleted(Deletion deletion) override {
    return inner_.MarkDeleted(deletion);
  }
  recovery::Followed followed() const override { return inner_.followed(); }
  bool medium_failed() const override { return inner_.medium_failed(); }
  std::span<std::byte> ring() const override { return inner_.ring(); }
  std::span<std::byte> region() const override { return inner_.region(); }
  absl::StatusOr<quorum::PromiseVerdict> AcceptPromise(
      const quorum::Promise& p) override {
    return inner_.AcceptPromise(p);
  }
  absl::Status StartStateReport(bool from_head) override {
    return inner_.StartStateReport(from_head);
  }
  recovery::StateReport TakeStateReport() override;
  absl::Status BeginRepair(Epoch epoch) override {
    return inner_.BeginRepair(epoch);
  }
  absl::Status RaiseCeiling(Epoch epoch, RingOffset ceiling) override {
    return inner_.RaiseCeiling(epoch, ceiling);
  }
  absl::Status StartInstall(
      const recovery::Installation& installation) override {
    return inner_.StartInstall(installation);
  }
  absl::StatusOr<bool> Continue(uint64_t bytes_max) override;
  void EndWork() override { inner_.EndWork(); }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override {
    ++restored;
    if (forgets) return absl::OkStatus();
    return inner_.RestoreBytes(offset, bytes);
  }
  absl::StatusOr<int> RepairCopies() override { return inner_.RepairCopies(); }
  absl::Status StartSession(const replication::SessionTerms& terms,
                            fabric::Fabric& fabric,
                            fabric::ConnectionId connection) override {
    return inner_.StartSession(terms, fabric, connection);
  }
  absl::Status OnCompletion(const fabric::Completion& completion) override {
    return inner_.OnCompletion(completion);
  }
  absl::Status Step() override { return inner_.Step(); }
  bool has_more() const override { return inner_.has_more(); }
  std::string TakeNews() override { return inner_.TakeNews(); }
  absl::Status PersistWatermark() override {
    ++watermarks;
    return inner_.PersistWatermark();
  }
  void EndSession() override { inner_.EndSession(); }

  // The ring as the last scan saw it.
  std::vector<std::byte> seen;
  int watermarks = 0;
  int slices = 0;        // of scans and installations
  int restored = 0;      // places
  bool forgets = false;  // ignores restored content
  bool is_memory = true;
  bool starves = false;  // memory runs out in its work

 private:
  recovery::ServedReplica<model::ModelPersistence> inner_;
  const std::function<void()> while_scanning_;
};

// Regions of which a process of the node's machine has one. Functions that are
// not set act as by default.
class FakeRegions final : public recovery::LocalRegions {
 public:
  explicit FakeRegions(Uuid taken) : taken_(taken) {}

  std::function<void(Uuid log_id)> release;
  std::function<absl::StatusOr<recovery::ServerHello>(Uuid log_id)>
      server_hello;
  std::function<absl::StatusOr<recovery::Followed>(Uuid log_id)> followed;
  std::function<void(Uuid log_id)> owner_gone;
  // Called when the server asks why; may add the log.
  std::function<void()> when_asked;

  bool ReleaseRegion(Uuid log_id) override;
  absl::Status WhyUnserved(Uuid log_id) override;
  absl::StatusOr<recovery::ServerHello> ReadServerHello(Uuid log_id) override;
  absl::StatusOr<recovery::Followed> ReadFollowed(Uuid log_id) override;
  void OnLockHolderGone(Uuid log_id) override;

 private:
  const Uuid taken_;
};

class ServedWorld {
 public:
  struct Options {
    model::SimOptions network;
    bool serve_b = false;           // log B, too
    uint64_t configuration_id = 1;  // of log A
    // Log A: its ceiling is a lap after its head, so that a scan reads the
    // whole ring. Else it was formatted, and a scan reads nothing.
    bool is_written = false;
    // Nanoseconds that a scan takes.
    int64_t scan_ns = 0;
    recovery::ReplicaServerOptions server;
  };
  explicit ServedWorld(Options options);

  model::SimNetwork& network() { return network_; }
  // The adapter of the node.
  FailingFabric& adapter() { return adapter_; }
  recovery::ReplicaServer& server() { return *server_; }
  model::ModelPersistence& pmem(Uuid log_id) {
    return log_id == kLogA ? *pmem_a_ : *pmem_b_;
  }
  WatchedLog& log(Uuid log_id) { return log_id == kLogA ? *log_a_ : *log_b_; }
  std::span<std::byte> RingBytes(Uuid log_id) { return log(log_id).ring(); }
  RegionState State(Uuid log_id);
  const std::vector<std::string>& reports() const { return reports_; }
  const std::string& address() const { return address_; }

  // A primary process on host 1 or 2, with one connection more.
  Peer& NewPeer(int host, uint64_t incarnation);
  // The same, connected to a log.
  Peer& Connected(int host, uint64_t incarnation, Uuid log_id = kLogA);

  // All primary processes of the host end without a word; their peers are gone.
  void Crash(int host);

  // Lets events happen, each seen by all at once, for so long.
  void Run(int64_t ns);
  // Other hosts that have something to do whenever time passes.
  std::function<void()> also;
  // Takes what arrived at the node only.
  void PollNode();

  // Requests and the reply; the connection may have ended without one.
  std::optional<recovery::Message> Ask(Peer& peer,
                                       const recovery::Message& message);
  recovery::Promised GetPromise(Peer& peer, Epoch epoch);
  recovery::RepairOpened GetRepairOpened(Peer& peer, Epoch epoch);
  // From a new connection to a session, whose log the node gets by a write.
  void GetInstalled(Peer& peer, PrimaryLog& log, uint32_t credits = 4);

 private:
  void PollPeers();

  model::SimNetwork network_;
  FailingFabric adapter_;
  std::unique_ptr<model::ModelPersistence> pmem_a_;
  std::unique_ptr<model::ModelPersistence> pmem_b_;
  WatchedLog* log_a_ = nullptr;  // of the server
  WatchedLog* log_b_ = nullptr;
  std::vector<std::string> reports_;
  std::string address_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::unique_ptr<recovery::ReplicaServer> server_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_SERVER_SERVED_WORLD_H_
