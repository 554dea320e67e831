// SPDX-License-Identifier: Apache-2.0
// A node that scrubs its replicas, with peers that have the same records, on a
// simulated network.
#include "recovery/scrubbing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/format_region.h"
#include "recovery/replica_hold.h"
#include "recovery/ring_fetch.h"
#include "tests/recovery/replica_server_fixture.h"
#include "tests/testing/crash_enumerator.h"
#include "tests/testing/log_harness.h"

namespace alpheus::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000 * kMillisecond;
constexpr int kPeerHost = 3;
constexpr int kOtherPeerHost = 4;
constexpr int kHolderHost = 5;
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

// A node whose replica a primary of its machine has: it shows the bytes of an
// image from `begin` to `end`.
class HeldPeerNode {
 public:
  HeldPeerNode(ServedWorld& world, std::span<const std::byte> image,
               RingOffset begin, RingOffset end)
      : node_fabric_(world.network().fabric(kPeerHost)),
        holder_fabric_(world.network().fabric(kHolderHost)),
        image_(image.begin(), image.end()) {
    const RegionState state = *ReadRegionState(image_, "held");
    ReplicaServerOptions options;
    options.cluster_id = kCluster;
    options.node = kPeerNode;
    options.show_ns = 5 * kMillisecond;
    options.unserved = [](Uuid) { return absl::UnavailableError("held"); };
    options.held = [welcome = WelcomeOf(state.superline)](Uuid) {
      return welcome;
    };
    server_ = std::make_unique<ReplicaServer>(node_fabric_,
                                              world.network().clock(), options);
    EXPECT_TRUE(node_fabric_.Listen(PeerAddressOf(kPeerHost)).ok());
    ReplicaHoldOptions hold;
    hold.address = PeerAddressOf(kPeerHost);
    hold.node = kPeerNode;
    hold.hello = {kCluster, kLogA, {kPeerNode, 77}};
    hold.promise = {Epoch(5), hold.hello.primary};
    hold.show = [=, this](const Fetch& fetch) {
      ++shown;
      const Ring ring = RingOf(image_, ReadRegionState(image_, "x")->superline);
      return FetchedFrom(ring, begin, end, fetch);
    };
    hold_ = std::make_unique<ReplicaHold>(holder_fabric_,
                                          world.network().clock(), hold);
  }

  void Poll() {
    PollOne(node_fabric_, *server_);
    server_->Poll();
    if (!is_awake) return;
    PollOne(holder_fabric_, *hold_);
    EXPECT_EQ(hold_->Poll(), std::nullopt);
  }
  void EndHolder() {
    is_awake = false;
    hold_.reset();
  }

  bool is_awake = true;  // the primary
  int shown = 0;

 private:
  template <class Taker>
  static void PollOne(Fabric& fabric, Taker& taker) {
    std::vector<Completion> completions(16);
    std::vector<ConnectionEvent> events;
    const size_t count = fabric.Poll(completions, &events);
    for (const ConnectionEvent& event : events) taker.Take(event);
    for (size_t i = 0; i < count; ++i) taker.Take(completions[i]);
  }

  Fabric& node_fabric_;
  Fabric& holder_fabric_;
  std::vector<std::byte> image_;
  std::unique_ptr<ReplicaServer> server_;
  std::unique_ptr<ReplicaHold> hold_;
};

