// SPDX-License-Identifier: Apache-2.0
// Hosts with modelled memory: what power cuts and kills leave of what peers
// wrote, by platform, and by what the requester or the responder knew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;
using fabric::ConnectionId;
using fabric::Operation;
using model::SimNetwork;
using model::SimOptions;
using replication::PersistenceDomain;
using replication::Platform;
using replication::Transport;

namespace {

using Stage = model::StagedMemory::Stage;

constexpr uint64_t kBytes = 1024;
constexpr uint64_t kSeeds = 40;

// Host 0 writes ones into the modelled memory of host 1.
class Hosts {
 public:
  Hosts(uint64_t seed, const Platform& platform,
        SimOptions options = SimOptions()) {
    options.seed = seed;
    options.hosts = 2;
    options.packet_bytes = 64;
    options.stage_words = 8;
    options.platforms = {Platform(), platform};
    network_ = std::make_unique<SimNetwork>(options);
    network_->AttachMemory(1, memory_);
    own_key_ = *fabric(0).Register(own_, fabric::RemoteAccess::kNone);
    Connect();
  }

  // Host 1 registers, host 0 connects.
  void Connect() {
    key_ = *fabric(1).Register(memory_.region(), fabric::RemoteAccess::kAll);
    const std::string address = *fabric(1).Listen(SimNetwork::Address(1, 0));
    at_host_ = *fabric(0).Connect(address, "", Deadline());
    at_peer_ = Await(1, ConnectionEvent::Kind::kRequested);
    EXPECT_TRUE(fabric(1).Accept(at_peer_, "").ok());
    Await(0, ConnectionEvent::Kind::kEstablished);
    Await(1, ConnectionEvent::Kind::kEstablished);
  }

  SimNetwork& network() { return *network_; }
  fabric::Fabric& fabric(int host) { return network_->fabric(host); }
  model::ModelPersistence& memory() { return memory_; }
  fabric::RegionKey key() const { return key_; }
  ConnectionId at_host() const { return at_host_; }
  ConnectionId at_peer() const { return at_peer_; }

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
  fabric::Completion Next(int host) {
    do {
      fabric::Completion completion;
      if (fabric(host).Poll({&completion, 1}, nullptr) == 1) return completion;
    } while (network_->Step());
    ADD_FAILURE() << "no completion at host " << host;
    return {};
  }
  void ExpectOk(int host, Operation operation) {
    const fabric::Completion done = Next(host);
    EXPECT_EQ(done.operation, operation);
    EXPECT_EQ(done.status, fabric::CompletionStatus::kOk);
  }

  void Write() {
    EXPECT_TRUE(
        fabric(0)
            .PostWrite(at_host_, fabric::WorkId(1), {own_key_, own_}, {key_, 0})
            .ok());
  }
  void WriteImmediate() {
    EXPECT_TRUE(fabric(0)
                    .PostWriteImmediate(at_host_, fabric::WorkId(2),
                                        {own_key_, own_}, {key_, 0}, 5)
                    .ok());
  }
  void Flush() {
    EXPECT_TRUE(fabric(0)
                    .PostFlush(at_host_, fabric::WorkId(3), {key_, 0}, kBytes)
                    .ok());
  }
  void PostReceive() {
    EXPECT_TRUE(fabric(1).PostReceive(at_peer_, fabric::WorkId(4), {}).ok());
  }
  void FlushByProcessor() {
    memory_.Flush(memory_.region().data(), kBytes);
    EXPECT_TRUE(memory_.Fence());
  }
  void StepUntilOver() {
    while (network_->Step()) {
    }
  }

  uint64_t Visible() {
    const auto region = memory_.region();
    return static_cast<uint64_t>(
        std::count(region.begin(), region.end(), std::byte{1}));
  }
  uint64_t Persistent() const {
    const auto floor = memory_.persistent();
    return static_cast<uint64_t>(
        std::count(floor.begin(), floor.end(), std::byte{1}));
  }

