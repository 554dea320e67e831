// SPDX-License-Identifier: Apache-2.0
// Memory of simulated machines: what counts as persistent by platform, what a
// power cut leaves of it, and who may still have bytes on their way into it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/platforms.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

using fabric::ConnectionEvent;

namespace {

constexpr uint64_t kBytes = 512;

RunOptions OptionsOn(const char* platform) {
  RunOptions options;
  options.nodes = 2;
  options.write_quorum = 1;
  options.platforms.assign(2, *SimulatedPlatform(platform));
  return options;
}

// The application of machine 1 writes ones into the ring of machine 0, by
// itself and unasked.
class Writer {
 public:
  explicit Writer(const char* platform) : world_(OptionsOn(platform)) {
    from_ = world_.PrimaryHost(world_.machine(1));
    to_ = world_.PrimaryHost(world_.machine(0));
    network().Restart(from_);
    network().Restart(to_);
    own_key_ = *fabric(from_).Register(own_, fabric::RemoteAccess::kNone);
    key_ = *fabric(to_).Register(Ring(), fabric::RemoteAccess::kWrite);
    const std::string address =
        *fabric(to_).Listen(model::SimNetwork::Address(to_, 0));
    at_from_ = *fabric(from_).Connect(address, "", Deadline());
    EXPECT_TRUE(fabric(to_)
                    .Accept(Await(to_, ConnectionEvent::Kind::kRequested), "")
                    .ok());
    Await(from_, ConnectionEvent::Kind::kEstablished);
  }

  World& world() { return world_; }
  model::SimNetwork& network() { return world_.network(); }
  World::Machine& target() { return world_.machine(0); }
  std::span<std::byte> Ring() {
    return target().pmem->region().subspan(world_.layout().ring_offset, kBytes);
  }

  void Write() {
    EXPECT_TRUE(
        fabric(from_)
            .PostWrite(at_from_, fabric::WorkId(1), {own_key_, own_}, {key_, 0})
            .ok());
  }
  // Writes, and runs until some of it is in the adapter.
  void WriteToTheAdapter() {
    Write();
    while (!network().stages(to_).HasInbound()) ASSERT_TRUE(network().Step());
  }
  void LandAll() {
    while (network().stages(to_).HasInbound()) ASSERT_TRUE(network().Step());
  }

  uint64_t Visible() { return OnesIn(Ring()); }
  uint64_t OnMedium() {
    return OnesIn(
        world_.Medium(0).subspan(world_.layout().ring_offset, kBytes));
  }
  std::string violated() {
    const auto& violation = world_.oracle().violation();
    return violation ? violation->invariant : "";
  }

 private:
  fabric::Fabric& fabric(int host) { return network().fabric(host); }
  static uint64_t OnesIn(std::span<const std::byte> bytes) {
    return static_cast<uint64_t>(
        std::count(bytes.begin(), bytes.end(), std::byte{1}));
  }
  fabric::ConnectionId Await(int host, ConnectionEvent::Kind kind) {
    do {
      std::vector<ConnectionEvent> events;
      fabric(host).Poll({}, &events);
      for (const ConnectionEvent& event : events) {
        if (event.kind == kind) return event.connection;
      }
    } while (network().Step());
    ADD_FAILURE() << "no event " << static_cast<int>(kind);
    return {};
  }

