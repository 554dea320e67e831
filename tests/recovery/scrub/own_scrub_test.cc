// SPDX-License-Identifier: Apache-2.0
// A primary on node 1 of three that scrubs its own replica while it writes it,
// and repairs it from nodes 2 and 3.
#include "recovery/scrub/own_scrub.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/region_state.h"
#include "tests/recovery/opening/opening_world.h"
#include "tests/recovery/opening/own_log.h"
#include "tests/support/oracles/crash_enumerator.h"

namespace alpheus::testing {

using model::ModelPersistence;

namespace {

using ::testing::IsEmpty;
using Primary = OpeningWorld::Primary;
using State = recovery::MemberUpkeep::State;

constexpr uint64_t kScrubbedRingBytes = 4096;
constexpr int kRecords = 6;

OpeningWorld::Options WorldOptions(uint64_t ring_bytes) {
  OpeningWorld::Options options;
  options.ring_capacity = ring_bytes;
  options.real_server = true;
  options.resyncs = true;
  return options;
}

class OwnScrubTest : public ::testing::Test {
 protected:
  // With records 1 to kRecords, durable.
  void Start(uint64_t ring_bytes = kScrubbedRingBytes) {
    primary_.reset();
    world_ = std::make_unique<OpeningWorld>(WorldOptions(ring_bytes));
    primary_ = world_->Open(0);
    ASSERT_TRUE(primary_->status().ok()) << primary_->status();
    world_->StartLog(*primary_);
    primary_log_ = std::make_unique<OwnLog>(*primary_);
    for (int i = 1; i <= kRecords; ++i) Append(TextOf(i));
    ASSERT_TRUE(
        StepUntil([&] { return primary_->sink->replication_state().is_idle; }));
  }
  // Passes begin one after the other from here on.
  void Scrub() {
    recovery::ScrubbingOptions scrubbing;
    scrubbing.bytes_per_second = uint64_t{1} << 30;
    scrubbing.interval_ns = 100'000;
    scrubbing.peers = primary_->asked.peers;
    primary_->upkeep->ClaimReplica(ClaimHeardByNobody(*primary_), scrubbing,
                                   *primary_log_);
  }
  static std::string TextOf(int i) {
    return absl::StrCat(std::string(90, 'x'), i);
  }
  void Append(const std::string& text) {
    const std::span<const std::byte> part = AsBytes(text);
    const absl::StatusOr<Lsn> lsn = primary_->log->Append({&part, 1}, 1, {});
    ASSERT_TRUE(lsn.ok()) << lsn.status();
  }
  void StepOnce() {
    world_->StepOthers(0);
    primary_->log->Poll();
  }
  bool StepUntil(const std::function<bool()>& done) {
    for (int i = 0; i < 30'000; ++i) {
      if (done()) return true;
      StepOnce();
    }
    return false;
  }
  State state() const { return primary_->upkeep->state(); }
  // Runs until a pass is over that began after this call.
  State AfterAPass() {
    const uint64_t passes = state().scrub_passes + 2;
    EXPECT_TRUE(StepUntil([&] { return state().scrub_passes >= passes; }));
    return state();
  }

  RingOffset OffsetOf(int record) const {
    const RingLog<ModelPersistence>& log = *primary_->log;
    RecordCursor cursor(log.ring(), log.table(), log.head(),
                        log.head().offset + log.ring().capacity());
    while (cursor.position().lsn <= Lsn(static_cast<uint64_t>(record))) {
      if (cursor.Next() != RecordCursor::Step::kRecord) break;
    }
    return cursor.record().offset;
  }
  // On media, too.
  void Flip(std::byte* at) {
    const std::byte flipped = *at ^ std::byte{4};
    ModelPersistence& pmem = world_->pmem(1);
    pmem.Copy(at, &flipped, 1);
    ASSERT_TRUE(Persist(pmem, at, 1));
  }
  void FlipInRecord(int record, uint64_t byte) {
    Flip(primary_->log->ring().At(OffsetOf(record) + byte));
  }
  // Expects that a power cut would leave all records at node 1, undamaged.
  void ExpectWhole() {
    std::vector<std::string> texts;
    for (int i = 1; i <= kRecords; ++i) texts.push_back(TextOf(i));
    EXPECT_EQ(world_->Payloads(1), texts);
  }

