// SPDX-License-Identifier: Apache-2.0
// memory_world: a node that offers memory, and clients of it, on a simulated
// network. Host 1 is the node; its memory is attached, so that its power may be
// cut. The other hosts are clients.
#ifndef ALPHEUS_TESTS_API_REMOTE_MEMORY_WORLD_H_
#define ALPHEUS_TESTS_API_REMOTE_MEMORY_WORLD_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/remote/memory_client.h"
#include "api/remote/memory_server.h"
#include "tests/support/fabrics/counting_fabric.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

inline constexpr Uuid kRemoteCluster{0xc1, 0x5};
inline constexpr int kNodeHost = 1;
inline constexpr size_t kRingBytes = 4096;
inline constexpr size_t kInboxBytes = 4096;

class SetWallClock final : public WallClock {
 public:
  int64_t NowSeconds() const override { return now; }
  int64_t now = 1'000'000;
};

// Tokens by name; each has one role for the log "main", but "other", which is
// for another log.
struct TestToken {
  std::string token;
  rpc::TokenEntry entry;
};
TestToken MakeTestToken(const std::string& name, rpc::Roles roles,
                        const std::string& log = "main");

struct MemoryWorldOptions {
  uint64_t seed = 1;
  replication::Platform platform = {};  // true
  // As the node says; not set: the true one.
  std::optional<replication::Platform> declared = {};
  int64_t proof_ns_max = 5'000'000;
  size_t unproved_max = 4;
  size_t connections_max = 8;
};

class MemoryWorld;

// A peer of another hand, which gets all that comes to its host.
class PeerSink {
 public:
  virtual ~PeerSink() = default;
  virtual void OnConnectionEvent(const fabric::ConnectionEvent& event) = 0;
  virtual void OnCompletion(const fabric::Completion& completion) = 0;
};

// The world gives no events to a client that is destroyed.
struct EndClient {
  MemoryWorld* world;
  void operator()(remote::MemoryClient* client) const;
};
using ClientInWorld = std::unique_ptr<remote::MemoryClient, EndClient>;

class MemoryWorld {
 public:
  explicit MemoryWorld(const MemoryWorldOptions& options = {});
  ~MemoryWorld();

  // The first half of the node's memory is a ring that is offered for reads,
  // "ring", to read and append; the second an inbox, "inbox", to append.
  std::span<std::byte> ring() { return memory.region().first(kRingBytes); }
  std::span<std::byte> inbox() { return memory.region().subspan(kRingBytes); }

  static remote::MemoryClientOptions Reading(const std::string& token);
  static remote::MemoryClientOptions Updating(const std::string& token);

  // Starts to connect from that host.
  ClientInWorld Connect(remote::MemoryClientOptions options, int host = 0);
  // The same, and waits until it is open or over.
  ClientInWorld Open(remote::MemoryClientOptions options, int host = 0);

  // Lets things happen until `is_done`; false: nothing can happen any more, or
  // virtual time has passed in vain.
  bool Run(const std::function<bool()>& is_done);
  // One event, and what follows from it.
  bool Step();
  // Lets everything that is on its way arrive.
  void Settle();
  // Virtual time goes on.
  void Pass(int64_t nanos);

  // Each waits for its end.
  absl::Status Read(remote::MemoryClient& client, size_t region,
                    uint64_t offset, std::span<std::byte> into);
  absl::StatusOr<uint64_t> Swap(remote::MemoryClient& client, uint64_t offset,
                                uint64_t expected, uint64_t desired);
  absl::Status Update(remote::MemoryClient& client, uint64_t offset,
                      std::span<const std::byte> bytes);
  absl::Status Persist(remote::MemoryClient& client, uint64_t offset,
                       uint64_t bytes);

  CountingFabric& at(int host);

  TestToken reader = MakeTestToken("reader", rpc::Role::kRead);
  TestToken writer = MakeTestToken("writer", rpc::Role::kAppend);
  TestToken admin = MakeTestToken("admin", rpc::kAnyRole);
  TestToken other = MakeTestToken("other", rpc::kAnyRole, "other");

  // The node's adapter works, and its program does nothing.
  bool stands_still = false;
  std::map<int, std::vector<PeerSink*>> peers;  // by host
  std::vector<std::string> warnings;
  SetWallClock wall;
  Random randomness;
  model::ModelPersistence memory{kRingBytes + kInboxBytes};
  std::unique_ptr<model::SimNetwork> network;
  std::unique_ptr<rpc::Access> access;
  std::unique_ptr<remote::MemoryServer> server;
  std::string address;

 private:
  friend struct EndClient;
  void Poll();

  std::map<int, std::unique_ptr<CountingFabric>> fabrics_;
  std::map<int, std::vector<remote::MemoryClient*>> clients_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_REMOTE_MEMORY_WORLD_H_
