// SPDX-License-Identifier: Apache-2.0
// Does the checker of damage know what may be unseen, and see what may not?
// The records of three replicas that a client wrote, one of which is damaged.
#include "tools/sim/checkers/damage_checker.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "recovery/opening/epoch_opening.h"
#include "tests/tools/sim/world/checked_world.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/region_damage.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

constexpr int kHurt = 1;  // machine whose medium is damaged

class DamageCheckerTest : public ::testing::Test {
 protected:
  static RunOptions Options() {
    RunOptions options;
    options.nodes = 3;
    options.write_quorum = 2;
    options.read_whole_bytes_max = 0;
    return options;
  }

  void SetUp() override {
    world_.StartPrimary(world_.machine(0));
    for (int i = 0; i < 100'000 && !IsEnough(); ++i) world_.network().Step();
    ASSERT_TRUE(IsEnough());
    world_.CutPower(world_.machine(kHurt));
    image_ = world_.store().medium(kHurt)->CutKeepingNone();
    const std::optional<ImageLog> log = ReadImage(image_);
    ASSERT_TRUE(log);
    log_ = *log;
    ASSERT_GT(log_.records.size(), 5u);
    ASSERT_EQ(violated(), "");
  }
  // Some of the last records are not cleaned.
  bool IsEnough() {
    const History& history = world_.history();
    return history.records_acknowledged() >= 60 &&
           !history.IsCleaned(Lsn(history.chosen_end().value - 8));
  }
  std::string violated() { return ViolatedBy(world_.oracle()); }
  DamageChecker& checker() { return world_.checkers().damage; }

  // Another byte in the record, that many bytes after its start.
  void Damage(const ImageRecord& record, size_t byte) {
    RegionImage damaged = image_;
    damaged[record.at + byte] ^= std::byte{1};
    const std::optional<Lacks> lacks = LacksOf(log_, image_, damaged);
    ASSERT_TRUE(lacks);
    ASSERT_EQ(lacks->size(), 1u);
    world_.store().Damage(kHurt, damaged, *lacks);
    damaged_ = std::move(damaged);
  }
  static size_t Payload() { return kRecordHeaderBytes; }

  RegionState StateOf(RegionImage& image) {
    return *ReadRegionState(image, "image");
  }
  // An epoch that was opened on the image, and read from that record on.
  recovery::EpochOpened OpenedFrom(const LogPosition& read_from) {
    const RegionState state = StateOf(image_);
    recovery::EpochOpened opened;
    opened.start.superline = state.superline;
    opened.start.table = state.table;
    opened.start.read_from = read_from;
    opened.head = state.head();
    opened.end.lsn = log_.records.back().lsn + 1;
    return opened;
  }
  LogPosition PositionOf(Lsn lsn) {
    const RegionState state = StateOf(image_);
    RecordCursor cursor = CursorOf(image_, state);
    while (cursor.position().lsn < lsn) cursor.Next();
    return cursor.position();
  }
  static RecordCursor CursorOf(RegionImage& image, const RegionState& state) {
    const Ring ring = RingOf(image, state.superline);
    return {ring, state.table, state.head(),
            state.head().offset + ring.capacity()};
  }
  // All records, whole.
  std::vector<History::Shown> Records() {
    const RegionState state = StateOf(image_);
    RecordCursor cursor = CursorOf(image_, state);
    std::vector<History::Shown> records;
    while (cursor.position().lsn <= log_.records.back().lsn) {
      cursor.Next();
      const RecordView& record = cursor.record();
      records.push_back({record.lsn(), record.epoch(), record.aborted(),
                         record.cleaned, record.payload});
    }
    return records;
  }
  // Reads the image, of an opening that began to read at that record.
  bool Read(RegionImage& image, Lsn read_from,
            std::optional<int> machine = kHurt) {
    const RegionState state = StateOf(image_);
    return checker().ReadRecovered(machine, RingOf(image, state.superline),
                                   OpenedFrom(PositionOf(read_from)),
                                   Records());
  }
  // One that a reader is shown, and that nobody has cleaned.
  const ImageRecord& Shown() {
    const std::vector<History::Shown> records = Records();
    for (size_t i = records.size() - 2; i > 0; --i) {
      if (!records[i].aborted && !records[i].payload.empty() &&
          !world_.history().IsCleaned(records[i].lsn)) {
        return log_.records[i];
      }
    }
    ADD_FAILURE() << "all were cleaned";
    return log_.records.front();
  }
  Lsn LastLsn() const { return log_.records.back().lsn; }
  absl::Status Refusal(Lsn lsn) {
    return absl::DataLossError(
        absl::StrCat("log: the header of LSN ", lsn.value, " at offset 64"));
  }
  // Records that an installation may leave unread by the medium's place.
  Lacks LeftUnread(const LogPosition& place) {
    RegionState before = StateOf(damaged_);
    before.watermarks = {};
    before.watermarks.lines[0] = Watermark{
        before.superline.log_epoch, place.lsn, {place.offset, place.chain}};
    return checker().LeftUnread(kHurt, before, StateOf(damaged_));
  }

  World world_{Options()};
  RegionImage image_;
  RegionImage damaged_;
  ImageLog log_;
};

TEST_F(DamageCheckerTest, WhatIsLackingIsPutBack) {
  Damage(Shown(), Payload());
  const RegionState state = StateOf(damaged_);
  EXPECT_EQ(checker().Restored(kHurt, damaged_, state.table, log_.head.lsn),
            image_);
  // The head has passed it; another record may lie there.
  EXPECT_EQ(checker().Restored(kHurt, damaged_, state.table, LastLsn() + 1),
            damaged_);
  EXPECT_EQ(checker().Restored(kHurt, damaged_, EpochTable::Empty(kLogId),
                               log_.head.lsn),
            damaged_);
}

// The record was cleaned after its payload was damaged.
TEST_F(DamageCheckerTest, CleanedWordOfAWholeHeaderIsThatOfNow) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  const size_t at = record.at + offsetof(RecordHeader, cleaned);
  damaged_[at] = std::byte{7};
  const auto restored = checker().Restored(
      kHurt, damaged_, StateOf(damaged_).table, log_.head.lsn);
  EXPECT_EQ(restored[at], std::byte{7});
  EXPECT_EQ(restored[record.at + Payload()], image_[record.at + Payload()]);
}