  std::unique_ptr<OpeningWorld> world_;
  std::unique_ptr<Primary> primary_;
  std::unique_ptr<OwnLog> primary_log_;
};

TEST_F(OwnScrubTest, WholeReplicaIsReadThrough) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Scrub();
  ASSERT_TRUE(StepUntil([&] { return state().scrub_passes == 1; }));
  EXPECT_EQ(state().scrubbed.records, kRecords);
  EXPECT_EQ(state().scrubbed.damaged, 0u);
}

// Any byte of a header, of a CLEANED word, of a payload.
TEST_F(OwnScrubTest, DamageIsRepairedWhileTheLogIsWritten) {
  for (const uint64_t byte : {0, 17, 40, 47, 48, 100}) {
    SCOPED_TRACE(byte);
    ASSERT_NO_FATAL_FAILURE(Start());
    ASSERT_NO_FATAL_FAILURE(FlipInRecord(3, byte));
    Scrub();
    ASSERT_TRUE(StepUntil([&] { return state().scrubbed.repaired == 1; }));
    ExpectWhole();
    Append("more");
    EXPECT_EQ(AfterAPass().scrubbed.damaged, 1u);
  }
}

// SCR7.
TEST_F(OwnScrubTest, RecordOfManyPiecesIsNotLookedAtForEach) {
  constexpr uint64_t kPieces = 12;
  ASSERT_NO_FATAL_FAILURE(Start(uint64_t{1} << 20));
  Append(std::string(kPieces * recovery::kFetchBytesMax, 'x'));
  ASSERT_TRUE(
      StepUntil([&] { return primary_->sink->replication_state().is_idle; }));
  Scrub();
  const auto freezes_of_a_pass = [this] {
    const uint64_t passes = state().scrub_passes;
    const int before = primary_log_->freezes();
    EXPECT_TRUE(StepUntil([&] { return state().scrub_passes > passes; }));
    return primary_log_->freezes() - before;
  };
  AfterAPass();
  const int undamaged = freezes_of_a_pass();
  ASSERT_NO_FATAL_FAILURE(FlipInRecord(kRecords + 1, 5000));
  const int damaged = freezes_of_a_pass();
  EXPECT_EQ(state().scrubbed.repaired, 1u);
  // Found; before and behind the reading; what was written is read again.
  EXPECT_LE(damaged, undamaged + 4);
}

TEST_F(OwnScrubTest, WhatNobodyHasStaysAsItIs) {
  ASSERT_NO_FATAL_FAILURE(Start());
  world_->Crash(2);
  world_->network().Run(1'000'000);
  ASSERT_NO_FATAL_FAILURE(FlipInRecord(3, 100));
  ModelPersistence& other = world_->pmem(3);
  std::byte* const there =
      other.region().last(kScrubbedRingBytes).data() +
      (primary_->log->ring().At(OffsetOf(3)) - primary_->log->ring().data());
  const std::byte flipped = there[100] ^ std::byte{4};
  other.Copy(there + 100, &flipped, 1);
  ASSERT_TRUE(Persist(other, there + 100, 1));
  Scrub();
  const State after = AfterAPass();
  EXPECT_GE(after.scrubbed.unrepairable, 1u);
  EXPECT_EQ(after.scrubbed.repaired, 0u);
  Append("the log goes on");
}

// Goal: SCR5. The record is cleaned after each number of steps of its repair.
TEST_F(OwnScrubTest, RecordThatIsCleanedMeanwhileStaysCleaned) {
  for (int steps = 0; steps < 60; ++steps) {
    for (const uint64_t byte : {40, 100}) {
      SCOPED_TRACE(absl::StrCat("byte ", byte, ", cleaned after ", steps));
      ASSERT_NO_FATAL_FAILURE(Start());
      ASSERT_NO_FATAL_FAILURE(FlipInRecord(3, byte));
      Scrub();
      for (int i = 0; i < steps; ++i) StepOnce();
      ASSERT_TRUE(primary_->log->Cleanup(Lsn(3)).ok());
      AfterAPass();
      ASSERT_TRUE(primary_->log->Cleanup(Lsn(2)).ok());
      ASSERT_TRUE(primary_->log->Cleanup(Lsn(1)).ok());
      EXPECT_EQ(primary_->log->head_lsn(), Lsn(4));
    }
  }
}

// The ring is used again and again while passes go on: nothing that was written
// over counts as damage.
TEST_F(OwnScrubTest, HeadThatMovesOnIsNoDamage) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Scrub();
  for (int i = 0; i < 300; ++i) {
    Append(TextOf(i));
    if (i % 7 == 0) {
      ASSERT_TRUE(
          primary_->log->CleanupThrough(primary_->log->durable_lsn() - 2).ok());
    }
  }
  const State after = AfterAPass();
  EXPECT_GT(after.scrub_passes, 2u);
  EXPECT_GT(after.scrubbed.records, 0u);
  EXPECT_EQ(after.scrubbed.damaged, 0u);
}