ServedWorld::Options WithPeers(const ScrubbingOptions& scrubbing = {}) {
  ServedWorld::Options options;
  options.network.hosts = kHolderHost + 1;
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
    held_peer_.reset();
    asker_ = nullptr;
    world_ = std::make_unique<ServedWorld>(options);
    log_ = std::make_unique<PrimaryLog>(kLogA);
    world_->also = [this] {
      for (auto& peer : peers_) {
        if (are_peers_awake_) peer->Poll();
      }
      if (held_peer_ != nullptr) held_peer_->Poll();
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
  // The only peer; it shows all records, or less.
  void WriteWithHeldPeer(int count, Lsn first = Lsn(1), Lsn last = Lsn(1000)) {
    Start();
    ASSERT_NO_FATAL_FAILURE(WriteRecords(count));
    held_peer_ = std::make_unique<HeldPeerNode>(
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
  std::unique_ptr<HeldPeerNode> held_peer_;
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

// Goal: J4 after a power cut; what is visible alone is not repaired.
TEST_F(ScrubbingTest, RepairedRecordIsPersisted) {
  WriteWithPeer(4);
  Flip(Lsn(2), 70);
  std::vector<std::byte> before = world_->pmem(kLogA).CutKeepingNone();
  EXPECT_NE(LivePayloads(before).size(), 4u);
  EXPECT_EQ(ScrubNow().pass.repaired, 1u);
  EXPECT_EQ(PayloadsAfterACut(*world_, kLogA).size(), 4u);
}

// Goal: J5, M1.
TEST_F(ScrubbingTest, RecordThatIsDamagedEverywhereStaysAsItIs) {
  Start();
  ASSERT_NO_FATAL_FAILURE(WriteRecords(6));
  std::vector<std::byte> image = log_->Image();
  const uint64_t ring_at = image.size() - kRingBytes;
  image[ring_at + OffsetOf(Lsn(3)).value + 80] ^= std::byte{1};
  image[ring_at + OffsetOf(Lsn(5)).value + 9] ^= std::byte{1};
  AddPeer(kPeerHost, image);
  AddPeer(kOtherPeerHost, image);
  for (const Lsn lsn : {Lsn(1), Lsn(3), Lsn(5)}) Flip(lsn, 90);
  std::vector<std::byte> expected = RingNow();
  expected[OffsetOf(Lsn(1)).value + 90] ^= std::byte{4};
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.pass.damaged, 3u);
  EXPECT_EQ(scrubbed.pass.repaired, 1u);
  EXPECT_EQ(scrubbed.pass.unrepairable, 2u);
  EXPECT_THAT(scrubbed.unrepairable,
              ElementsAre(LsnRun{Lsn(3), Lsn(4)}, LsnRun{Lsn(5), Lsn(6)}));
  EXPECT_EQ(RingNow(), expected);
  EXPECT_GT(peers_[0]->counters().accepted, 0u);
  EXPECT_GT(peers_[1]->counters().accepted, 0u);
  EXPECT_THAT(world_->reports(), Contains(HasSubstr("LSN 3 at ring offset")));
  EXPECT_EQ(AskFor(Scrub{}).total, scrubbed.total);
}

// The peer that has it is asked when the first one does not.
TEST_F(ScrubbingTest, NextPeerIsAskedWhenOneHasItDamagedOrIsNotThere) {
  for (const bool is_there : {true, false}) {
    Start();
    ASSERT_NO_FATAL_FAILURE(WriteRecords(6));
    std::vector<std::byte> image = log_->Image();
    image[image.size() - kRingBytes + OffsetOf(Lsn(3)).value + 80] ^=
        std::byte{1};
    if (is_there) AddPeer(kPeerHost, image);
    AddPeer(kOtherPeerHost, log_->Image());
    Flip(Lsn(3), 90);
    EXPECT_EQ(ScrubNow().pass.repaired, 1u) << is_there;
    ExpectWhole();
  }
}

TEST_F(ScrubbingTest, HeadersInARowAreRepairedToTheLastRecord) {
  WriteWithPeer(8);
  for (const Lsn lsn : {Lsn(1), Lsn(2), Lsn(3), Lsn(7), Lsn(8)}) Flip(lsn, 0);
  EXPECT_EQ(ScrubNow().pass.repaired, 5u);
  ExpectWhole();
}

// Records are larger than what is read at first.
TEST_F(ScrubbingTest, SmallReadsGrowUntilARecordIsWhole) {
  ScrubbingOptions scrubbing;
  scrubbing.read_bytes = kLineBytes;
  Start(WithPeers(scrubbing));
  ASSERT_NO_FATAL_FAILURE(WriteRecords(8));
  AddPeer(kPeerHost, log_->Image());
  for (const Lsn lsn : {Lsn(2), Lsn(3), Lsn(4), Lsn(8)}) Flip(lsn, 0);
  EXPECT_EQ(ScrubNow().pass.repaired, 4u);
  ExpectWhole();
}

TEST_F(ScrubbingTest, PeerWithAnotherRingIsOfNoUse) {
  Start();
  ASSERT_NO_FATAL_FAILURE(WriteRecords(4));
  const Layout layout = *Layout::ForRing(2 * kRingBytes, 64);
  ModelPersistence other(layout.region_bytes);
  ASSERT_TRUE(FormatRegion(other, other.region(), layout,
                           {kCluster, kLogA, kPeerNode, MembersOf()})
                  .ok());
  AddPeer(kPeerHost, other.region());
  Flip(Lsn(2), 0);
  EXPECT_EQ(ScrubNow().pass.unrepairable, 1u);
  EXPECT_THAT(world_->reports(), Contains(HasSubstr("rings of one size")));
}

// Whatever the adapter refuses, damage is repaired, or said not to be.
TEST_F(ScrubbingTest, EveryCallOfTheAdapterMayFail) {
  bool has_failed = true;
  for (uint64_t n = 1; has_failed && n < 100; ++n) {
    WriteWithPeer(4);
    AskFor(Scrub{});
    Flip(Lsn(2), 0);
    world_->adapter().FailCall(n);
    asker_->Send(Scrub{true});
    world_->Run(20 * kMillisecond);
    has_failed = world_->adapter().has_failed();
    world_->adapter().FailCall(0);
    asker_ = nullptr;
    const Scrubbed scrubbed = ScrubNow();
    EXPECT_EQ(scrubbed.total.repaired, 1u) << n;
    EXPECT_EQ(scrubbed.pass.unrepairable, 0u) << n;
    ExpectWhole();
  }
  EXPECT_FALSE(has_failed);
}

TEST_F(ScrubbingTest, NobodyThereLeavesTheDamageUntilSomebodyIs) {
  Start();
  ASSERT_NO_FATAL_FAILURE(WriteRecords(4));
  Flip(Lsn(2), 0);
  Flip(Lsn(4), 0);
  const Scrubbed without = ScrubNow();
  EXPECT_EQ(without.pass.unrepairable, 2u);
  EXPECT_THAT(world_->reports(),
              Contains(HasSubstr("can't repair from node 2")));
  EXPECT_THAT(world_->reports(), Contains(HasSubstr("no peer")));
  AddPeer(kPeerHost, log_->Image());
  EXPECT_EQ(ScrubNow().pass.repaired, 2u);
  ExpectWhole();
  EXPECT_EQ(AskFor(Scrub{}).total.damaged, 4u);
}

// It accepts no connection, and refuses none.
TEST_F(ScrubbingTest, SilentPeerIsGivenUp) {
  ScrubbingOptions scrubbing;
  scrubbing.silence_ns = 5 * kMillisecond;
  Start(WithPeers(scrubbing));
  ASSERT_NO_FATAL_FAILURE(WriteRecords(4));
  AddPeer(kPeerHost, log_->Image());
  are_peers_awake_ = false;
  Flip(Lsn(2), 0);
  EXPECT_EQ(ScrubNow().pass.unrepairable, 1u);
  are_peers_awake_ = true;
  EXPECT_EQ(ScrubNow().pass.repaired, 1u);
}

TEST_F(ScrubbingTest, PeerWithAnotherLogOfTheSameEpochIsOfNoUse) {
  Start();
  ASSERT_NO_FATAL_FAILURE(WriteRecords(4));
  PrimaryLog other(kLogA);
  other.OpenEpoch(Epoch(4));
  other.OpenEpoch(Epoch(5));
  for (int i = 1; i <= 4; ++i) other.Append(LongText(i));
  // Another nonce: another epoch.
  other.OpenEpoch(Epoch(6));
  PrimaryLog newer(kLogA);
  newer.OpenEpoch(Epoch(6));
  for (int i = 1; i <= 4; ++i) newer.Append(LongText(i));
  AddPeer(kPeerHost, newer.Image());
  Flip(Lsn(2), 0);
  Flip(Lsn(3), 70);
  const std::vector<std::byte> before = RingNow();
  EXPECT_EQ(ScrubNow().pass.unrepairable, 2u);
  EXPECT_EQ(RingNow(), before);
}

// Goal: J1. What the session writes and has not announced is not looked at,
// though its header holds.
TEST_F(ScrubbingTest, RecordThatIsNotPersistedIsNotLookedAt) {
  WriteWithPeer(4);
  log_->Append(LongText(5));
  log_->Append(LongText(6));
  peers_.clear();
  const std::byte* const there = log_->ring().At(OffsetOf(Lsn(6)));
  std::memcpy(Here(Lsn(6)), there, RecordBytes(LongText(1).size()));
  std::memcpy(Here(Lsn(5)), log_->ring().At(OffsetOf(Lsn(5))), 32);
  const std::vector<std::byte> before = RingNow();
  EXPECT_EQ(ScrubNow().pass.damaged, 0u);
  EXPECT_EQ(RingNow(), before);
}

// Goal: J1. While the peer is asked, the head passes the record.
TEST_F(ScrubbingTest, RecordThatTheHeadPassesIsNoDamage) {
  WriteWithPeer(6);
  Flip(Lsn(2), 0);
  Flip(Lsn(3), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  EXPECT_TRUE(AskFor(Scrub{}).is_running);
  LogPosition head = log_->installation().end;
  RecordCursor cursor(log_->ring(), log_->installation().table, head,
                      head.offset + kRingBytes);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(cursor.Next(), RecordCursor::Step::kRecord);
  }
  ASSERT_TRUE(session_->session->AdvanceHead(cursor.position()).ok());
  world_->Run(kMillisecond);
  EXPECT_EQ(world_->State(kLogA).head(), cursor.position());
  are_peers_awake_ = true;
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.total.damaged, 0u);
  EXPECT_EQ(scrubbed.total.unrepairable, 0u);
}

// Goal: J2. Somebody holds the promise and has not installed; then he has.
TEST_F(ScrubbingTest, PassWaitsForWhoOpensAnEpoch) {
  WriteWithPeer(6);
  Flip(Lsn(2), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  log_->OpenEpoch(Epoch(7));
  Peer& next = world_->Connected(1, 2);
  world_->GetPromise(next, Epoch(7));
  are_peers_awake_ = true;
  world_->Run(10 * kMillisecond);
  EXPECT_EQ(world_->log(kLogA).restored, 0);
  EXPECT_TRUE(AskFor(Scrub{}).is_running);
  world_->GetPrepared(next, Epoch(7));
  world_->Run(10 * kMillisecond);
  EXPECT_EQ(world_->log(kLogA).restored, 0);
  ASSERT_TRUE(next.Close().ok());
  world_->Run(20 * kMillisecond);
  EXPECT_EQ(world_->log(kLogA).restored, 1);
  const Scrubbed scrubbed = AskFor(Scrub{});
  EXPECT_FALSE(scrubbed.is_running);
  EXPECT_EQ(scrubbed.pass.repaired, 1u);
  EXPECT_EQ(scrubbed.passes, 1u);
}

// Another epoch is opened and installed in the middle of a pass.
TEST_F(ScrubbingTest, PassBeginsAnewInANewEpoch) {
  WriteWithPeer(6);
  Flip(Lsn(6), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).total.records, 5u);
  log_->OpenEpoch(Epoch(7));
  world_->GetInstalled(world_->Connected(1, 2), *log_);
  are_peers_awake_ = true;
  world_->Run(10 * kMillisecond);
  const Scrubbed scrubbed = AskFor(Scrub{});
  EXPECT_EQ(scrubbed.passes, 1u);
  EXPECT_EQ(scrubbed.pass.records, 6u);
  // GetInstalled wrote the records anew.
  EXPECT_EQ(scrubbed.total.damaged, 0u);
  EXPECT_EQ(scrubbed.total.records, 5u + 6u);
}

// A node closes a replica and opens it again between two turns.
TEST_F(ScrubbingTest, ReplicaThatIsClosedIsNotLookedAtAnyMore) {
  WriteWithPeer(6);
  Flip(Lsn(6), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).total.records, 5u);
  asker_ = nullptr;
  log_->Append(LongText(7));
  log_->Append(LongText(8));  // its watermark names the one before
  auto again = std::make_unique<ModelPersistence>(log_->Image());
  ASSERT_TRUE(world_->server().RemoveLog(kLogA).ok());
  ASSERT_TRUE(world_->server()
                  .AddLog(std::make_unique<WatchedLog>(*again, nullptr))
                  .ok());
  world_->Run(kMillisecond);
  const Scrubbed scrubbed = AskFor(Scrub{});
  EXPECT_EQ(scrubbed.passes, 1u);
  EXPECT_EQ(scrubbed.pass, (ScrubCounts{7, scrubbed.pass.bytes, 0, 0, 0}));
  ASSERT_TRUE(world_->server().RemoveLog(kLogA).ok());
}

// Goal: the crash states of scrubbing.h. A power cut at each fence of a repair.
TEST_F(ScrubbingTest, EveryCutLeavesTheRecordDamagedOrWhole) {
  for (const uint64_t byte : {3u, 41u, 80u, 1003u, 1080u}) {
    const bool is_held = byte > 1000;  // the peer's replica, by its primary
    is_held ? WriteWithHeldPeer(5) : WriteWithPeer(5);
    Flip(Lsn(3), byte % 1000);
    ModelPersistence& pmem = world_->pmem(kLogA);
    const RegionState state = world_->State(kLogA);
    CrashEnumerator cuts({});
    std::vector<std::byte> region;
    pmem.SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive != ModelPersistence::Primitive::kFence) return;
      cuts.Enumerate(pmem, 0, [&](const CrashState& cut) {
        region.assign(cut.image.begin(), cut.image.end());
        ASSERT_EQ(ReadRegionState(region, "cut")->superline, state.superline);
        RingScrub scrub(RingOf(region, state.superline), state.table,
                        state.head(), Lsn(5));
        while (scrub.Continue(1 << 20) != RingScrub::Step::kDone) {
          if (!scrub.has_finding()) continue;
          EXPECT_EQ(scrub.finding().at.lsn, Lsn(3)) << cut.Describe();
          EXPECT_EQ(scrub.finding().records(), 1u) << cut.Describe();
          scrub.PassOver();
        }
        EXPECT_GE(scrub.records(), 4u);
      });
    });
    EXPECT_EQ(ScrubNow().pass.repaired, 1u);
    EXPECT_GT(cuts.counts().distinct, 1u);
    pmem.SetHook({});
    ExpectWhole();
  }
}