  std::vector<std::byte> own_ = std::vector<std::byte>(kBytes, std::byte{1});
  World world_;
  int from_ = 0;
  int to_ = 0;
  fabric::RegionKey own_key_;
  fabric::RegionKey key_;
  fabric::ConnectionId at_from_;
};

TEST(WorldMemoryTest, WhatIsVisibleIsOnNoMediumOfDmp) {
  Writer writer("dmp,infiniband");
  writer.Write();
  while (writer.Visible() < kBytes) ASSERT_TRUE(writer.network().Step());
  EXPECT_EQ(writer.OnMedium(), 0u);
}

TEST(WorldMemoryTest, WithoutDdioTheControllerGetsItByItself) {
  Writer writer("dmp,no-ddio,infiniband");
  writer.Write();
  while (writer.OnMedium() < kBytes) ASSERT_TRUE(writer.network().Step());
}

TEST(WorldMemoryTest, WhatIsVisibleIsOnTheMediumOfMhp) {
  Writer writer("mhp,infiniband");
  writer.WriteToTheAdapter();
  EXPECT_LT(writer.OnMedium(), kBytes);
  writer.LandAll();
  EXPECT_EQ(writer.OnMedium(), kBytes);
  writer.world().CutPower(writer.target());
  EXPECT_EQ(writer.OnMedium(), kBytes);
}

TEST(WorldMemoryTest, WhatIsInTheAdapterIsOnTheMediumOfWsp) {
  Writer writer("wsp,infiniband");
  writer.WriteToTheAdapter();
  EXPECT_LT(writer.Visible(), kBytes);
  EXPECT_EQ(writer.OnMedium(), kBytes);
  writer.world().CutPower(writer.target());
  EXPECT_EQ(writer.Visible(), kBytes);
}

// The words of the one adapter are still on their way when the program that
// uses the other one is gone.
TEST(WorldMemoryTest, AKillOfTheOtherProgramStopsNoWords) {
  Writer writer("dmp,no-ddio,infiniband");
  writer.WriteToTheAdapter();
  const std::byte* const at = writer.target().pmem->region().data();
  writer.target().region_user = World::RegionUser::kNode;
  writer.world().KillNode(writer.target());
  EXPECT_EQ(writer.target().pmem->region().data(), at);
  while (writer.OnMedium() < kBytes) ASSERT_TRUE(writer.network().Step());
}

TEST(WorldMemoryTest, WhoWasNotPromisedTheRingIsSeen) {
  Writer writer("dmp,infiniband");
  writer.Write();
  while (writer.Visible() == 0) ASSERT_TRUE(writer.network().Step());
  EXPECT_EQ(writer.violated(), "P-INV-6");
  EXPECT_GT(writer.world().counters().landings_checked, 0u);
}

// The sessions that brought it were ended before.
TEST(WorldMemoryTest, WhatIsInTheAdapterAtAPromiseMayNotLand) {
  Writer writer("dmp,infiniband");
  writer.WriteToTheAdapter();
  writer.world().checkers().fence.Promised(0, quorum::Promise{});
  writer.LandAll();
  EXPECT_EQ(writer.violated(), "P-INV-6");
}

TEST(WorldMemoryTest, WhatCameBehindThePromiseMayNotLand) {
  Writer writer("dmp,infiniband");
  writer.world().checkers().fence.Promised(0, quorum::Promise{});
  writer.WriteToTheAdapter();
  writer.LandAll();
  EXPECT_EQ(writer.violated(), "P-INV-6");
}

TEST(SimPlatformsTest, AllThatAreSimulatedAreDrawn) {
  std::vector<std::string> seen;
  bool differ = false;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto platforms = DrawPlatforms(seed, 3, {});
    ASSERT_EQ(platforms.size(), 3u);
    for (const replication::Platform& platform : platforms) {
      EXPECT_TRUE(
          SimulatedPlatform(replication::PlatformToString(platform)).ok());
      seen.push_back(replication::PlatformToString(platform));
      differ = differ || platform != platforms[0];
    }
  }
  std::ranges::sort(seen);
  const auto rest = std::ranges::unique(seen);
  // Domain, DDIO, transport.
  EXPECT_EQ(rest.begin() - seen.begin(), 3 * 2 * 2);
  EXPECT_TRUE(differ);
}

TEST(SimPlatformsTest, AFixedOneIsEverywhere) {
  const replication::Platform fixed = *SimulatedPlatform("wsp,infiniband");
  const auto platforms = DrawPlatforms(5, 4, fixed);
  EXPECT_EQ(platforms, std::vector<replication::Platform>(4, fixed));
  EXPECT_EQ(PlatformsText(platforms), "all wsp,ddio,dram,infiniband");
}

TEST(SimPlatformsTest, WhatIsNotSimulatedIsRefused) {
  EXPECT_FALSE(SimulatedPlatform("iwarp").ok());
  EXPECT_FALSE(SimulatedPlatform("pm").ok());
  EXPECT_FALSE(SimulatedPlatform("dmp,tin").ok());
}

}  // namespace
}  // namespace alpheus::sim