TEST_F(DamageCheckerTest, ReportThatNamesADamagedRecordViolatesDmg1) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  checker().Named(kHurt, record.lsn + 1);
  checker().Named(0, record.lsn);
  EXPECT_EQ(violated(), "");
  checker().Named(kHurt, record.lsn);
  EXPECT_EQ(violated(), "DMG1");
}

TEST_F(DamageCheckerTest, DamageBeforeThePlaceMayBeLeftUnread) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  EXPECT_TRUE(LeftUnread(PositionOf(record.lsn)).empty());
  const Lacks left = LeftUnread(PositionOf(record.lsn + 1));
  EXPECT_EQ(left, world_.store().lacks(kHurt));
  world_.store().Suspect(kHurt, Epoch());
  EXPECT_TRUE(LeftUnread(PositionOf(record.lsn + 1)).empty());
}

// It may reach the medium after the error.
TEST_F(DamageCheckerTest, InstallationThatBeganBeforeAnErrorReadNoMore) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  world_.store().Suspect(kHurt, world_.checkers().epochs.log_epoch(kHurt));
  EXPECT_EQ(LeftUnread(PositionOf(record.lsn + 1)),
            world_.store().lacks(kHurt));
}

TEST_F(DamageCheckerTest, RepairedRecordIsNotLacking) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  EXPECT_TRUE(checker().IsLacking(kHurt, record.lsn));
  checker().MayBeRepaired(kHurt);
  EXPECT_TRUE(world_.store().IsHurt(kHurt));
  World::Model& pmem = *world_.machine(kHurt).pmem;
  std::byte* const to = pmem.region().data() + record.at;
  pmem.Copy(to, image_.data() + record.at, record.said);
  pmem.Flush(to, record.said);
  ASSERT_TRUE(pmem.Fence());
  EXPECT_FALSE(checker().IsLacking(kHurt, record.lsn));
  checker().MayBeRepaired(kHurt);
  EXPECT_FALSE(world_.store().IsHurt(kHurt));
}