 private:
  std::vector<std::byte> own_ = std::vector<std::byte>(kBytes, std::byte{1});
  model::ModelPersistence memory_{2 * kBytes};
  std::unique_ptr<SimNetwork> network_;  // goes first
  fabric::RegionKey own_key_;
  fabric::RegionKey key_;
  ConnectionId at_host_;
  ConnectionId at_peer_;
};

Platform PlatformOf(PersistenceDomain domain, bool ddio, Transport transport) {
  Platform platform;
  platform.domain = domain;
  platform.ddio = ddio;
  platform.transport = transport;
  return platform;
}

constexpr PersistenceDomain kDomains[] = {PersistenceDomain::kMemory,
                                          PersistenceDomain::kHierarchy,
                                          PersistenceDomain::kSystem};

// The last event that somebody knows of before the power goes.
enum class Known { kWriteCompleted, kFlushCompleted, kReceived, kFlushed };

// Whether all is kept then, with every seed. If not, some is lost with some.
bool IsEnough(const Platform& platform, Known known) {
  uint64_t lost = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Hosts hosts(seed, platform);
    if (known == Known::kReceived || known == Known::kFlushed) {
      hosts.PostReceive();
      hosts.WriteImmediate();
      hosts.ExpectOk(1, Operation::kReceiveImmediate);
      if (known == Known::kFlushed) hosts.FlushByProcessor();
    } else {
      hosts.Write();
      if (known == Known::kFlushCompleted) hosts.Flush();
      hosts.ExpectOk(0, Operation::kWrite);
      if (known == Known::kFlushCompleted) hosts.ExpectOk(0, Operation::kFlush);
    }
    hosts.network().LosePower(1);
    EXPECT_FALSE(hosts.network().IsUp(1));
    EXPECT_EQ(hosts.Persistent() % 8, 0u) << "words are whole";
    EXPECT_TRUE(hosts.memory().DirtyWords().empty());
    EXPECT_EQ(hosts.Visible(), hosts.Persistent());
    lost += hosts.Persistent() < kBytes ? 1 : 0;
  }
  return lost == 0;
}

// The taxonomy's §3.2 for one write, with the whole adapter in the model. A
// wrong choice is not always fatal, but is seen in 40 seeds.
TEST(SimStagesOfPlatformsTest, PowerCutTakesWhatThePlatformDoesNotKeep) {
  for (const PersistenceDomain domain : kDomains) {
    for (const bool ddio : {true, false}) {
      const Platform platform =
          PlatformOf(domain, ddio, Transport::kInfiniBand);
      SCOPED_TRACE(
          absl::StrCat("domain ", static_cast<int>(domain), ", DDIO ", ddio));
      const bool is_memory = domain == PersistenceDomain::kMemory;
      EXPECT_EQ(IsEnough(platform, Known::kWriteCompleted),
                domain == PersistenceDomain::kSystem);
      EXPECT_EQ(IsEnough(platform, Known::kFlushCompleted),
                !is_memory || !ddio);
      EXPECT_EQ(IsEnough(platform, Known::kReceived), !is_memory);
      EXPECT_TRUE(IsEnough(platform, Known::kFlushed));
    }
  }
}

// An adapter in software stores into the cache: a flush takes nothing to the
// memory controller, whatever the operator says of DDIO.
TEST(SimStagesOfPlatformsTest, SoftwareAdapterKnowsNoDdio) {
  for (const bool ddio : {true, false}) {
    const auto platform = [&](PersistenceDomain domain) {
      return PlatformOf(domain, ddio, Transport::kTcp);
    };
    EXPECT_FALSE(
        IsEnough(platform(PersistenceDomain::kMemory), Known::kFlushCompleted));
    EXPECT_TRUE(
        IsEnough(platform(PersistenceDomain::kMemory), Known::kFlushed));
    // Its completion says visible.
    EXPECT_TRUE(IsEnough(platform(PersistenceDomain::kHierarchy),
                         Known::kWriteCompleted));
  }
}

class SimStagesTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  const Platform adapter_completes_ =
      PlatformOf(PersistenceDomain::kMemory, true, Transport::kInfiniBand);
};

// Messages are faster than words.
SimOptions FastMessages() {
  SimOptions options;
  options.delay_ns_min = 10;
  options.delay_ns_max = 100;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimStagesTest,
                         ::testing::Range(uint64_t{1}, uint64_t{9}));

// FB8: on InfiniBand the completion comes first, the bytes by themselves.
TEST_P(SimStagesTest, WriteThatCompletedIsInFlight) {
  Hosts hosts(GetParam(), adapter_completes_, FastMessages());
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  EXPECT_LT(hosts.Visible(), kBytes);
  const model::StagedMemory& stages = hosts.network().stages(1);
  EXPECT_GT(stages.WordsAt(Stage::kAdapter) + stages.WordsAt(Stage::kIio), 0u);
  hosts.StepUntilOver();
  EXPECT_EQ(hosts.Visible(), kBytes);
  EXPECT_EQ(hosts.Persistent(), 0u) << "DDIO: in the cache";
}

// The weakest platform, and the order of old: completed is visible.
TEST_P(SimStagesTest, CompletedIsVisibleOnTheWeakestPlatform) {
  Hosts hosts(GetParam(), Platform());
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  EXPECT_EQ(hosts.Visible(), kBytes);
  EXPECT_EQ(hosts.Persistent(), 0u);
}

TEST_P(SimStagesTest, ControllerGetsAllByItselfWithDdioOff) {
  Hosts hosts(GetParam(), PlatformOf(PersistenceDomain::kMemory, false,
                                     Transport::kInfiniBand));
  hosts.Write();
  hosts.StepUntilOver();
  EXPECT_EQ(hosts.Persistent(), kBytes);
}

