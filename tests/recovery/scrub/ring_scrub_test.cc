// SPDX-License-Identifier: Apache-2.0
// One ring, with damage that is known, walked as a scrub walks it.
#include "recovery/scrub/ring_scrub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/recovery/replica/replica_world.h"

namespace alpheus::testing {

using recovery::RingDamage;
using recovery::RingScrub;

namespace {

using Step = RingScrub::Step;

// Records take one line, two lines, one line and so on; two epochs.
LogImage TwoEpochsOf(int records) {
  LogImage log(4096);
  log.OpenEpoch(Epoch(5));
  for (int i = 1; i <= records; ++i) {
    if (i == records / 2 + 1) log.OpenEpoch(Epoch(6));
    log.Append(std::string(i % 2 == 0 ? 60 : 5, 'a'));
  }
  return log;
}

std::byte* PlaceIn(const LogImage& log, Lsn lsn, uint64_t byte = 0) {
  return log.ring().At(log.PositionOf(lsn).offset) + byte;
}
void FlipBit(std::byte* at) { *at ^= std::byte{8}; }

std::unique_ptr<RingScrub> ScrubOf(const LogImage& log) {
  return std::make_unique<RingScrub>(log.ring(), log.table(), log.head(),
                                     log.end().lsn - 1);
}

// Up to the next finding or the end.
Step Walk(RingScrub* scrub, uint64_t slice = 64) {
  for (int i = 0; i < 1000; ++i) {
    const Step step = scrub->Continue(slice);
    if (step != Step::kMore) return step;
  }
  ADD_FAILURE() << "it does not end";
  return Step::kMore;
}

// All findings, passed over.
std::vector<recovery::ScrubFinding> FindingsOf(RingScrub* scrub,
                                               uint64_t slice = 64) {
  std::vector<recovery::ScrubFinding> findings;
  while (Walk(scrub, slice) == Step::kFinding) {
    findings.push_back(scrub->finding());
    scrub->PassOver();
  }
  return findings;
}

TEST(RingScrubTest, WholeLogHasNoFinding) {
  const LogImage log = TwoEpochsOf(12);
  for (const uint64_t slice : {uint64_t{1}, uint64_t{200}, ~uint64_t{0} >> 8}) {
    const auto scrub = ScrubOf(log);
    EXPECT_EQ(Walk(scrub.get(), slice), Step::kDone);
    EXPECT_EQ(scrub->records(), 12u);
    EXPECT_EQ(scrub->bytes(), 18 * kLineBytes);
    EXPECT_EQ(scrub->position(), log.end());
  }
}

TEST(RingScrubTest, EmptyLogHasNoFinding) {
  LogImage log(4096);
  log.OpenEpoch(Epoch(5));
  const auto scrub = ScrubOf(log);
  EXPECT_EQ(Walk(scrub.get()), Step::kDone);
  EXPECT_EQ(scrub->records(), 0u);
}

// Each record by itself, each of its bytes that is not padding.
TEST(RingScrubTest, EveryDamagedByteIsFoundAndIsTheOnlyFinding) {
  const LogImage good = TwoEpochsOf(8);
  for (Lsn lsn(1); lsn <= Lsn(8); lsn = lsn + 1) {
    for (uint64_t byte = 0; byte < kRecordHeaderBytes + 5; ++byte) {
      LogImage log = good;
      FlipBit(PlaceIn(log, lsn, byte));
      const auto scrub = ScrubOf(log);
      const auto findings = FindingsOf(scrub.get());
      ASSERT_EQ(findings.size(), 1u) << lsn << " byte " << byte;
      const RingDamage kind = byte >= kRecordHeaderBytes ? RingDamage::kPayload
                              : byte >= offsetof(RecordHeader, cleaned)
                                  ? RingDamage::kCleanedWord
                                  : RingDamage::kHeaders;
      EXPECT_EQ(findings[0].kind, kind) << lsn << " byte " << byte;
      EXPECT_EQ(findings[0].at.lsn, lsn);
      EXPECT_EQ(findings[0].at.offset, good.PositionOf(lsn).offset);
      EXPECT_EQ(findings[0].records(), 1u);
      EXPECT_EQ(scrub->records(), 7u);
    }
  }
}

TEST(RingScrubTest, HeadersThatCannotBeReadAreOneFinding) {
  LogImage log = TwoEpochsOf(10);
  for (const Lsn lsn : {Lsn(4), Lsn(5), Lsn(6), Lsn(10)})
    FlipBit(PlaceIn(log, lsn));
  const auto scrub = ScrubOf(log);
  const auto findings = FindingsOf(scrub.get());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].at.lsn, Lsn(4));
  EXPECT_EQ(findings[0].end_lsn, Lsn(7));
  EXPECT_EQ(findings[0].end_offset, log.PositionOf(Lsn(7)).offset);
  EXPECT_EQ(findings[1].at.lsn, Lsn(10));
  EXPECT_EQ(findings[1].end_lsn, Lsn(11));
  EXPECT_EQ(scrub->records(), 6u);
}