// Goal: J3.
TEST_F(ScrubbingTest, ReplicaThatRepairsHoldsNothingToBeScrubbed) {
  WriteWithPeer(6);
  Peer& next = world_->Connected(1, 2);
  world_->GetPromise(next, Epoch(7));
  ASSERT_TRUE(world_->Ask(next, Prepare{Epoch(7), true}).has_value());
  ASSERT_TRUE(next.Close().ok());
  Flip(Lsn(2), 80);
  world_->Run(kMillisecond);
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_TRUE(scrubbed.is_empty);
  EXPECT_EQ(scrubbed.total, ScrubCounts());
}

TEST_F(ScrubbingTest, NewReplicaIsEmpty) {
  Start();
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_TRUE(scrubbed.is_empty);
  EXPECT_EQ(scrubbed.passes, 1u);
}

// Goal: J4. The medium takes it and does not keep it.
TEST_F(ScrubbingTest, RepairThatDoesNotStayIsNone) {
  WriteWithPeer(4);
  world_->log(kLogA).forgets = true;
  Flip(Lsn(2), 80);
  Flip(Lsn(3), 41);  // a CLEANED word, for which no peer is asked
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.pass.repaired, 0u);
  EXPECT_EQ(scrubbed.pass.unrepairable, 2u);
  EXPECT_THAT(world_->reports(), Contains(HasSubstr("can't be read again")));
}

