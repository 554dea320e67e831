// SPDX-License-Identifier: Apache-2.0
// The conformance suite in virtual time, and what only a simulation can show.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "replication/persist/platform/platform.h"
#include "tests/replication/fabric/conformance.h"
#include "tests/replication/persist/platform/all_platforms.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

using fabric::Completion;
using fabric::CompletionStatus;
using fabric::ConnectionEvent;
using fabric::ConnectionId;
using fabric::RemoteAccess;
using fabric::WorkId;
using model::SimNetwork;
using model::SimOptions;

namespace {

std::string NameOf(const replication::Platform& platform) {
  constexpr const char* kDomains[] = {"Dmp", "Mhp", "Wsp"};
  return absl::StrCat(
      kDomains[static_cast<int>(platform.domain)],
      platform.ddio ? "Ddio" : "NoDdio",
      platform.receive_buffers == replication::ReceiveBuffers::kDram ? "Dram"
                                                                     : "Pmem",
      platform.transport == replication::Transport::kTcp ? "Tcp"
                                                         : "InfiniBand");
}

class SimWorld : public FabricWorld {
 public:
  explicit SimWorld(const SimOptions& options) : network_(options) {}

  int hosts() const override { return network_.options().hosts; }
  fabric::Fabric& fabric(int host) override { return network_.fabric(host); }
  std::string ListenAddress(int host) override {
    return SimNetwork::Address(host, 0);
  }
  std::string UnusedAddress(int host) override {
    return SimNetwork::Address(host, 999);
  }
  int64_t NowNanos() override { return network_.clock().NowNanos(); }
  bool Pass() override { return network_.Step(); }
  void Cut(int host, int other) override { network_.Cut(host, other); }
  void Heal(int host, int other) override { network_.Heal(host, other); }

 protected:
  SimNetwork& network() { return network_; }
  const SimNetwork& network() const { return network_; }

 private:
  SimNetwork network_;
};

// Regions lie in modelled memory; where receive buffers are in DRAM, what no
// peer may touch does not.
class StagedSimWorld final : public SimWorld {
 public:
  explicit StagedSimWorld(const SimOptions& options) : SimWorld(options) {}

  WorldMemory Memory(int host, uint64_t bytes, RemoteAccess access) override {
    const replication::Platform& platform =
        network().options().platforms.at(host);
    if (access == RemoteAccess::kNone &&
        platform.receive_buffers == replication::ReceiveBuffers::kDram) {
      return SimWorld::Memory(host, bytes, access);
    }
    const auto model =
        std::make_shared<model::ModelPersistence>(RoundUp(bytes, kLineBytes));
    network().AttachMemory(host, *model);
    return {model, model->region().first(bytes)};
  }
  bool CompletedWritesAreVisible() const override {
    return network().options().platforms[0].transport !=
           replication::Transport::kInfiniBand;
  }
};

// Every platform whose transport is modelled.
std::vector<ConformanceParam> StagedSimWorlds() {
  std::vector<ConformanceParam> worlds;
  for (const replication::Platform& platform : AllPlatforms()) {
    if (platform.native_flush || platform.atomic_write ||
        platform.transport == replication::Transport::kIwarp) {
      continue;
    }
    SimOptions options;
    options.seed = worlds.size() + 1;
    options.packet_bytes = options.seed % 2 == 0 ? 64 : 1024;
    options.stage_words = options.packet_bytes / 8;
    options.platforms.assign(static_cast<size_t>(options.hosts), platform);
    worlds.push_back({NameOf(platform), [options] {
                        return std::make_unique<StagedSimWorld>(options);
                      }});
  }
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(StagedSim, FabricConformanceTest,
                         ::testing::ValuesIn(StagedSimWorlds()),
                         ConformanceParamName);

// Seeds that differ in how finely writes land, too.
std::vector<ConformanceParam> SimWorlds() {
  std::vector<ConformanceParam> worlds;
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    SimOptions options;
    options.seed = seed;
    options.packet_bytes = seed % 2 == 0 ? 64 : 1024;
    options.limits.atomic_write = true;
    worlds.push_back({absl::StrCat("Seed", seed), [options] {
                        return std::make_unique<SimWorld>(options);
                      }});
  }
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Sim, FabricConformanceTest,
                         ::testing::ValuesIn(SimWorlds()),
                         ConformanceParamName);

// Two hosts of a network, connected, and what the tests below need of them.
class SimFabricTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  static constexpr uint64_t kBytes = 4096;