// Goal: RSC1. Bytes after the last record are no finding, nor do they end one.
TEST(RingScrubTest, WhatIsBehindTheLastRecordIsNotLookedAt) {
  const LogImage log = TwoEpochsOf(10);
  FlipBit(PlaceIn(log, Lsn(8)));
  RingScrub scrub(log.ring(), log.table(), log.head(), Lsn(7));
  EXPECT_EQ(Walk(&scrub), Step::kDone);
  EXPECT_EQ(scrub.records(), 7u);
  FlipBit(PlaceIn(log, Lsn(7)));
  RingScrub again(log.ring(), log.table(), log.head(), Lsn(7));
  const auto findings = FindingsOf(&again);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].end_lsn, Lsn(8));
  EXPECT_EQ(findings[0].end_offset, log.PositionOf(Lsn(9)).offset);
}

TEST(RingScrubTest, RepairedRecordIsLookedAtAgain) {
  const LogImage log = TwoEpochsOf(6);
  for (const uint64_t byte : {0u, 40u, 50u}) {
    FlipBit(PlaceIn(log, Lsn(3), byte));
    const auto scrub = ScrubOf(log);
    ASSERT_EQ(Walk(scrub.get()), Step::kFinding);
    FlipBit(PlaceIn(log, Lsn(3), byte));
    scrub->GoBack();
    EXPECT_EQ(Walk(scrub.get()), Step::kDone);
    EXPECT_EQ(scrub->records(), 6u);
    EXPECT_EQ(scrub->position(), log.end());
  }
}

// Goal: RSC2, wherever the walk is.
TEST(RingScrubTest, FindingThatTheHeadHasPassedIsNone) {
  const LogImage log = TwoEpochsOf(8);
  for (const uint64_t byte : {0u, 40u, 50u}) {
    LogImage damaged = log;
    FlipBit(PlaceIn(damaged, Lsn(3), byte));
    const auto scrub = ScrubOf(damaged);
    ASSERT_EQ(Walk(scrub.get()), Step::kFinding);
    EXPECT_TRUE(scrub->MoveHead(log.PositionOf(Lsn(3))));
    EXPECT_FALSE(scrub->MoveHead(log.PositionOf(Lsn(5))));
    EXPECT_EQ(Walk(scrub.get()), Step::kDone);
    EXPECT_EQ(scrub->records(), 2u + 4u);
  }
}

TEST(RingScrubTest, HeadThatPassesAHoleEndsIt) {
  const LogImage log = TwoEpochsOf(8);
  std::memset(PlaceIn(log, Lsn(2)), 0, kLineBytes * 4);
  const auto scrub = ScrubOf(log);
  EXPECT_EQ(scrub->Continue(64), Step::kMore);  // the first record
  EXPECT_EQ(scrub->Continue(64), Step::kMore);  // a line of the hole
  EXPECT_TRUE(scrub->MoveHead(log.PositionOf(Lsn(7))));
  EXPECT_EQ(Walk(scrub.get()), Step::kDone);
  EXPECT_EQ(scrub->records(), 1u + 2u);
}

// Goal: RSC3. The second epoch starts where other records would have led.
TEST(RingScrubTest, EpochThatStartsElsewhereIsFound) {
  const LogImage log = TwoEpochsOf(8);
  std::vector<EpochEntry> entries = log.table().entries();
  ASSERT_EQ(entries.size(), 2u);
  entries[1].start_chain ^= 1;
  EpochTable table = EpochTable::Empty(kWorldLog);
  for (const EpochEntry& entry : entries) table = table.With(entry, Lsn(1));
  RingScrub scrub(log.ring(), table, log.head(), Lsn(8));
  const auto findings = FindingsOf(&scrub);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, RingDamage::kChain);
  EXPECT_EQ(findings[0].at.lsn, Lsn(5));
  EXPECT_EQ(scrub.records(), 8u);
  // Behind what can't be read nobody knows the chain.
  FlipBit(PlaceIn(log, Lsn(3)));
  RingScrub broken(log.ring(), table, log.head(), Lsn(8));
  EXPECT_EQ(FindingsOf(&broken).size(), 1u);
}

// A log that goes round, so that a PAD is in it.
LogImage LogWithAPad(RingOffset* pad) {
  LogImage log(1024);
  log.OpenEpoch(Epoch(5));
  for (int i = 0; i < 4; ++i) log.Append(std::string(140, 'a'));  // 192 bytes
  log.CleanThrough(Lsn(3));
  const LogPosition before = log.end();
  log.Append(std::string(300, 'b'));
  log.Append("c");
  *pad = before.offset;
  return log;
}

TEST(RingScrubTest, DamagedPadIsFound) {
  RingOffset pad;
  const LogImage log = LogWithAPad(&pad);
  const auto whole = ScrubOf(log);
  EXPECT_EQ(Walk(whole.get()), Step::kDone);
  EXPECT_EQ(whole->records(), 3u);
  FlipBit(log.ring().At(pad));
  const auto scrub = ScrubOf(log);
  const auto findings = FindingsOf(scrub.get());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, RingDamage::kPad);
  EXPECT_EQ(findings[0].at.lsn, Lsn(5));
  EXPECT_EQ(findings[0].at.offset, pad);
  EXPECT_EQ(scrub->records(), 2u);
}

}  // namespace
}  // namespace alpheus::testing