TEST_F(ScrubbingTest, MediumThatFailsInARepairEndsTheScrubbing) {
  WriteWithPeer(4);
  Flip(Lsn(2), 80);
  are_peers_awake_ = false;
  AskFor(Scrub{true});
  world_->Run(kMillisecond);
  world_->pmem(kLogA).FailFence(1);
  are_peers_awake_ = true;
  world_->Run(10 * kMillisecond);
  EXPECT_TRUE(world_->log(kLogA).medium_failed());
  EXPECT_THAT(world_->server().LogsWithFailedMedium(), ElementsAre(kLogA));
  const Scrubbed scrubbed = AskFor(Scrub{});
  EXPECT_EQ(scrubbed.total.repaired, 0u);
  EXPECT_TRUE(scrubbed.is_running);
  ASSERT_TRUE(world_->server().RemoveLog(kLogA).ok());
  world_->Run(kMillisecond);
}

TEST_F(ScrubbingTest, CopiesThatCannotBeReadAreWrittenAnew) {
  WriteWithPeer(4);
  for (const int copy : {0, 1}) {
    ModelPersistence& pmem = world_->pmem(kLogA);
    const RegionState before = world_->State(kLogA);
    FlipIn(pmem, SuperlinePlace(pmem.region()).copies[copy] + 40);
    FlipIn(pmem,
           EpochTablePlace(pmem.region(), before.superline).copies[copy] + 40);
    const Scrubbed scrubbed = ScrubNow();
    EXPECT_EQ(scrubbed.pass.repaired, 2u);
    EXPECT_EQ(scrubbed.pass.damaged, 2u);
    const RegionState after = world_->State(kLogA);
    EXPECT_TRUE(after.superline_cell.at_rest());
    EXPECT_TRUE(after.table_cell.at_rest());
    EXPECT_EQ(after.superline, before.superline);
  }
  // The session goes on.
  Replicate(*world_, *session_, *log_, LongText(5));
  for (const int copy : {0, 1}) {
    FlipIn(world_->pmem(kLogA),
           SuperlinePlace(world_->pmem(kLogA).region()).copies[copy] + 40);
  }
  EXPECT_EQ(ScrubNow().pass.unrepairable, 1u);
}

