// SPDX-License-Identifier: Apache-2.0
// A node that scrubs its replicas, with peers that have the same records, on a
// simulated network.
#include "recovery/scrubbing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "tests/recovery/replica_server_fixture.h"

namespace alpheus::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000 * kMillisecond;
constexpr int kPeerHost = 3;
constexpr int kOtherPeerHost = 4;
constexpr NodeId kPeerNode{2};

std::string PeerAddressOf(int host) { return SimNetwork::Address(host, 1); }

// A node with a replica that is an image of the primary's, or anything else.
class PeerNode {
 public:
  PeerNode(ServedWorld& world, int host, std::span<const std::byte> image,
           const Credentials& credentials = {})
      : fabric_(world.network().fabric(host)), pmem_(image) {
    ReplicaServerOptions options;
    options.cluster_id = kCluster;
    options.node = kPeerNode;
    options.credentials = credentials;
    server_ = std::make_unique<ReplicaServer>(fabric_, world.network().clock(),
                                              options);
    EXPECT_TRUE(
        server_->AddLog(std::make_unique<WatchedLog>(pmem_, nullptr)).ok());
    EXPECT_TRUE(fabric_.Listen(PeerAddressOf(host)).ok());
  }

  void Poll() {
    std::vector<Completion> completions(16);
    std::vector<ConnectionEvent> events;
    const size_t count = fabric_.Poll(completions, &events);
    for (const ConnectionEvent& event : events) server_->Take(event);
    for (size_t i = 0; i < count; ++i) server_->Take(completions[i]);
    server_->Poll();
  }
  const ReplicaServer::Counters& counters() const {
    return server_->counters();
  }
  std::span<std::byte> region() { return pmem_.region(); }

 private:
  Fabric& fabric_;
  ModelPersistence pmem_;
  std::unique_ptr<ReplicaServer> server_;
};

ServedWorld::Options WithPeers(const ScrubbingOptions& scrubbing = {}) {
  ServedWorld::Options options;
  options.network.hosts = kOtherPeerHost + 1;
  options.server.scrubbing = scrubbing;
  options.server.scrubbing.peers = {
      {kNode, "itself"},  // as the cluster file lists it, too
      {kPeerNode, PeerAddressOf(kPeerHost)},
      {kPeerNode, PeerAddressOf(kOtherPeerHost)}};
  return options;
}

std::string LongText(int i) {
  return absl::StrCat(std::string(100, 'x'), "record ", i);
}

class ScrubbingTest : public ::testing::Test {
 protected:
  void Start(const ServedWorld::Options& options = WithPeers()) {
    peers_.clear();
    asker_ = nullptr;
    world_ = std::make_unique<ServedWorld>(options);
    log_ = std::make_unique<PrimaryLog>(kLogA);
    world_->also = [this] {
      for (auto& peer : peers_) {
        if (are_peers_awake_) peer->Poll();
      }
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
               const Credentials& credentials = {}) {
    peers_.push_back(
        std::make_unique<PeerNode>(*world_, host, image, credentials));
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
  static void FlipIn(ModelPersistence& pmem, std::byte* at) {
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

  Scrubbed AskFor(const Scrub& scrub) {
    if (asker_ == nullptr || asker_->ended) {
      asker_ = &world_->Connected(2, 9);
    }
    const auto reply = world_->Ask(*asker_, scrub);
    EXPECT_TRUE(reply && std::holds_alternative<Scrubbed>(*reply));
    return reply ? std::get<Scrubbed>(*reply) : Scrubbed();
  }
  // One whole pass.
  Scrubbed ScrubNow() {
    const uint64_t passes = AskFor(Scrub{true}).passes;
    for (int i = 0; i < 10'000; ++i) {
      Scrubbed now = AskFor(Scrub{});
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
};

TEST_F(ScrubbingTest, WholeReplicaIsFoundWhole) {
  WriteWithPeer(9);
  const Scrubbed scrubbed = ScrubNow();
  const uint64_t bytes = 9 * RecordBytes(LongText(1).size());
  EXPECT_EQ(scrubbed.pass, (ScrubCounts{9, bytes, 0, 0, 0}));
  EXPECT_EQ(scrubbed.total, scrubbed.pass);
  EXPECT_FALSE(scrubbed.is_running);
  EXPECT_FALSE(scrubbed.is_empty);
  EXPECT_THAT(scrubbed.unrepairable, IsEmpty());
  EXPECT_EQ(peers_[0]->counters().accepted, 0u);
  EXPECT_EQ(ScrubNow().total.records, 18u);
}

// Goal: J4, whatever byte of a record it is, and while the session goes on.
TEST_F(ScrubbingTest, DamagedByteIsRepairedFromAPeer) {
  const uint64_t bytes = RecordBytes(LongText(1).size());
  for (uint64_t byte = 0; byte < kRecordHeaderBytes + 100; byte += 3) {
    SCOPED_TRACE(byte);
    ASSERT_NO_FATAL_FAILURE(WriteWithPeer(6));
    for (const Lsn lsn : {Lsn(1), Lsn(4), Lsn(6)}) Flip(lsn, byte);
    const Scrubbed scrubbed = ScrubNow();
    EXPECT_EQ(scrubbed.pass, (ScrubCounts{6, 6 * bytes, 3, 3, 0}));
    ExpectWhole();
    Replicate(*world_, *session_, *log_, LongText(7));
    EXPECT_EQ(ScrubNow().pass, (ScrubCounts{7, 7 * bytes, 0, 0, 0}));
  }
}

}  // namespace
}  // namespace alpheus::testing
