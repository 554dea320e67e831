// SPDX-License-Identifier: Apache-2.0
// Images of replicas, read from a served node over a simulated network.
#include "recovery/follow/remote_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "tests/recovery/server/served_world.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;
using quorum::ClusterKey;

namespace {

using ::testing::HasSubstr;

constexpr int64_t kMillisecond = 1'000'000;
// The reader is on a host where the world has nobody.
constexpr int kReaderHost = 3;
constexpr int kLiarHost = 4;

ServedWorld::Options WithReader(int64_t silence_ns_max = 1'000'000'000'000) {
  ServedWorld::Options options;
  options.network.hosts = kLiarHost + 1;
  options.server.silence_ns_max = silence_ns_max;
  return options;
}

class Reader {
 public:
  explicit Reader(ServedWorld& world, NodeId node = kNode,
                  const ClusterKey& key = {}, Uuid log_id = kLogA,
                  std::string address = {})
      : world_(world) {
    recovery::RemoteRegion::Options options;
    options.at.address = address.empty() ? world.address() : address;
    options.at.node = node;
    options.at.credentials = {key, &random_};
    options.at.hello = {kCluster, log_id, {NodeId(7), 1}};
    region_.emplace(fabric(), std::move(options), [this](uint64_t bytes) {
      image_.resize(bytes);
      return std::span<std::byte>(image_);
    });
  }

  fabric::Fabric& fabric() { return world_.network().fabric(kReaderHost); }
  recovery::RemoteRegion& region() { return *region_; }
  std::vector<std::byte>& image() { return image_; }

  // Takes what came; false if it is done.
  bool Step() {
    std::vector<ConnectionEvent> events;
    std::vector<fabric::Completion> completions(16);
    const size_t count = fabric().Poll(completions, &events);
    for (const ConnectionEvent& event : events)
      region_->OnConnectionEvent(event);
    for (size_t i = 0; i < count; ++i) region_->OnCompletion(completions[i]);
    return !region_->done();
  }
  // Lets so much time pass between two looks.
  void Finish(int64_t ns = 50'000) {
    for (int i = 0; i < 10'000 && Step(); ++i) world_.Run(ns);
    EXPECT_TRUE(region_->done());
  }
  const absl::Status& status() const { return region_->status(); }

 private:
  ServedWorld& world_;
  Random random_{3};
  std::vector<std::byte> image_;
  std::optional<recovery::RemoteRegion> region_;
};

// A node that says of itself what no node says.
class LyingNode {
 public:
  LyingNode(ServedWorld& world, int host, recovery::ServerHello server_hello,
            recovery::Viewed viewed)
      : fabric_(world.network().fabric(host)),
        server_hello_(server_hello),
        viewed_(viewed),
        address_(*fabric_.Listen(model::SimNetwork::Address(host, 1))),
        slots_(*replication::MessageSlots::Make(fabric_, 2,
                                                recovery::kMessageBytesMax)) {}

  const std::string& address() const { return address_; }

  void Step() {
    std::vector<ConnectionEvent> events;
    std::array<fabric::Completion, 4> completions;
    const size_t count = fabric_.Poll(completions, &events);
    for (const ConnectionEvent& event : events) {
      if (event.kind != ConnectionEvent::Kind::kRequested) continue;
      ASSERT_TRUE(
          fabric_
              .PostReceive(event.connection, fabric::WorkId(1), slots_->At(0))
              .ok());
      ASSERT_TRUE(fabric_
                      .Accept(event.connection,
                              recovery::EncodeServerHello(server_hello_))
                      .ok());
    }
    for (const fabric::Completion& done : std::span(completions).first(count)) {
      if (done.operation != fabric::Operation::kReceive ||
          done.status != fabric::CompletionStatus::kOk) {
        continue;
      }
      const std::vector<std::byte> reply =
          recovery::EncodeMessage(kLogA, viewed_);
      fabric::LocalBytes slot = slots_->At(1);
      std::ranges::copy(reply, slot.bytes.begin());
      slot.bytes = slot.bytes.first(reply.size());
      ASSERT_TRUE(
          fabric_.PostSend(done.connection, fabric::WorkId(2), slot).ok());
    }
  }