// --- From a primary that runs ------------------------------------------------

// Two nodes: the only other replica is its primary's.
TEST_F(ScrubbingTest, DamageIsRepairedFromTheReplicaOfARunningPrimary) {
  for (const uint64_t byte : {0u, 17u, 41u, 47u, 80u}) {
    SCOPED_TRACE(byte);
    ASSERT_NO_FATAL_FAILURE(WriteWithHeldPeer(6));
    for (const Lsn lsn : {Lsn(1), Lsn(3), Lsn(4), Lsn(6)}) Flip(lsn, byte);
    const Scrubbed scrubbed = ScrubNow();
    EXPECT_EQ(scrubbed.pass.repaired, 4u);
    EXPECT_EQ(scrubbed.pass.unrepairable, 0u);
    ExpectWhole();
    // A CLEANED word needs no peer.
    EXPECT_EQ(held_peer_->shown > 0, byte < 40 || byte >= 48);
    Replicate(*world_, *session_, *log_, LongText(7));
    EXPECT_EQ(ScrubNow().pass.damaged, 0u);
  }
}

// What it has cleaned, and what it has not persisted itself.
TEST_F(ScrubbingTest, WhatThePrimaryDoesNotShowIsToldAndTheRestRepaired) {
  ASSERT_NO_FATAL_FAILURE(WriteWithHeldPeer(8, Lsn(3), Lsn(6)));
  for (const Lsn lsn : {Lsn(2), Lsn(4), Lsn(6), Lsn(7)}) Flip(lsn, 0);
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.pass.repaired, 2u);
  EXPECT_THAT(scrubbed.unrepairable,
              ElementsAre(LsnRun{Lsn(2), Lsn(3)}, LsnRun{Lsn(7), Lsn(8)}));
}

