// SPDX-License-Identifier: Apache-2.0
// The bytes that repair a damaged place, by the bytes that a peer has there.
#include "recovery/scrub/record_repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/recovery/replica/replica_world.h"

namespace alpheus::testing {

using recovery::RepairedFromPeer;
using recovery::RepairedRecords;
using recovery::RingScrub;
using recovery::ValidInFinding;

namespace {

using ::testing::IsEmpty;

LogImage SixRecords(uint64_t salt = 0) {
  LogImage log(4096);
  log.OpenEpoch(Epoch(5), salt);
  for (int i = 1; i <= 6; ++i) log.Append(std::string(30 * i, 'a'));
  return log;
}

std::byte* At(const LogImage& log, Lsn lsn, uint64_t byte) {
  return log.ring().At(log.PositionOf(lsn).offset) + byte;
}
void Flip(std::byte* at) { *at ^= std::byte{8}; }

// Walked up to its first finding.
std::unique_ptr<RingScrub> FoundIn(const LogImage& log) {
  auto scrub = std::make_unique<RingScrub>(log.ring(), log.table(), log.head(),
                                           log.end().lsn - 1);
  RingScrub::Step step = RingScrub::Step::kMore;
  while (step == RingScrub::Step::kMore) step = scrub->Continue(64);
  EXPECT_EQ(step, RingScrub::Step::kFinding);
  return scrub;
}

void Write(const LogImage& log, const RepairedRecords& repaired) {
  for (const recovery::RepairedBytes& place : repaired.places) {
    std::memcpy(log.ring().At(place.offset), place.bytes.data(),
                place.bytes.size());
  }
}

bool AreEqual(const LogImage& a, const LogImage& b) {
  return std::memcmp(a.ring().data(), b.ring().data(), a.ring().capacity()) ==
         0;
}

// Every byte of every record.
TEST(RecordRepairTest, PeersRecordMakesTheRingWhole) {
  const LogImage good = SixRecords();
  for (Lsn lsn(1); lsn <= Lsn(6); lsn = lsn + 1) {
    for (uint64_t byte = 0; byte < kRecordHeaderBytes + 30; ++byte) {
      const LogImage log = good;
      Flip(At(log, lsn, byte));
      const auto scrub = FoundIn(log);
      RepairedRecords repaired = recovery::RepairedWithoutPeer(*scrub);
      if (repaired.records == 0) {
        EXPECT_EQ(ValidInFinding(*scrub, 1), 0u);
        repaired = RepairedFromPeer(good.ring(), good.end().offset, *scrub);
      }
      EXPECT_EQ(repaired.records, 1u);
      Write(log, repaired);
      EXPECT_TRUE(AreEqual(log, good)) << lsn << " byte " << byte;
      EXPECT_EQ(ValidInFinding(*scrub, 1), 1u);
    }
  }
}

TEST(RecordRepairTest, SeveralRecordsAreRepairedAsFarAsThePeerHasThem) {
  const LogImage good = SixRecords();
  const LogImage log = good;
  std::memset(At(log, Lsn(2), 0), 0xff,
              good.PositionOf(Lsn(6)).offset - good.PositionOf(Lsn(2)).offset);
  const auto scrub = FoundIn(log);
  ASSERT_EQ(scrub->finding().records(), 4u);
  const LogImage peer = good;
  Flip(At(peer, Lsn(4), 50));
  const RepairedRecords some =
      RepairedFromPeer(peer.ring(), peer.end().offset, *scrub);
  EXPECT_EQ(some.records, 2u);
  Write(log, some);
  EXPECT_EQ(ValidInFinding(*scrub, 4), 2u);
  // So much of it was read.
  for (Lsn lsn(2); lsn <= Lsn(5); lsn = lsn + 1) {
    const RingOffset behind = good.PositionOf(lsn + 1).offset;
    EXPECT_EQ(RepairedFromPeer(good.ring(), behind, *scrub).records,
              lsn.value - 1);
    EXPECT_EQ(RepairedFromPeer(good.ring(), behind - 1, *scrub).records,
              lsn.value - 2);
  }
  Write(log, RepairedFromPeer(good.ring(), good.end().offset, *scrub));
  EXPECT_TRUE(AreEqual(log, good));
}

// Goal: RR1. The peer's record is of another epoch with the same number,
// damaged, or not there.
TEST(RecordRepairTest, WhatIsNotTheRecordRepairsNothing) {
  const LogImage good = SixRecords();
  const LogImage log = good;
  const LogImage other = SixRecords(/*salt=*/7);
  const LogImage nothing(4096);
  LogImage damaged = good;
  Flip(At(damaged, Lsn(3), 60));
  for (const uint64_t byte : {8u, 60u}) {
    Flip(At(log, Lsn(3), byte));
    const auto scrub = FoundIn(log);
    for (const LogImage* peer :
         std::initializer_list<const LogImage*>{&other, &nothing, &damaged}) {
      EXPECT_EQ(
          RepairedFromPeer(peer->ring(), good.end().offset, *scrub).records,
          0u);
    }
    Flip(At(log, Lsn(3), byte));
  }
}

// The payload of a record that its peer has cleaned is checked all the same,
// and a CLEANED word that is none is not taken over.
TEST(RecordRepairTest, PeersCleanedWordIsTakenOverIfItIsOne) {
  const LogImage good = SixRecords();
  const LogImage log = good;
  Flip(At(log, Lsn(3), 8));
  const auto scrub = FoundIn(log);
  const uint64_t seed = good.table()
                            .KeyOf(good.table().Owner(Lsn(3)))
                            .Seed(Lsn(3), good.PositionOf(Lsn(3)).offset);
  LogImage peer = good;
  const uint64_t cleaned = CleanedWord(seed);
  std::memcpy(At(peer, Lsn(3), offsetof(RecordHeader, cleaned)), &cleaned, 8);
  RepairedRecords repaired =
      RepairedFromPeer(peer.ring(), peer.end().offset, *scrub);
  Write(log, repaired);
  EXPECT_TRUE(AreEqual(log, peer));
  EXPECT_EQ(ValidInFinding(*scrub, 1), 1u);
  Flip(At(peer, Lsn(3), 70));
  EXPECT_EQ(RepairedFromPeer(peer.ring(), peer.end().offset, *scrub).records,
            0u);
  Flip(At(peer, Lsn(3), 70));
  Flip(At(peer, Lsn(3), offsetof(RecordHeader, cleaned)));
  Flip(At(log, Lsn(3), 8));
  repaired = RepairedFromPeer(peer.ring(), peer.end().offset, *scrub);
  Write(log, repaired);
  EXPECT_TRUE(AreEqual(log, good));
}

TEST(RecordRepairTest, PadIsRepairedWithItsRecordOrAlone) {
  LogImage good(1024);
  good.OpenEpoch(Epoch(5));
  for (int i = 0; i < 4; ++i) good.Append(std::string(140, 'a'));
  good.CleanThrough(Lsn(3));
  const RingOffset pad = good.end().offset;
  good.Append(std::string(300, 'b'));
  const LogImage log = good;
  Flip(log.ring().At(pad));
  const auto alone = FoundIn(log);
  Write(log, recovery::RepairedWithoutPeer(*alone));
  EXPECT_EQ(ValidInFinding(*alone, 1), 1u);
  // The PAD as a writer makes it says what was durable; nobody needs that.
  const auto again =
      std::make_unique<RingScrub>(log.ring(), log.table(), log.head(), Lsn(5));
  EXPECT_EQ(again->Continue(1024), RingScrub::Step::kDone);
  // Both are gone: the record begins at the ring's start.
  std::memset(log.ring().At(pad), 0, 64);
  std::memset(log.ring().data(), 0, 64);
  const auto both = FoundIn(log);
  EXPECT_THAT(recovery::RepairedWithoutPeer(*both).places, IsEmpty());
  const RepairedRecords repaired =
      RepairedFromPeer(good.ring(), good.end().offset, *both);
  EXPECT_EQ(repaired.places.size(), 2u);
  Write(log, repaired);
  EXPECT_TRUE(AreEqual(log, good));
}

}  // namespace
}  // namespace alpheus::testing