TEST_F(OwnScrubTest, CopiesOfSuperlineAndTableAreRepaired) {
  for (const bool is_table : {false, true}) {
    for (const int copy : {0, 1}) {
      SCOPED_TRACE(absl::StrCat(is_table ? "table " : "superline ", copy));
      ASSERT_NO_FATAL_FAILURE(Start());
      const std::span<std::byte> region = world_->pmem(1).region();
      const RegionState before = *ReadRegionState(region, "before");
      const CellPlace place = is_table
                                  ? EpochTablePlace(region, before.superline)
                                  : SuperlinePlace(region);
      ASSERT_NO_FATAL_FAILURE(Flip(place.copies[copy] + 30));
      ASSERT_FALSE(ReadRegionState(region, "damaged")->single_faults.empty());
      Scrub();
      EXPECT_EQ(AfterAPass().scrubbed.repaired, 1u);
      const RegionState after = *ReadRegionState(region, "after");
      EXPECT_THAT(after.single_faults, IsEmpty());
      EXPECT_EQ(after.superline, before.superline);
      // The next update knows its number.
      ASSERT_TRUE(primary_->log->CleanupAll().ok());
      EXPECT_THAT(ReadRegionState(region, "moved")->single_faults, IsEmpty());
    }
  }
}

// A power cut at each fence: one copy of each is always whole.
TEST_F(OwnScrubTest, EveryCutOfRepairedCopiesLeavesOneWhole) {
  for (const bool is_table : {false, true}) {
    for (const int copy : {0, 1}) {
      SCOPED_TRACE(absl::StrCat(is_table ? "table " : "superline ", copy));
      ASSERT_NO_FATAL_FAILURE(Start());
      ModelPersistence& pmem = world_->pmem(1);
      const RegionState before = *ReadRegionState(pmem.region(), "before");
      const CellPlace place =
          is_table ? EpochTablePlace(pmem.region(), before.superline)
                   : SuperlinePlace(pmem.region());
      ASSERT_NO_FATAL_FAILURE(Flip(place.copies[copy] + 30));
      CrashEnumerator cuts({});
      pmem.SetHook([&](const ModelPersistence::Event& event) {
        if (event.primitive != ModelPersistence::Primitive::kFence) return;
        cuts.Enumerate(pmem, 0, [&](const CrashState& cut) {
          std::vector<std::byte> region(cut.image.begin(), cut.image.end());
          const auto state = ReadRegionState(region, "cut");
          ASSERT_TRUE(state.ok()) << cut.Describe() << ": " << state.status();
          EXPECT_EQ(state->superline, before.superline) << cut.Describe();
          EXPECT_EQ(state->table.Encode(), before.table.Encode())
              << cut.Describe();
        });
      });
      Scrub();
      EXPECT_EQ(AfterAPass().scrubbed.repaired, 1u);
      pmem.SetHook({});
      EXPECT_GT(cuts.counts().distinct, 1u);
    }
  }
}