TEST_F(ScrubbingTest, NextPeerIsAskedWhenThePrimaryShowsNothing) {
  ASSERT_NO_FATAL_FAILURE(WriteWithHeldPeer(6, Lsn(4)));
  AddPeer(kOtherPeerHost, log_->Image());
  for (const Lsn lsn : {Lsn(2), Lsn(5)}) Flip(lsn, 0);
  EXPECT_EQ(ScrubNow().pass.repaired, 2u);
  EXPECT_EQ(peers_[0]->counters().accepted, 1u);
  ExpectWhole();
}

// It ends while it is asked; or goes on and says nothing.
TEST_F(ScrubbingTest, PrimaryThatEndsOrIsSilentLeavesTheDamageAsItIs) {
  for (const bool is_silent : {true, false}) {
    SCOPED_TRACE(is_silent);
    ASSERT_NO_FATAL_FAILURE(WriteWithHeldPeer(6));
    for (const Lsn lsn : {Lsn(2), Lsn(5)}) Flip(lsn, 0);
    held_peer_->is_awake = false;
    AskFor(Scrub{true});
    world_->Run(kMillisecond);
    EXPECT_TRUE(AskFor(Scrub{}).is_running);
    if (!is_silent) held_peer_->EndHolder();
    world_->Run(10 * kMillisecond);
    const Scrubbed scrubbed = AskFor(Scrub{});
    EXPECT_FALSE(scrubbed.is_running);
    EXPECT_EQ(scrubbed.pass.unrepairable, 2u);
    EXPECT_THAT(world_->reports(), Contains(HasSubstr("stopped, or gone")));
    if (!is_silent) continue;
    held_peer_->is_awake = true;
    EXPECT_EQ(ScrubNow().pass.repaired, 2u);
    ExpectWhole();
  }
}

