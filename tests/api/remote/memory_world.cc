// SPDX-License-Identifier: Apache-2.0
#include "tests/api/remote/memory_world.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/grpc/access/crypto.h"

namespace alpheus::testing {
namespace {

constexpr int kHosts = 3;
constexpr int64_t kPatienceNanos = 60'000'000'000;  // virtual

model::SimOptions NetworkOf(const MemoryWorldOptions& options) {
  model::SimOptions network;
  network.seed = options.seed;
  network.hosts = kHosts;
  network.packet_bytes = 16;
  network.stage_words = 1;
  network.platforms = {replication::Platform(), options.platform,
                       replication::Platform()};
  return network;
}

}  // namespace

TestToken MakeTestToken(const std::string& name, rpc::Roles roles,
                        const std::string& log) {
  TestToken made = {absl::StrCat("alph_", name, "_token"), {}};
  made.entry.name = name;
  made.entry.sha256 = rpc::Sha256(made.token);
  made.entry.roles = roles;
  made.entry.logs = {log};
  return made;
}

MemoryWorld::MemoryWorld(const MemoryWorldOptions& options)
    : randomness(options.seed),
      network(std::make_unique<model::SimNetwork>(NetworkOf(options))) {
  network->AttachMemory(kNodeHost, memory);
  access = std::make_unique<rpc::Access>(
      std::vector<rpc::TokenEntry>{reader.entry, writer.entry, admin.entry,
                                   other.entry},
      wall);
  server = std::make_unique<remote::MemoryServer>(
      at(kNodeHost), network->clock(), *access, randomness,
      remote::MemoryServerOptions{.cluster_id = kRemoteCluster,
                                  .log = "main",
                                  .node = NodeId(7),
                                  .incarnation = 0x1234,
                                  .connections_max = options.connections_max,
                                  .unproved_max = options.unproved_max,
                                  .proof_ns_max = options.proof_ns_max,
                                  .warn = [this](const std::string& what) {
                                    warnings.push_back(what);
                                  }});
  EXPECT_TRUE(server
                  ->Offer({.name = "ring",
                           .bytes = ring(),
                           .readers = rpc::Roles(rpc::Role::kRead) |
                                      rpc::Role::kAppend})
                  .ok());
  EXPECT_TRUE(
      server
          ->Offer({.name = "inbox",
                   .memory = std::make_unique<
                       remote::UpdatedMemoryOf<model::ModelPersistence>>(
                       memory, inbox()),
                   .updaters = rpc::Role::kAppend,
                   .platform = options.declared.value_or(options.platform)})
          .ok());
  address = *at(kNodeHost).Listen(model::SimNetwork::Address(kNodeHost, 0));
}

MemoryWorld::~MemoryWorld() {
  memory.SetHook({});
  server.reset();  // before its fabric
}

CountingFabric& MemoryWorld::at(int host) {
  std::unique_ptr<CountingFabric>& fabric = fabrics_[host];
  if (fabric == nullptr) {
    fabric = std::make_unique<CountingFabric>(network->fabric(host));
  }
  return *fabric;
}

remote::MemoryClientOptions MemoryWorld::Reading(const std::string& token) {
  return {.cluster_id = kRemoteCluster,
          .log = "main",
          .token = token,
          .read = {"ring"}};
}

remote::MemoryClientOptions MemoryWorld::Updating(const std::string& token) {
  remote::MemoryClientOptions options = Reading(token);
  options.updated = "inbox";
  return options;
}

ClientInWorld MemoryWorld::Connect(remote::MemoryClientOptions options,
                                   int host) {
  auto client = remote::MemoryClient::Connect(
      at(host), network->clock(), randomness, address, std::move(options));
  EXPECT_TRUE(client.ok()) << client.status();
  clients_[host].push_back(client->get());
  return {client->release(), EndClient{this}};
}

ClientInWorld MemoryWorld::Open(remote::MemoryClientOptions options, int host) {
  ClientInWorld client = Connect(std::move(options), host);
  EXPECT_TRUE(Run([&] { return client->is_open() || !client->status().ok(); }));
  return client;
}

void EndClient::operator()(remote::MemoryClient* client) const {
  for (auto& [host, clients] : world->clients_) std::erase(clients, client);
  std::unique_ptr<remote::MemoryClient>(client).reset();
}

void MemoryWorld::Poll() {
  std::array<fabric::Completion, 16> some;
  for (int host = 0; host < kHosts; ++host) {
    if (!network->IsUp(host) || (host == kNodeHost && stands_still)) continue;
    std::vector<fabric::ConnectionEvent> events;
    const size_t count = at(host).Poll(some, &events);
    for (const fabric::ConnectionEvent& event : events) {
      if (host == kNodeHost && !server->OnConnectionEvent(event)) {
        remote::RejectUnserved(at(host), event);
      }
      for (remote::MemoryClient* client : clients_[host]) {
        client->OnConnectionEvent(event);
      }
      for (PeerSink* peer : peers[host]) peer->OnConnectionEvent(event);
    }
    for (size_t i = 0; i < count; ++i) {
      if (host == kNodeHost) server->OnCompletion(some[i]);
      for (remote::MemoryClient* client : clients_[host]) {
        client->OnCompletion(some[i]);
      }
      for (PeerSink* peer : peers[host]) peer->OnCompletion(some[i]);
    }
    for (remote::MemoryClient* client : clients_[host]) client->Poll();
  }
  if (!stands_still) server->Poll();
}

bool MemoryWorld::Step() {
  const bool goes_on = network->Step();
  Poll();
  return goes_on;
}

void MemoryWorld::Settle() {
  while (Step()) {
  }
}

void MemoryWorld::Pass(int64_t nanos) {
  network->Run(nanos);
  Poll();
}

bool MemoryWorld::Run(const std::function<bool()>& is_done) {
  const int64_t end = network->clock().NowNanos() + kPatienceNanos;
  while (!is_done()) {
    if (network->clock().NowNanos() >= end) return false;
    // Nothing is on its way: only time helps.
    if (!Step()) Pass(1'000'000);
  }
  return true;
}

absl::Status MemoryWorld::Read(remote::MemoryClient& client, size_t region,
                               uint64_t offset, std::span<std::byte> into) {
  std::optional<absl::Status> end;
  const absl::Status posted = client.Read(
      region, offset, into, [&](const absl::Status& status) { end = status; });
  if (!posted.ok()) return posted;
  EXPECT_TRUE(Run([&] { return end.has_value(); }));
  return *end;
}

absl::StatusOr<uint64_t> MemoryWorld::Swap(remote::MemoryClient& client,
                                           uint64_t offset, uint64_t expected,
                                           uint64_t desired) {
  std::optional<absl::StatusOr<uint64_t>> end;
  const absl::Status posted = client.CompareAndSwap(
      offset, expected, desired,
      [&](const absl::StatusOr<uint64_t>& found) { end = found; });
  if (!posted.ok()) return posted;
  EXPECT_TRUE(Run([&] { return end.has_value(); }));
  return *end;
}

absl::Status MemoryWorld::Update(remote::MemoryClient& client, uint64_t offset,
                                 std::span<const std::byte> bytes) {
  std::optional<absl::Status> end;
  const absl::Status posted = client.Update(
      offset, bytes, [&](const absl::Status& status) { end = status; });
  if (!posted.ok()) return posted;
  EXPECT_TRUE(Run([&] { return end.has_value(); }));
  return *end;
}

absl::Status MemoryWorld::Persist(remote::MemoryClient& client, uint64_t offset,
                                  uint64_t bytes) {
  std::optional<absl::Status> end;
  const absl::Status posted = client.Persist(
      offset, bytes, [&](const absl::Status& status) { end = status; });
  if (!posted.ok()) return posted;
  EXPECT_TRUE(Run([&] { return end.has_value(); }));
  return *end;
}

}  // namespace alpheus::testing
