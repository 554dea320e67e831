// SPDX-License-Identifier: Apache-2.0
// Damage that a scrub finds, and its repair: by the node itself, from its
// peers, from a primary that runs.
#include "recovery/scrub/scrubbing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/core/ring/format_region.h"
#include "tests/recovery/scrub/scrubbing_fixture.h"
#include "tests/support/oracles/crash_enumerator.h"

namespace alpheus::testing {

using model::ModelPersistence;
using recovery::Scrub;
using recovery::Scrubbed;

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ScrubbingTest, WholeReplicaIsFoundWhole) {
  WriteWithPeer(9);
  const Scrubbed scrubbed = ScrubNow();
  const uint64_t bytes = 9 * RecordBytes(LongText(1).size());
  EXPECT_EQ(scrubbed.pass, (recovery::ScrubCounts{9, bytes, 0, 0, 0}));
  EXPECT_EQ(scrubbed.total, scrubbed.pass);
  EXPECT_FALSE(scrubbed.is_running);
  EXPECT_FALSE(scrubbed.is_empty);
  EXPECT_THAT(scrubbed.unrepairable, IsEmpty());
  EXPECT_EQ(peers_[0]->counters().accepted, 0u);
  EXPECT_EQ(ScrubNow().total.records, 18u);
}

// Goal: SCR4, whatever byte of a record it is, and while the session goes on.
TEST_F(ScrubbingTest, DamagedByteIsRepairedFromAPeer) {
  const uint64_t bytes = RecordBytes(LongText(1).size());
  for (uint64_t byte = 0; byte < kRecordHeaderBytes + 100; byte += 3) {
    SCOPED_TRACE(byte);
    ASSERT_NO_FATAL_FAILURE(WriteWithPeer(6));
    for (const Lsn lsn : {Lsn(1), Lsn(4), Lsn(6)}) Flip(lsn, byte);
    const Scrubbed scrubbed = ScrubNow();
    EXPECT_EQ(scrubbed.pass, (recovery::ScrubCounts{6, 6 * bytes, 3, 3, 0}));
    ExpectWhole();
    Replicate(*world_, *session_, *log_, LongText(7));
    EXPECT_EQ(ScrubNow().pass, (recovery::ScrubCounts{7, 7 * bytes, 0, 0, 0}));
  }
}

// Goal: SCR4 after a power cut; what is visible alone is not repaired.
TEST_F(ScrubbingTest, RepairedRecordIsPersisted) {
  WriteWithPeer(4);
  Flip(Lsn(2), 70);
  std::vector<std::byte> before = world_->pmem(kLogA).CutKeepingNone();
  EXPECT_NE(LivePayloads(before).size(), 4u);
  EXPECT_EQ(ScrubNow().pass.repaired, 1u);
  EXPECT_EQ(PayloadsAfterACut(*world_, kLogA).size(), 4u);
}

// Goal: SCR5, RR1.
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
              ElementsAre(recovery::LsnRun{Lsn(3), Lsn(4)},
                          recovery::LsnRun{Lsn(5), Lsn(6)}));
  EXPECT_EQ(RingNow(), expected);
  EXPECT_GT(peers_[0]->counters().accepted, 0u);
  EXPECT_GT(peers_[1]->counters().accepted, 0u);
  EXPECT_THAT(world_->reports(), Contains(HasSubstr("LSN 3 at ring offset")));
  EXPECT_THAT(world_->reports(),
              Contains(HasSubstr("log by name: scrubbed: 4 records are whole; "
                                 "damaged places: 3, repaired: 1, not "
                                 "repaired: 2")));
  EXPECT_EQ(AskFor(Scrub{}).total, scrubbed.total);
  // Found once more, it is no more damage than before.
  EXPECT_EQ(ScrubNow().total.unrepairable, 2u);
  EXPECT_EQ(AskFor(Scrub{}).total.damaged, 3u);
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
  recovery::ScrubbingOptions scrubbing;
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

// For each call that the adapter refuses, damage is repaired, or reported as
// not repaired.
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
  // The counts since the node started have each damage once.
  const Scrubbed said = AskFor(Scrub{});
  EXPECT_EQ(said.total.damaged, 2u);
  EXPECT_EQ(said.total.repaired, 2u);
  EXPECT_EQ(said.total.unrepairable, 0u);
}