  void Start(SimOptions options) {
    options.seed = GetParam();
    network_ = std::make_unique<SimNetwork>(options);
    own_.assign(kBytes, std::byte{1});
    remote_.assign(kBytes, std::byte{0});
    own_key_ = *fabric(0).Register(own_, RemoteAccess::kNone);
    remote_key_ = *fabric(1).Register(remote_, RemoteAccess::kReadWrite);
    const std::string address = *fabric(1).Listen(SimNetwork::Address(1, 0));
    at_host_ = *fabric(0).Connect(address, "", Deadline());
    at_peer_ = Await(1, ConnectionEvent::Kind::kRequested);
    ASSERT_TRUE(fabric(1).Accept(at_peer_, "").ok());
    Await(0, ConnectionEvent::Kind::kEstablished);
    Await(1, ConnectionEvent::Kind::kEstablished);
  }

  fabric::Fabric& fabric(int host) { return network_->fabric(host); }

  ConnectionId Await(int host, ConnectionEvent::Kind kind) {
    do {
      std::vector<ConnectionEvent> events;
      fabric(host).Poll({}, &events);
      for (const ConnectionEvent& event : events) {
        if (event.kind == kind) return event.connection;
      }
    } while (network_->Step());
    ADD_FAILURE() << "no event " << static_cast<int>(kind);
    return {};
  }

  // The next completion at the host; of work 0 if there is none.
  Completion Next(int host) {
    do {
      Completion completion;
      if (fabric(host).Poll({&completion, 1}, nullptr) == 1) return completion;
    } while (network_->Step());
    ADD_FAILURE() << "no completion at host " << host;
    return {};
  }

  void Write(uint64_t work) {
    const absl::Status posted = fabric(0).PostWrite(
        at_host_, WorkId(work), {own_key_, own_}, {remote_key_, 0});
    ASSERT_TRUE(posted.ok()) << posted;
  }

  uint64_t Landed() const {
    return static_cast<uint64_t>(
        std::count(remote_.begin(), remote_.end(), std::byte{1}));
  }
  bool IsPart() const { return Landed() > 0 && Landed() < kBytes; }

  // Before the network: it must not outlive what is registered.
  std::vector<std::byte> own_;
  std::vector<std::byte> remote_;
  std::unique_ptr<SimNetwork> network_;
  fabric::RegionKey own_key_;
  fabric::RegionKey remote_key_;
  ConnectionId at_host_;
  ConnectionId at_peer_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, SimFabricTest,
                         ::testing::Range(uint64_t{1}, uint64_t{9}));

