// SPDX-License-Identifier: Apache-2.0
// scrubbing_fixture: a node that scrubs its replicas, and peers that have the
// same records, on a simulated network.
#ifndef ALPHEUS_TESTS_RECOVERY_SCRUB_SCRUBBING_FIXTURE_H_
#define ALPHEUS_TESTS_RECOVERY_SCRUB_SCRUBBING_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "recovery/resync/region_claim.h"
#include "recovery/scrub/scrubbing.h"
#include "recovery/server/ring_fetch.h"
#include "tests/recovery/server/replica_server_fixture.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {

inline constexpr int kPeerHost = 3;
inline constexpr int kOtherPeerHost = 4;
inline constexpr int kLocalPrimaryHost = 5;
inline constexpr NodeId kPeerNode{2};

inline std::string PeerAddressOf(int host) {
  return model::SimNetwork::Address(host, 1);
}

// A node with a replica that is an image of the primary's, or anything else.
class PeerNode {
 public:
  PeerNode(ServedWorld& world, int host, std::span<const std::byte> image,
           const recovery::Credentials& credentials = {})
      : fabric_(world.network().fabric(host)), pmem_(image) {
    recovery::ReplicaServerOptions options;
    options.cluster_id = kCluster;
    options.node = kPeerNode;
    options.credentials = credentials;
    server_ = std::make_unique<recovery::ReplicaServer>(
        fabric_, world.network().clock(), options);
    EXPECT_TRUE(
        server_->AddLog(std::make_unique<WatchedLog>(pmem_, nullptr)).ok());
    EXPECT_TRUE(fabric_.Listen(PeerAddressOf(host)).ok());
  }

  void Poll() {
    std::vector<fabric::Completion> completions(16);
    std::vector<fabric::ConnectionEvent> events;
    const size_t count = fabric_.Poll(completions, &events);
    for (const fabric::ConnectionEvent& event : events)
      server_->OnConnectionEvent(event);
    for (size_t i = 0; i < count; ++i) server_->OnCompletion(completions[i]);
    server_->Poll();
  }
  const recovery::ReplicaServer::Counters& counters() const {
    return server_->counters();
  }
  std::span<std::byte> region() { return pmem_.region(); }

 private:
  fabric::Fabric& fabric_;
  model::ModelPersistence pmem_;
  std::unique_ptr<recovery::ReplicaServer> server_;
};

// A node whose replica a primary of its machine has: it shows the bytes of an
// image from `begin` to `end`.
class ClaimedPeerNode {
 public:
  ClaimedPeerNode(ServedWorld& world, std::span<const std::byte> image,
                  RingOffset begin, RingOffset end)
      : node_fabric_(world.network().fabric(kPeerHost)),
        primary_fabric_(world.network().fabric(kLocalPrimaryHost)),
        image_(image.begin(), image.end()) {
    const RegionState state = *ReadRegionState(image_, "held");
    recovery::ReplicaServerOptions options;
    options.cluster_id = kCluster;
    options.node = kPeerNode;
    options.show_ns = 5 * kMillisecond;
    regions_.server_hello =
        [server_hello = recovery::ServerHelloOf(state.superline)](Uuid) {
          return server_hello;
        };
    options.regions = &regions_;
    server_ = std::make_unique<recovery::ReplicaServer>(
        node_fabric_, world.network().clock(), options);
    EXPECT_TRUE(node_fabric_.Listen(PeerAddressOf(kPeerHost)).ok());
    recovery::RegionClaimOptions claim;
    claim.address = PeerAddressOf(kPeerHost);
    claim.node = kPeerNode;
    claim.hello = {kCluster, kLogA, {kPeerNode, 77}};
    claim.promise = {Epoch(5), claim.hello.primary};
    claim.show = [=, this](const recovery::Fetch& fetch) {
      ++shown;
      const Ring ring = RingOf(image_, ReadRegionState(image_, "x")->superline);
      return recovery::FetchedFrom(ring, begin, end, fetch);
    };
    claim_ = std::make_unique<recovery::RegionClaim>(
        primary_fabric_, world.network().clock(), claim);
  }

  void Poll() {
    PollOne(node_fabric_, *server_);
    server_->Poll();
    if (!is_awake) return;
    PollOne(primary_fabric_, *claim_);
    EXPECT_EQ(claim_->Poll(), Polled::kIdle);
  }
  void EndPrimary() {
    is_awake = false;
    claim_.reset();
  }

  bool is_awake = true;  // the primary
  int shown = 0;

 private:
  template <class Taker>
  static void PollOne(fabric::Fabric& fabric, Taker& taker) {
    std::vector<fabric::Completion> completions(16);
    std::vector<fabric::ConnectionEvent> events;
    const size_t count = fabric.Poll(completions, &events);
    for (const fabric::ConnectionEvent& event : events)
      taker.OnConnectionEvent(event);
    for (size_t i = 0; i < count; ++i) taker.OnCompletion(completions[i]);
  }

  fabric::Fabric& node_fabric_;
  fabric::Fabric& primary_fabric_;
  std::vector<std::byte> image_;
  FakeRegions regions_{kLogA};
  std::unique_ptr<recovery::ReplicaServer> server_;
  std::unique_ptr<recovery::RegionClaim> claim_;
};