// It accepts no connection, and refuses none.
TEST_F(ScrubbingTest, SilentPeerIsAbandoned) {
  recovery::ScrubbingOptions scrubbing;
  scrubbing.reply_timeout_ns = 5 * kMillisecond;
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

// Goal: the crash states of scrubbing.h. A power cut at each fence of a repair.
TEST_F(ScrubbingTest, EveryCutLeavesTheRecordDamagedOrWhole) {
  for (const uint64_t byte : {3u, 41u, 80u, 1003u, 1080u}) {
    const bool is_claimed = byte > 1000;  // the peer's replica, by its primary
    is_claimed ? WriteWithClaimedPeer(5) : WriteWithPeer(5);
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
        recovery::RingScrub scrub(RingOf(region, state.superline), state.table,
                                  state.head(), Lsn(5));
        while (scrub.Continue(1 << 20) != recovery::RingScrub::Step::kDone) {
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

// Goal: SCR4. The medium takes it and does not keep it.
TEST_F(ScrubbingTest, RepairThatDoesNotStayIsNone) {
  WriteWithPeer(4);
  world_->log(kLogA).forgets = true;
  Flip(Lsn(2), 80);
  Flip(Lsn(3), 41);  // a CLEANED word, for which no peer is asked
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.pass.repaired, 0u);
  EXPECT_EQ(scrubbed.pass.unrepairable, 2u);
  EXPECT_THAT(world_->reports(), Contains(HasSubstr("can't be read back")));
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

TEST_F(ScrubbingTest, CopiesThatCannotBeReadAreRepaired) {
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
    EXPECT_TRUE(after.superline_cell.copies_agree());
    EXPECT_TRUE(after.table_cell.copies_agree());
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

TEST_F(ScrubbingTest, PeersAreReadWithTheKeyOfTheCluster) {
  Random random(4);
  std::array<std::byte, quorum::kClusterKeyBytes> bytes{std::byte{1}};
  const recovery::Credentials key{quorum::ClusterKey(bytes), &random};
  bytes[1] = std::byte{1};
  const recovery::Credentials other{quorum::ClusterKey(bytes), &random};
  for (const bool is_right : {true, false}) {
    Start();
    ASSERT_NO_FATAL_FAILURE(WriteRecords(4));
    // By itself: sessions of these tests prove no key.
    AddPeer(kPeerHost, log_->Image(), key);
    recovery::Scrubbing scrubbing(
        world_->network().fabric(kOtherPeerHost), world_->network().clock(),
        {kCluster, kNode, is_right ? key : other, nullptr},
        WithPeers().server.scrubbing);
    ModelPersistence pmem(log_->Image());
    FlipIn(pmem, pmem.region().last(kRingBytes).data() + 80);
    WatchedLog log(pmem, nullptr);
    scrubbing.Watch(log);
    scrubbing.Ask(kLogA);
    std::vector<fabric::Completion> completions(16);
    for (int i = 0; i < 10'000 && scrubbing.StateOf(kLogA).passes == 0; ++i) {
      world_->Run(10'000);
      std::vector<fabric::ConnectionEvent> events;
      const size_t count =
          world_->network().fabric(kOtherPeerHost).Poll(completions, &events);
      for (const fabric::ConnectionEvent& event : events)
        scrubbing.OnConnectionEvent(event);
      for (size_t c = 0; c < count; ++c) scrubbing.OnCompletion(completions[c]);
      scrubbing.Poll([](Uuid /*log_id*/) { return false; });
    }
    EXPECT_EQ(scrubbing.StateOf(kLogA).pass.repaired, is_right ? 1u : 0u);
    EXPECT_EQ(scrubbing.StateOf(kLogA).pass.unrepairable, is_right ? 0u : 1u);
  }
}

// --- From a primary that runs ------------------------------------------------

// Two nodes: the only other replica is its primary's.
TEST_F(ScrubbingTest, DamageIsRepairedFromTheReplicaOfARunningPrimary) {
  for (const uint64_t byte : {0u, 17u, 41u, 47u, 80u}) {
    SCOPED_TRACE(byte);
    ASSERT_NO_FATAL_FAILURE(WriteWithClaimedPeer(6));
    for (const Lsn lsn : {Lsn(1), Lsn(3), Lsn(4), Lsn(6)}) Flip(lsn, byte);
    const Scrubbed scrubbed = ScrubNow();
    EXPECT_EQ(scrubbed.pass.repaired, 4u);
    EXPECT_EQ(scrubbed.pass.unrepairable, 0u);
    ExpectWhole();
    // A CLEANED word needs no peer.
    EXPECT_EQ(claimed_peer_->shown > 0, byte < 40 || byte >= 48);
    Replicate(*world_, *session_, *log_, LongText(7));
    EXPECT_EQ(ScrubNow().pass.damaged, 0u);
  }
}

// The primary shows no record that it has cleaned or not persisted itself.
TEST_F(ScrubbingTest, WhatThePrimaryDoesNotShowIsToldAndTheRestRepaired) {
  ASSERT_NO_FATAL_FAILURE(WriteWithClaimedPeer(8, Lsn(3), Lsn(6)));
  for (const Lsn lsn : {Lsn(2), Lsn(4), Lsn(6), Lsn(7)}) Flip(lsn, 0);
  const Scrubbed scrubbed = ScrubNow();
  EXPECT_EQ(scrubbed.pass.repaired, 2u);
  EXPECT_THAT(scrubbed.unrepairable,
              ElementsAre(recovery::LsnRun{Lsn(2), Lsn(3)},
                          recovery::LsnRun{Lsn(7), Lsn(8)}));
}

TEST_F(ScrubbingTest, NextPeerIsAskedWhenThePrimaryShowsNothing) {
  ASSERT_NO_FATAL_FAILURE(WriteWithClaimedPeer(6, Lsn(4)));
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
    ASSERT_NO_FATAL_FAILURE(WriteWithClaimedPeer(6));
    for (const Lsn lsn : {Lsn(2), Lsn(5)}) Flip(lsn, 0);
    claimed_peer_->is_awake = false;
    AskFor(Scrub{true});
    world_->Run(kMillisecond);
    EXPECT_TRUE(AskFor(Scrub{}).is_running);
    if (!is_silent) claimed_peer_->EndPrimary();
    world_->Run(10 * kMillisecond);
    const Scrubbed scrubbed = AskFor(Scrub{});
    EXPECT_FALSE(scrubbed.is_running);
    EXPECT_EQ(scrubbed.pass.unrepairable, 2u);
    EXPECT_THAT(world_->reports(), Contains(HasSubstr("stopped or ended")));
    if (!is_silent) continue;
    claimed_peer_->is_awake = true;
    EXPECT_EQ(ScrubNow().pass.repaired, 2u);
    ExpectWhole();
  }
}

}  // namespace
}  // namespace alpheus::testing