// --- By the clock ------------------------------------------------------------

TEST_F(ScrubbingTest, PassesComeByTheClockAndKeepTheirRate) {
  ScrubbingOptions scrubbing;
  scrubbing.interval_ns = 100 * kMillisecond;
  scrubbing.slice_bytes = 512;
  scrubbing.bytes_per_second = 51'200;  // ten milliseconds a slice
  Start(WithPeers(scrubbing));
  ASSERT_NO_FATAL_FAILURE(WriteRecords(16));  // some six slices
  AddPeer(kPeerHost, log_->Image());
  Flip(Lsn(16), 80);
  world_->Run(80 * kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).total.records, 0u);
  world_->Run(50 * kMillisecond);
  const Scrubbed running = AskFor(Scrub{});
  EXPECT_FALSE(running.is_running);  // nobody asked
  EXPECT_GT(running.pass.records, 0u);
  EXPECT_LT(running.pass.records, 16u);
  EXPECT_EQ(running.passes, 0u);
  world_->Run(60 * kMillisecond);
  const Scrubbed done = AskFor(Scrub{});
  EXPECT_EQ(done.passes, 1u);
  EXPECT_EQ(done.pass.repaired, 1u);
  // The next one ends about an interval and a pass later.
  world_->Run(100 * kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).passes, 1u);
  world_->Run(100 * kMillisecond);
  EXPECT_EQ(AskFor(Scrub{}).passes, 2u);
}