// --- Bytes that others are shown ---------------------------------------------

// Goal: MUK2. In whatever moment it is asked, a power cut would leave the same.
TEST_F(OwnScrubTest, OnlyWhatIsPersistedIsShown) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Scrub();
  ModelPersistence& pmem = world_->pmem(1);
  const recovery::Fetch all{RingOffset(0), kScrubbedRingBytes};
  int looks = 0;
  pmem.SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kFence) return;
    const recovery::Fetched shown = primary_->upkeep->Show(all);
    const std::vector<std::byte> cut = pmem.CutKeepingNone();
    ASSERT_LE(shown.bytes.size(), kScrubbedRingBytes);
    EXPECT_TRUE(std::ranges::equal(
        shown.bytes,
        std::span(cut).last(kScrubbedRingBytes).first(shown.bytes.size())));
    ++looks;
  });
  for (int i = 1; i <= 5; ++i) Append(TextOf(kRecords + i));
  pmem.SetHook({});
  EXPECT_GE(looks, 5);
  // In the end it is all of it.
  const RingOffset end =
      OffsetOf(kRecords + 5) + RecordBytes(TextOf(kRecords + 5).size());
  EXPECT_EQ(primary_->upkeep->Show(all).bytes.size(), end.value);
}

// Bytes behind the head may be used again.
TEST_F(OwnScrubTest, WhatTheHeadHasPassedIsNotShown) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Scrub();
  const RingOffset third = OffsetOf(3);
  ASSERT_TRUE(primary_->log->CleanupThrough(Lsn(2)).ok());
  ASSERT_TRUE(primary_->log->CleanupAll().ok());
  StepOnce();
  EXPECT_THAT(primary_->upkeep->Show({third, 64}).bytes, IsEmpty());
  Append("more");
  ASSERT_TRUE(
      StepUntil([&] { return primary_->sink->replication_state().is_idle; }));
  EXPECT_THAT(primary_->upkeep->Show({third, 64}).bytes, IsEmpty());
  EXPECT_EQ(
      primary_->upkeep->Show({primary_->log->head().offset, 64}).bytes.size(),
      64u);
}

TEST_F(OwnScrubTest, LogThatHasFailedShowsNothing) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Scrub();
  EXPECT_EQ(primary_->upkeep->Show({RingOffset(0), 64}).bytes.size(), 64u);
  world_->pmem(1).FailFence(1);
  const std::string text = TextOf(7);
  const std::span<const std::byte> part = AsBytes(text);
  EXPECT_FALSE(primary_->log->Append({&part, 1}, 1, {}).ok());
  EXPECT_THAT(primary_->upkeep->Show({RingOffset(0), 64}).bytes, IsEmpty());
}

// P-H20. Nobody knows then how much of a repair is persisted.
TEST_F(OwnScrubTest, FenceThatFailsEndsTheLog) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_NO_FATAL_FAILURE(FlipInRecord(3, 100));
  for (int i = 0; i < 1000; ++i) StepOnce();  // all is persisted
  ASSERT_EQ(state().scrubbed.repaired, 0u);
  Scrub();
  world_->pmem(1).FailFence(1);
  ASSERT_TRUE(StepUntil([&] { return !primary_->log->IsUsable(); }));
  const uint64_t passes = state().scrub_passes;
  for (int i = 0; i < 1000; ++i) StepOnce();
  EXPECT_EQ(state().scrub_passes, passes);
}

}  // namespace
}  // namespace alpheus::testing