// A kill: what was acknowledged lands before the adapter is gone, and stays
// open until somebody flushes it; a power cut behind the kill may take it.
TEST_P(SimStagesTest, KillLosesNothingThatWasAcknowledged) {
  Hosts hosts(GetParam(), adapter_completes_);
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  hosts.network().Crash(1);
  EXPECT_EQ(hosts.Visible(), kBytes);
  EXPECT_EQ(hosts.Persistent(), 0u);
  hosts.StepUntilOver();
  hosts.network().LosePower(1);
  EXPECT_LT(hosts.Persistent(), kBytes);
  EXPECT_EQ(hosts.Visible(), hosts.Persistent());
}

// The hardware goes on, the program doesn't: what was visible is not lost to
// the controller, whoever comes next.
TEST_P(SimStagesTest, ControllerGetsTheRestBehindAKill) {
  Hosts hosts(GetParam(), PlatformOf(PersistenceDomain::kMemory, false,
                                     Transport::kInfiniBand));
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  hosts.network().Crash(1);
  EXPECT_EQ(hosts.Visible(), kBytes);
  const uint64_t before = hosts.Persistent();
  EXPECT_EQ(before + 8 * hosts.network().stages(1).WordsAt(Stage::kVisible),
            kBytes);
  hosts.network().Restart(1);
  hosts.StepUntilOver();
  EXPECT_EQ(hosts.Persistent(), kBytes);
}

// Each word that becomes visible, with its writer.
TEST_P(SimStagesTest, LandingsAreTold) {
  Hosts hosts(GetParam(), adapter_completes_);
  uint64_t told = 0;
  hosts.network().SetOnLanding([&](const model::LandedBytes& landed) {
    EXPECT_EQ(landed.host, 1);
    EXPECT_EQ(landed.from.host, 0);
    EXPECT_EQ(landed.from.connection, hosts.at_host());
    told += landed.bytes.size();
  });
  hosts.Write();
  hosts.Write();
  hosts.StepUntilOver();
  EXPECT_EQ(told, 2 * kBytes);
}

// Two adapters of one machine.
TEST_P(SimStagesTest, MemoryThatIsSharedIsResetOnce) {
  Hosts hosts(GetParam(), PlatformOf(PersistenceDomain::kSystem, true,
                                     Transport::kInfiniBand));
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  hosts.network().AttachMemory(0, hosts.memory());
  hosts.network().LosePowerOfAdapter(1);
  EXPECT_EQ(hosts.Visible(), kBytes);
  EXPECT_EQ(hosts.Persistent(), kBytes) << "the image is the caller's";
  hosts.network().DetachMemory(0, hosts.memory());
}

// The domain's caches are kept when the program was dead before, too.
TEST_P(SimStagesTest, PowerCutBehindAKillKeepsTheCachesOfTheirDomain) {
  Hosts hosts(GetParam(), PlatformOf(PersistenceDomain::kHierarchy, true,
                                     Transport::kInfiniBand));
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  hosts.network().Crash(1);
  hosts.network().LosePower(1);
  EXPECT_EQ(hosts.Persistent(), kBytes);
}

// A kill in the middle of what was not acknowledged: a part, and no more of it.
TEST_P(SimStagesTest, KillLeavesAPartOfWhatWasNotAcknowledged) {
  Hosts hosts(GetParam(), Platform());
  hosts.Write();
  while (hosts.Visible() == 0) ASSERT_TRUE(hosts.network().Step());
  hosts.network().Crash(1);
  const uint64_t left = hosts.Visible();
  EXPECT_LT(left, kBytes);
  hosts.StepUntilOver();
  EXPECT_EQ(hosts.Visible(), left);
}

// FB5: the program does nothing, the peer has gone; until Close they land.
TEST_P(SimStagesTest, BytesLandLateUntilClose) {
  SimOptions options;
  options.late_parts_max = 1'000;
  Hosts hosts(GetParam(), adapter_completes_, options);
  for (int i = 0; i < 20; ++i) hosts.Write();
  while (hosts.Visible() == 0) ASSERT_TRUE(hosts.network().Step());
  ASSERT_TRUE(hosts.fabric(0).Close(hosts.at_host()).ok());
  hosts.Await(1, ConnectionEvent::Kind::kDisconnected);
  const auto clear = [&] {
    const auto region = hosts.memory().region();
    std::fill(region.begin(), region.end(), std::byte{0});
  };
  clear();
  while (hosts.Visible() == 0) {
    ASSERT_TRUE(hosts.network().Step()) << "nothing came late";
  }
  ASSERT_TRUE(hosts.fabric(1).Close(hosts.at_peer()).ok());
  clear();
  hosts.StepUntilOver();
  EXPECT_EQ(hosts.Visible(), 0u);
}