TEST_F(ScrubbingTest, NodeSleepsUntilThereIsSomethingToScrub) {
  ScrubbingOptions scrubbing;
  scrubbing.interval_ns = 10 * kSecond;
  scrubbing.bytes_per_second = 1 << 20;
  Start(WithPeers(scrubbing));
  world_->Run(kMillisecond);
  EXPECT_LE(world_->server().NextDeadline().at_nanos(), 10 * kSecond + kSecond);
  Start();
  world_->Run(kMillisecond);
  EXPECT_FALSE(world_->server().NextDeadline().is_set());
}

TEST_F(ScrubbingTest, WhatIsAskedForGoesBeforeWhatTheClockBegan) {
  ScrubbingOptions scrubbing;
  scrubbing.interval_ns = 100 * kMillisecond;
  scrubbing.slice_bytes = 512;
  scrubbing.bytes_per_second = 1;
  Start(WithPeers(scrubbing));
  ASSERT_NO_FATAL_FAILURE(WriteRecords(16));
  world_->Run(100 * kMillisecond);
  const Scrubbed slow = AskFor(Scrub{});
  EXPECT_EQ(slow.passes, 0u);
  EXPECT_GT(slow.pass.records, 0u);
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.passes, 1u);
  EXPECT_EQ(scrubbed.pass.records, 16u);
}

// --- Who may -----------------------------------------------------------------

TEST_F(ScrubbingTest, PeersAreReadWithTheKeyOfTheCluster) {
  Random random(4);
  std::array<std::byte, kClusterKeyBytes> bytes{std::byte{1}};
  const Credentials key{ClusterKey(bytes), &random};
  bytes[1] = std::byte{1};
  const Credentials other{ClusterKey(bytes), &random};
  for (const bool is_right : {true, false}) {
    Start();
    ASSERT_NO_FATAL_FAILURE(WriteRecords(4));
    // By itself: sessions of these tests prove no key.
    AddPeer(kPeerHost, log_->Image(), key);
    Scrubbing scrubbing(world_->network().fabric(kOtherPeerHost),
                        world_->network().clock(),
                        {kCluster, kNode, is_right ? key : other, nullptr},
                        WithPeers().server.scrubbing);
    ModelPersistence pmem(log_->Image());
    FlipIn(pmem, pmem.region().last(kRingBytes).data() + 80);
    WatchedLog log(pmem, nullptr);
    scrubbing.Watch(log);
    scrubbing.Ask(kLogA);
    std::vector<Completion> completions(16);
    for (int i = 0; i < 10'000 && scrubbing.StateOf(kLogA).passes == 0; ++i) {
      world_->Run(10'000);
      std::vector<ConnectionEvent> events;
      const size_t count =
          world_->network().fabric(kOtherPeerHost).Poll(completions, &events);
      for (const ConnectionEvent& event : events) scrubbing.Take(event);
      for (size_t c = 0; c < count; ++c) scrubbing.Take(completions[c]);
      scrubbing.Poll([](Uuid /*log_id*/) { return false; });
    }
    EXPECT_EQ(scrubbing.StateOf(kLogA).pass.repaired, is_right ? 1u : 0u);
    EXPECT_EQ(scrubbing.StateOf(kLogA).pass.unrepairable, is_right ? 0u : 1u);
  }
}

TEST_F(ScrubbingTest, CountsAreShownToWhoeverLooks) {
  WriteWithPeer(4);
  Flip(Lsn(2), 80);
  const Scrubbed scrubbed = ScrubNow();
  const auto viewed = world_->Ask(*asker_, View{});
  ASSERT_TRUE(viewed && std::holds_alternative<Viewed>(*viewed));
  EXPECT_EQ(std::get<Viewed>(*viewed).scrubbed, scrubbed.total);
}

}  // namespace
}  // namespace alpheus::testing