inline ServedWorld::Options WithPeers(
    const recovery::ScrubbingOptions& scrubbing = {}) {
  ServedWorld::Options options;
  options.network.hosts = kLocalPrimaryHost + 1;
  options.server.scrubbing = scrubbing;
  options.server.name_of = [](Uuid /*log_id*/) { return "by name"; };
  options.server.scrubbing.peers = {
      {kNode, "itself"},  // as the cluster file lists it, too
      {kPeerNode, PeerAddressOf(kPeerHost)},
      {kPeerNode, PeerAddressOf(kOtherPeerHost)}};
  return options;
}

inline std::string LongText(int i) {
  return absl::StrCat(std::string(100, 'x'), "record ", i);
}

class ScrubbingTest : public ::testing::Test {
 protected:
  void Start(const ServedWorld::Options& options = WithPeers()) {
    peers_.clear();
    claimed_peer_.reset();
    asker_ = nullptr;
    world_ = std::make_unique<ServedWorld>(options);
    log_ = std::make_unique<PrimaryLog>(kLogA);
    world_->also = [this] {
      for (auto& peer : peers_) {
        if (are_peers_awake_) peer->Poll();
      }
      if (claimed_peer_ != nullptr) claimed_peer_->Poll();
    };
  }

  // A session with so many records, "record 1" and so on.
  void WriteRecords(int count) {
    log_->OpenEpoch(Epoch(5));
    session_ = &world_->Connected(1, 1);
    world_->GetInstalled(*session_, *log_);
    for (int i = 1; i <= count; ++i) {
      ASSERT_NO_FATAL_FAILURE(
          Replicate(*world_, *session_, *log_, LongText(i)));
    }
  }
  void AddPeer(int host, std::span<const std::byte> image,
               const recovery::Credentials& credentials = {}) {
    peers_.push_back(
        std::make_unique<PeerNode>(*world_, host, image, credentials));
  }
  // The only peer; it shows all records, or less.
  void WriteWithClaimedPeer(int count, Lsn first = Lsn(1),
                            Lsn last = Lsn(1000)) {
    Start();
    ASSERT_NO_FATAL_FAILURE(WriteRecords(count));
    claimed_peer_ = std::make_unique<ClaimedPeerNode>(
        *world_, log_->Image(), OffsetOf(first),
        std::min(log_->End().offset, OffsetOf(last + 1)));
    world_->Run(kMillisecond);  // it holds
  }
  void WriteWithPeer(int count) {
    Start();
    ASSERT_NO_FATAL_FAILURE(WriteRecords(count));
    AddPeer(kPeerHost, log_->Image());
  }

  RingOffset OffsetOf(Lsn lsn) const {
    return log_->installation().end.offset +
           (lsn - log_->installation().end.lsn) *
               RecordBytes(LongText(1).size());
  }
  // On media, too.
  static void FlipIn(model::ModelPersistence& pmem, std::byte* at) {
    const std::byte flipped = *at ^ std::byte{4};
    pmem.Copy(at, &flipped, 1);
    ASSERT_TRUE(Persist(pmem, at, 1));
  }
  void Flip(Lsn lsn, uint64_t byte) {
    FlipIn(world_->pmem(kLogA), Here(lsn) + byte);
  }
  std::byte* Here(Lsn lsn) {
    return world_->RingBytes(kLogA).data() + OffsetOf(lsn).value;
  }

  recovery::Scrubbed AskFor(const recovery::Scrub& scrub) {
    if (asker_ == nullptr || asker_->ended) {
      asker_ = &world_->Connected(2, 9);
    }
    const auto reply = world_->Ask(*asker_, scrub);
    EXPECT_TRUE(reply && std::holds_alternative<recovery::Scrubbed>(*reply));
    return reply ? std::get<recovery::Scrubbed>(*reply) : recovery::Scrubbed();
  }
  // One whole pass.
  recovery::Scrubbed ScrubNow() {
    const uint64_t passes = AskFor(recovery::Scrub{true}).passes;
    for (int i = 0; i < 10'000; ++i) {
      recovery::Scrubbed now = AskFor(recovery::Scrub{});
      if (now.passes > passes) return now;
      world_->Run(kMillisecond / 10);
    }
    ADD_FAILURE() << "the pass does not end";
    return {};
  }
  std::vector<std::byte> RingNow() {
    const std::span<std::byte> ring = world_->RingBytes(kLogA);
    return {ring.begin(), ring.end()};
  }
  // It is as the primary has it, on media.
  void ExpectWhole() {
    const Ring good = log_->ring();
    std::vector<std::byte> cut = world_->pmem(kLogA).CutKeepingNone();
    const std::span<std::byte> ring = std::span(cut).last(good.capacity());
    EXPECT_TRUE(
        std::ranges::equal(ring.first(log_->End().offset.value),
                           std::span(good.data(), log_->End().offset.value)));
  }

  std::unique_ptr<ServedWorld> world_;
  std::unique_ptr<PrimaryLog> log_;
  Peer* session_ = nullptr;
  Peer* asker_ = nullptr;
  bool are_peers_awake_ = true;
  std::vector<std::unique_ptr<PeerNode>> peers_;
  std::unique_ptr<ClaimedPeerNode> claimed_peer_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_SCRUB_SCRUBBING_FIXTURE_H_