// Everything that a run may do, as text.
std::string TraceOf(uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.break_probability = 0.02;
  SimNetwork network(options);
  std::string trace;
  network.SetTrace([&](std::string_view line) {
    trace.append(line);
    trace.push_back('\n');
  });
  alignas(8) std::byte memory[3][512] = {};
  fabric::RegionKey keys[3];
  std::string addresses[3];
  for (int host = 0; host < 3; ++host) {
    keys[host] =
        *network.fabric(host).Register(memory[host], RemoteAccess::kAll);
    addresses[host] =
        *network.fabric(host).Listen(SimNetwork::Address(host, 0));
    absl::StrAppend(&trace, "key ", keys[host].value, "\n");
  }
  // A call that fails below is part of the trace, or has no effect.
  Random program(seed + 100);
  std::vector<ConnectionId> connections[3];
  for (int i = 0; i < 600; ++i) {
    const int host = static_cast<int>(program.Below(3));
    const int other = (host + 1) % 3;
    fabric::Fabric& fabric = network.fabric(host);
    std::vector<ConnectionEvent> events;
    Completion completions[4];
    fabric.Poll(completions, &events);
    for (const ConnectionEvent& event : events) {
      if (event.kind == ConnectionEvent::Kind::kRequested) {
        (void)fabric.Accept(event.connection, "");
      } else if (event.kind == ConnectionEvent::Kind::kEstablished) {
        connections[host].push_back(event.connection);
      }
    }
    if (i % 30 == 0) {
      (void)fabric.Connect(addresses[other], "", Deadline());
    }
    for (const ConnectionId connection : connections[host]) {
      const fabric::LocalBytes own = {keys[host], {memory[host], 64}};
      (void)fabric.PostWrite(connection, WorkId(1), own, {keys[other], 64});
      (void)fabric.PostFetchAdd(connection, WorkId(2),
                                {keys[host], {memory[host] + 128, 8}},
                                {keys[other], 256}, 1);
    }
    if (i % 100 == 50) network.Cut(host, other);
    if (i % 100 == 60) network.Heal(host, other);
    network.Run(static_cast<int64_t>(program.Below(50'000)));
  }
  while (network.Step()) {
  }
  for (const auto& bytes : memory) {
    trace.append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
  }
  return trace;
}

// Invariant 1 (sim_network.h), byte for byte, memory and keys included.
TEST_P(SimFabricTest, SameSeedSameEvents) {
  const std::string trace = TraceOf(GetParam());
  EXPECT_GT(trace.size(), 10'000u);
  EXPECT_EQ(trace, TraceOf(GetParam()));
  EXPECT_NE(trace, TraceOf(GetParam() + 1));
  for (const char* happened :
       {"disconnected", "established", "fetch and add"}) {
    EXPECT_NE(trace.find(happened), std::string::npos) << happened;
  }
}

// FB1: between two events a write has landed in part, in whole words.
TEST_P(SimFabricTest, WriteLandsInWholeWordsPartByPart) {
  SimOptions options;
  options.packet_bytes = 64;
  Start(options);
  Write(1);
  int parts = 0;
  while (Landed() < kBytes && network_->Step()) {
    parts += IsPart() ? 1 : 0;
    EXPECT_EQ(Landed() % 8, 0u);
    const auto* words = reinterpret_cast<const uint64_t*>(remote_.data());
    for (uint64_t i = 0; i < kBytes / 8; ++i) {
      ASSERT_TRUE(words[i] == 0 || words[i] == 0x0101010101010101u);
    }
  }
  EXPECT_GT(parts, 8);
  EXPECT_EQ(Next(0).status, CompletionStatus::kOk);
}

// FB6, P-R1, P-B0.4: bytes without a notice.
TEST_P(SimFabricTest, WriteThatFindsNoReceiveHasLandedInPart) {
  Start({});
  ASSERT_TRUE(fabric(0)
                  .PostWriteImmediate(at_host_, WorkId(1), {own_key_, own_},
                                      {remote_key_, 0}, 5)
                  .ok());
  EXPECT_EQ(Next(0).status, CompletionStatus::kReceiverNotReady);
  EXPECT_TRUE(IsPart()) << Landed();
  Completion none;
  EXPECT_EQ(fabric(1).Poll({&none, 1}, nullptr), 0u);
}

TEST_P(SimFabricTest, ReceiveThatIsPostedInTimeIsFound) {
  Start({});
  ASSERT_TRUE(fabric(0)
                  .PostWriteImmediate(at_host_, WorkId(1), {own_key_, own_},
                                      {remote_key_, 0}, 5)
                  .ok());
  network_->Run(3 * network_->options().receiver_retry_ns);
  ASSERT_TRUE(fabric(1).PostReceive(at_peer_, WorkId(2), {}).ok());
  EXPECT_EQ(Next(1).immediate, 5u);
  EXPECT_EQ(Next(0).status, CompletionStatus::kOk);
  EXPECT_EQ(Landed(), kBytes);
}

// FB5: the peer has gone, and its bytes still come.
// FB6: others have used them up for a while.
TEST_P(SimFabricTest, HiddenReceivesAreFoundAgain) {
  Start({});
  const auto write = [&](uint64_t work) {
    ASSERT_TRUE(fabric(1).PostReceive(at_peer_, WorkId(100 + work), {}).ok());
    ASSERT_TRUE(fabric(0)
                    .PostWriteImmediate(at_host_, WorkId(work),
                                        {own_key_, own_}, {remote_key_, 0}, 5)
                    .ok());
  };
  network_->HideReceives(1, true);
  write(1);
  network_->Run(3 * network_->options().receiver_retry_ns);
  EXPECT_TRUE(IsPart()) << Landed();
  network_->HideReceives(1, false);
  EXPECT_EQ(Next(1).work, WorkId(101));
  EXPECT_EQ(Next(0).status, CompletionStatus::kOk);
  const uint64_t tries = network_->receivers_not_ready();
  EXPECT_GT(tries, 0u);

  network_->HideReceives(1, true);
  write(2);
  EXPECT_EQ(Next(0).status, CompletionStatus::kReceiverNotReady);
  EXPECT_EQ(network_->receivers_not_ready(),
            tries + network_->options().receiver_retries + 1);
  EXPECT_EQ(network_->receives_hidden(1), network_->receivers_not_ready());
  EXPECT_EQ(Next(1).status, CompletionStatus::kFlushed);
}

// FB9, P-R3: what was lost is told, as flushed, whatever became of it.
TEST_P(SimFabricTest, QueueThatOverrunsBreaksAllConnections) {
  Start({});
  const std::string address = *fabric(1).Listen(SimNetwork::Address(1, 0));
  const ConnectionId other = *fabric(0).Connect(address, "", Deadline());
  ASSERT_TRUE(
      fabric(1).Accept(Await(1, ConnectionEvent::Kind::kRequested), "").ok());
  Await(0, ConnectionEvent::Kind::kEstablished);
  const ConnectionId waiting = *fabric(0).Connect(address, "", Deadline());

  network_->LimitCompletions(0, 1);
  for (const uint64_t work : {1, 2, 3}) Write(work);
  network_->Run(1'000'000);
  EXPECT_EQ(network_->overruns(0), 1u);
  EXPECT_EQ(Landed(), kBytes);
  const CompletionStatus expected[] = {CompletionStatus::kOk,
                                       CompletionStatus::kFlushed,
                                       CompletionStatus::kFlushed};
  for (uint64_t i = 0; i < 3; ++i) {
    const Completion done = Next(0);
    EXPECT_EQ(done.work, WorkId(i + 1));
    EXPECT_EQ(done.status, expected[i]);
  }
  std::vector<ConnectionEvent> events;
  fabric(0).Poll({}, &events);
  ASSERT_EQ(events.size(), 3u);
  for (const ConnectionEvent& event : events) {
    EXPECT_EQ(event.kind, event.connection == waiting
                              ? ConnectionEvent::Kind::kUnreachable
                              : ConnectionEvent::Kind::kDisconnected);
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      fabric(0).PostSend(other, WorkId(4), {own_key_, own_})));
  Await(1, ConnectionEvent::Kind::kDisconnected);

  network_->LimitCompletions(0);
  at_host_ = *fabric(0).Connect(address, "", Deadline());
  ASSERT_TRUE(
      fabric(1).Accept(Await(1, ConnectionEvent::Kind::kRequested), "").ok());
  Await(0, ConnectionEvent::Kind::kEstablished);
  Write(5);
  EXPECT_EQ(Next(0).status, CompletionStatus::kOk);
}

TEST_P(SimFabricTest, SlowLinkTakesLongerAsLongAsItIsSlow) {
  Start({});
  const auto took = [&](uint64_t work) {
    const int64_t start = network_->clock().NowNanos();
    Write(work);
    EXPECT_EQ(Next(0).status, CompletionStatus::kOk);
    return network_->clock().NowNanos() - start;
  };
  const int64_t usual = took(1);
  network_->SlowDown(0, 1, 10'000'000);
  EXPECT_GT(took(2), 3 * usual);
  network_->SlowDown(0, 1, 0);
  EXPECT_LT(took(3), 3 * usual);
}

TEST_P(SimFabricTest, BytesLandLateUntilClose) {
  SimOptions options;
  options.packet_bytes = 64;
  options.late_parts_max = 1'000;
  Start(options);
  for (uint64_t i = 0; i < 20; ++i) Write(i);
  while (Landed() == 0) ASSERT_TRUE(network_->Step());
  ASSERT_TRUE(fabric(0).Close(at_host_).ok());
  EXPECT_EQ(Await(1, ConnectionEvent::Kind::kDisconnected), at_peer_);
  std::fill(remote_.begin(), remote_.end(), std::byte{0});
  while (Landed() == 0) ASSERT_TRUE(network_->Step()) << "nothing came late";
  ASSERT_TRUE(fabric(1).Close(at_peer_).ok());
  std::fill(remote_.begin(), remote_.end(), std::byte{0});
  while (network_->Step()) {
  }
  EXPECT_EQ(Landed(), 0u);
}

// A crash in the middle of a write leaves a part; nobody is told, and whoever
// posts finds out.
TEST_P(SimFabricTest, CrashLeavesAPartAndPeersFindOut) {
  SimOptions options;
  options.packet_bytes = 64;
  Start(options);
  Write(1);
  while (!IsPart()) ASSERT_TRUE(network_->Step());
  const uint64_t landed = Landed();
  const int64_t crashed_at = network_->clock().NowNanos();
  network_->Crash(1);
  EXPECT_FALSE(network_->IsUp(1));
  EXPECT_EQ(Next(0).status, CompletionStatus::kPeerGone);
  EXPECT_GE(network_->clock().NowNanos() - crashed_at,
            options.limits.retry_ns - 100'000);
  EXPECT_EQ(Await(0, ConnectionEvent::Kind::kDisconnected), at_host_);
  EXPECT_EQ(Landed(), landed);
}

TEST_P(SimFabricTest, HostComesBackAsANewAdapter) {
  Start({});
  network_->Crash(1);
  network_->Restart(1);
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Deregister(remote_key_)));
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Close(at_peer_)));
  Write(1);
  EXPECT_EQ(Next(0).status, CompletionStatus::kPeerGone);
  EXPECT_EQ(Landed(), 0u);
  const std::string address = *fabric(1).Listen(SimNetwork::Address(1, 0));
  const auto again = fabric(0).Connect(address, "", Deadline());
  ASSERT_TRUE(again.ok());
  const ConnectionId request = Await(1, ConnectionEvent::Kind::kRequested);
  EXPECT_NE(request, at_peer_);
}