 private:
  fabric::Fabric& fabric_;
  const recovery::ServerHello server_hello_;
  const recovery::Viewed viewed_;
  const std::string address_;
  const std::unique_ptr<replication::MessageSlots> slots_;
};

void OpenEpochOnNode(ServedWorld& world, PrimaryLog& log, uint64_t epoch) {
  log.OpenEpoch(Epoch(epoch));
  world.GetInstalled(world.Connected(1, epoch), log);
}

TEST(RemoteRegionTest, ImageIsTheRegion) {
  ServedWorld world(WithReader());
  PrimaryLog log(kLogA);
  OpenEpochOnNode(world, log, 5);
  Reader reader(world);
  reader.Finish();
  ASSERT_TRUE(reader.status().ok()) << reader.status();
  EXPECT_TRUE(std::ranges::equal(reader.image(), world.log(kLogA).region()));
  EXPECT_GT(reader.region().bytes_read(), reader.image().size());
  EXPECT_EQ(reader.region().region_bytes(), reader.image().size());
}

// Goal: RMR3. Whenever something of the image came, another epoch is opened.
TEST(RemoteRegionTest, EpochThatNeverStaysIsAnError) {
  ServedWorld world(WithReader());
  PrimaryLog log(kLogA);
  uint64_t epoch = 5;
  OpenEpochOnNode(world, log, epoch);
  Reader reader(world);
  uint64_t seen = 0;
  for (int i = 0; i < 10'000 && reader.Step(); ++i) {
    world.Run(50'000);
    if (reader.region().bytes_read() == seen) continue;
    seen = reader.region().bytes_read();
    OpenEpochOnNode(world, log, ++epoch);
  }
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDeadlineExceeded)
      << reader.status();
  EXPECT_THAT(std::string(reader.status().message()),
              HasSubstr("Read it again"));
}

// The same, but the last primary stays.
TEST(RemoteRegionTest, EpochThatComesInBetweenIsReadAgain) {
  ServedWorld world(WithReader());
  PrimaryLog log(kLogA);
  OpenEpochOnNode(world, log, 5);
  Reader reader(world);
  while (reader.Step() && reader.region().bytes_read() == 0) world.Run(50'000);
  OpenEpochOnNode(world, log, 6);
  reader.Finish();
  ASSERT_TRUE(reader.status().ok()) << reader.status();
  EXPECT_TRUE(std::ranges::equal(reader.image(), world.log(kLogA).region()));
}

// Goal: RMR4. A node ends views that last; the reader looks so rarely that
// several of them end.
TEST(RemoteRegionTest, ViewThatTheNodeEndsIsOpenedAgain) {
  ServedWorld world(WithReader(2 * kMillisecond));
  PrimaryLog log(kLogA);
  OpenEpochOnNode(world, log, 5);
  Reader reader(world);
  reader.Finish(1'500'000);
  ASSERT_TRUE(reader.status().ok()) << reader.status();
  EXPECT_TRUE(std::ranges::equal(reader.image(), world.log(kLogA).region()));
  EXPECT_GT(world.server().counters().accepted, 2u);  // the primary, two views
}

TEST(RemoteRegionTest, NodeThatGoesAwayForGoodIsAnError) {
  ServedWorld world(WithReader());
  Reader reader(world);
  while (reader.Step() && reader.region().bytes_read() == 0) world.Run(50'000);
  ASSERT_TRUE(world.server().RemoveLog(kLogA).ok());
  reader.Finish();
  // A node without the log, which could be formatted there.
  EXPECT_FALSE(reader.status().ok());
  EXPECT_FALSE(absl::IsDeadlineExceeded(reader.status())) << reader.status();
}

// Goal: RMR3. Between two views another replica comes to be there.
TEST(RemoteRegionTest, ReplicaThatWasMadeAgainIsNotMixedWithTheOldOne) {
  const Layout layout = *Layout::ForRing(2 * kRingBytes, 64);
  model::ModelPersistence other(layout.region_bytes);
  ASSERT_TRUE(FormatRegion(other, other.region(), layout,
                           {kCluster, kLogA, kNode, MembersOf()})
                  .ok());
  ServedWorld world(WithReader());
  Reader reader(world);
  while (reader.Step() && reader.region().bytes_read() == 0) world.Run(50'000);
  ASSERT_TRUE(world.server().RemoveLog(kLogA).ok());
  ASSERT_TRUE(
      world.server().AddLog(std::make_unique<WatchedLog>(other, nullptr)).ok());
  reader.Finish();
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDeadlineExceeded)
      << reader.status();
}

// Memory for an image is made by what the node says of it.
TEST(RemoteRegionTest, NodeThatClaimsMoreThanARegionGetsNoMemory) {
  struct Case {
    uint64_t ring_capacity;
    uint64_t region_bytes;
  };
  constexpr uint64_t kPetabyte = uint64_t{1} << 50;
  for (const Case& claimed :
       {Case{kRingBytes, kPetabyte}, Case{kRingBytes, kRingBytes},
        Case{kPetabyte, kPetabyte + (uint64_t{1} << 20)},
        Case{64, (uint64_t{1} << 20)}}) {
    ServedWorld world(WithReader());
    recovery::Viewed viewed;
    viewed.region_key = fabric::RegionKey(7);
    viewed.region_bytes = claimed.region_bytes;
    LyingNode node(world, kLiarHost,
                   {kNode, 101, claimed.ring_capacity, Epoch(1), 1, {}},
                   viewed);
    Reader reader(world, kNode, {}, kLogA, node.address());
    for (int i = 0; i < 1000 && reader.Step(); ++i) {
      world.Run(50'000);
      node.Step();
    }
    EXPECT_TRUE(absl::IsDataLoss(reader.status())) << reader.status();
    EXPECT_TRUE(reader.image().empty());
  }
}

// Goal: P-H17. Addresses in the cluster file were exchanged.
TEST(RemoteRegionTest, AnotherNodeAtTheAddressIsNamed) {
  ServedWorld world(WithReader());
  Reader reader(world, NodeId(9));
  reader.Finish();
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(reader.status().message()),
              HasSubstr("node 1 answers, not node 9"));
}

// Each view proves the key again.
TEST(RemoteRegionTest, ReaderWithTheKeySeesTheRegionAndOthersNothing) {
  Random random(4);
  ServedWorld::Options options = WithReader(2 * kMillisecond);
  std::array<std::byte, quorum::kClusterKeyBytes> bytes{std::byte{1}};
  const ClusterKey key(bytes);
  options.server.credentials = {key, &random};
  ServedWorld world(options);
  Reader reader(world, kNode, key);
  reader.Finish(1'500'000);
  ASSERT_TRUE(reader.status().ok()) << reader.status();
  EXPECT_TRUE(std::ranges::equal(reader.image(), world.log(kLogA).region()));
  EXPECT_GT(world.server().counters().accepted, 1u);
  bytes[1] = std::byte{1};
  for (const ClusterKey& other : {ClusterKey(), ClusterKey(bytes)}) {
    Reader unauthenticated(world, kNode, other);
    unauthenticated.Finish();
    EXPECT_TRUE(absl::IsUnauthenticated(unauthenticated.status()))
        << unauthenticated.status();
    EXPECT_EQ(unauthenticated.region().bytes_read(), 0u);
  }
  // They are counted for whoever may look; one saw itself that it had no key.
  Reader again(world, kNode, key);
  again.Finish();
  recovery::RejectCounts expected{};
  expected[static_cast<size_t>(recovery::RejectReason::kNoProof)] = 1;
  EXPECT_EQ(again.region().rejects(), expected);
}

}  // namespace
}  // namespace alpheus::testing