// FB6, P-R1: all but the last packet, or less.
TEST_P(SimStagesTest, WriteThatFindsNoReceiveLandsInPart) {
  Hosts hosts(GetParam(), adapter_completes_);
  hosts.WriteImmediate();
  EXPECT_EQ(hosts.Next(0).status, fabric::CompletionStatus::kReceiverNotReady);
  hosts.StepUntilOver();
  EXPECT_GT(hosts.Visible(), 0u);
  EXPECT_EQ(hosts.Visible(), kBytes - 64);
  fabric::Completion none;
  EXPECT_EQ(hosts.fabric(1).Poll({&none, 1}, nullptr), 0u);
}

TEST_P(SimStagesTest, ReceiveThatIsPostedInTimeIsFound) {
  Hosts hosts(GetParam(), adapter_completes_);
  hosts.WriteImmediate();
  hosts.network().Run(3 * hosts.network().options().receiver_retry_ns);
  EXPECT_EQ(hosts.Visible(), kBytes - 64);
  hosts.PostReceive();
  hosts.ExpectOk(1, Operation::kReceiveImmediate);
  EXPECT_EQ(hosts.Visible(), kBytes);
  hosts.ExpectOk(0, Operation::kWriteImmediate);
}

// Memory stays the host's when it comes back, and holds what was kept.
TEST_P(SimStagesTest, HostComesBackWithItsMemory) {
  Hosts hosts(
      GetParam(),
      PlatformOf(PersistenceDomain::kSystem, true, Transport::kInfiniBand),
      FastMessages());
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  hosts.network().LosePower(1);
  hosts.network().Restart(1);
  EXPECT_EQ(hosts.Visible(), kBytes);
  hosts.memory().Reset(std::vector<std::byte>(2 * kBytes));
  hosts.Connect();
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  EXPECT_LT(hosts.Visible(), kBytes) << "through the stages again";
  hosts.StepUntilOver();
  EXPECT_EQ(hosts.Visible(), kBytes);
}

TEST_P(SimStagesTest, DetachedMemoryIsPlain) {
  Hosts hosts(GetParam(), adapter_completes_);
  hosts.network().DetachMemory(1, hosts.memory());
  hosts.Write();
  hosts.ExpectOk(0, Operation::kWrite);
  EXPECT_EQ(hosts.Visible(), kBytes);
  hosts.network().LosePower(1);
  EXPECT_EQ(hosts.Visible(), kBytes) << "nobody's";
}

// Invariant 1 (sim_network.h).
TEST_P(SimStagesTest, SameSeedSameImages) {
  const auto run = [](uint64_t seed) {
    Hosts hosts(seed, PlatformOf(PersistenceDomain::kMemory, false,
                                 Transport::kInfiniBand));
    std::string trace;
    hosts.network().SetTrace([&](std::string_view line) {
      absl::StrAppend(&trace, absl::string_view(line.data(), line.size()),
                      "\n");
    });
    for (int i = 0; i < 5; ++i) hosts.Write();
    hosts.network().Run(6'000);
    hosts.network().LosePower(1);
    const auto floor = hosts.memory().persistent();
    trace.append(reinterpret_cast<const char*>(floor.data()), floor.size());
    return trace;
  };
  EXPECT_EQ(run(GetParam()), run(GetParam()));
  EXPECT_NE(run(GetParam()), run(GetParam() + 1));
}

// A power cut in the middle finds words that have gone on, word by word.
TEST(SimStagesOfPlatformsTest, CutsInTheMiddleLeaveAllSortsOfParts) {
  std::vector<uint64_t> left;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Hosts hosts(seed, PlatformOf(PersistenceDomain::kMemory, false,
                                 Transport::kInfiniBand));
    hosts.Write();
    hosts.ExpectOk(0, Operation::kWrite);
    hosts.network().LosePower(1);
    left.push_back(hosts.Persistent());
  }
  std::sort(left.begin(), left.end());
  EXPECT_LT(left.front(), kBytes / 4);
  EXPECT_GT(left.back(), kBytes / 2);
  left.erase(std::unique(left.begin(), left.end()), left.end());
  EXPECT_GT(left.size(), kSeeds / 2);
}

TEST(SimStagesDeathTest, IwarpIsNotModelled) {
  SimOptions options;
  options.platforms = {
      PlatformOf(PersistenceDomain::kMemory, true, Transport::kIwarp)};
  EXPECT_DEATH(SimNetwork network(options), "iWARP is not modelled");
}

TEST(SimStagesDeathTest, OnlyWhatIsAttachedIsDetached) {
  SimNetwork network((SimOptions()));
  model::ModelPersistence memory(kLineBytes);
  EXPECT_DEATH(network.DetachMemory(0, memory), "was attached");
}

}  // namespace
}  // namespace alpheus::testing