// Writes that a host had sent before it crashed may arrive all the same.
TEST_P(SimFabricTest, WritesOutliveTheirSender) {
  SimOptions options;
  options.delay_ns_min = 2'000;
  Start(options);
  Write(1);
  network_->Run(options.step_ns_max + 1);
  ASSERT_EQ(Landed(), 0u);
  network_->Crash(0);
  while (network_->Step()) {
  }
  EXPECT_EQ(Landed(), kBytes);
}

TEST_P(SimFabricTest, BrokenConnectionsAreDrawn) {
  SimOptions options;
  options.break_probability = 1;
  Start(options);
  Write(1);
  EXPECT_EQ(Next(0).status, CompletionStatus::kPeerGone);
  EXPECT_EQ(Await(0, ConnectionEvent::Kind::kDisconnected), at_host_);
  EXPECT_EQ(Await(1, ConnectionEvent::Kind::kDisconnected), at_peer_);
}

// Own bytes that were deregistered before they left.
TEST_P(SimFabricTest, OwnBytesThatAreGoneFailInTheirTurn) {
  Start({});
  std::vector<std::byte> other(64);
  const fabric::RegionKey key = *fabric(0).Register(other, RemoteAccess::kNone);
  Write(1);
  ASSERT_TRUE(
      fabric(0)
          .PostWrite(at_host_, WorkId(2), {key, other}, {remote_key_, 0})
          .ok());
  Write(3);
  ASSERT_TRUE(fabric(0).Deregister(key).ok());
  const CompletionStatus expected[] = {CompletionStatus::kOk,
                                       CompletionStatus::kLocalAccess,
                                       CompletionStatus::kFlushed};
  for (uint64_t i = 0; i < 3; ++i) {
    const Completion done = Next(0);
    EXPECT_EQ(done.work, WorkId(i + 1));
    EXPECT_EQ(done.status, expected[i]);
  }
}

// One direction alone: the write lands, its answer does not come.
TEST_P(SimFabricTest, LinkCutOneWayLosesTheAnswerOnly) {
  Start({});
  network_->CutOneWay(1, 0);
  Write(1);
  EXPECT_EQ(Next(0).status, CompletionStatus::kPeerGone);
  EXPECT_EQ(Landed(), kBytes);
}

}  // namespace
}  // namespace alpheus::testing