TEST_F(DamageCheckerTest, ReaderGetsAllOfAWholeLog) {
  EXPECT_TRUE(Read(image_, log_.head.lsn));
  EXPECT_TRUE(Read(image_, LastLsn()));
  EXPECT_EQ(violated(), "");
}

TEST_F(DamageCheckerTest, ReaderMayMeetWhatTheOpeningDidNotRead) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  EXPECT_FALSE(Read(damaged_, record.lsn + 1));
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(world_.counters().damage_read, 1u);
}

TEST_F(DamageCheckerTest, ErrorForARecordThatNoFaultTookViolatesDmg3) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  EXPECT_FALSE(Read(damaged_, record.lsn + 1, /*machine=*/std::nullopt));
  EXPECT_EQ(violated(), "DMG3");
}

// The opening has read the header alone: a reader trusts its payload.
TEST_F(DamageCheckerTest, DamagedBytesThatAReaderGetsViolateDmg3) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  EXPECT_FALSE(Read(damaged_, record.lsn));
  EXPECT_EQ(violated(), "DMG3");
}

TEST_F(DamageCheckerTest, HeaderThatTheOpeningHasReadAndNobodyCanViolatesDmg3) {
  const ImageRecord record = Shown();
  Damage(record, 8);
  EXPECT_FALSE(Read(damaged_, record.lsn));
  EXPECT_EQ(violated(), "DMG3");
}

TEST_F(DamageCheckerTest, TailOfAWholeLogViolatesNothing) {
  PrimaryProcess& primary = *world_.machine(0).primary;
  checker().ReadTail(0, primary.log(), Lsn(0));
  EXPECT_EQ(violated(), "");
}

TEST_F(DamageCheckerTest, TailThatCantReadWhatNoFaultTookViolatesDmg3) {
  PrimaryProcess& primary = *world_.machine(0).primary;
  const size_t at = world_.layout().ring_offset +
                    primary.log().ring().Place(primary.log().head().offset);
  std::memset(world_.machine(0).pmem->region().data() + at, 0, 64);
  checker().ReadTail(0, primary.log(), primary.next_lsn());
  EXPECT_EQ(violated(), "DMG3");
}

TEST_F(DamageCheckerTest, CallsAreRefusedForAHeaderThatTheOpeningDidNotRead) {
  const ImageRecord record = Shown();
  Damage(record, 8);
  const Lsn behind = record.lsn + 1;
  EXPECT_TRUE(checker().MayRefuse(kHurt, behind, Refusal(record.lsn)));
  EXPECT_FALSE(checker().MayRefuse(kHurt, record.lsn, Refusal(record.lsn)));
  EXPECT_FALSE(checker().MayRefuse(kHurt, behind, Refusal(behind)));
  EXPECT_FALSE(checker().MayRefuse(0, behind, Refusal(record.lsn)));
  EXPECT_FALSE(checker().MayRefuse(kHurt, behind, absl::DataLossError("?")));
}

TEST_F(DamageCheckerTest, NoCallIsRefusedForAPayload) {
  const ImageRecord record = Shown();
  Damage(record, Payload());
  EXPECT_FALSE(checker().MayRefuse(kHurt, record.lsn + 1, Refusal(record.lsn)));
}

}  // namespace
}  // namespace alpheus::sim
