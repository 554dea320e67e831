// SPDX-License-Identifier: Apache-2.0
// The part of its ring that a replica reads for a report and for an
// installation: from its proven place to its ceiling (P-A3.7).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "log/format/layout.h"
#include "log/format/watermark.h"
#include "recovery/protocol/state_report.h"
#include "recovery/replica/local_replica.h"
#include "recovery/replica/state_report_scan.h"
#include "tests/recovery/replica/replica_fixture.h"

namespace alpheus::testing {
namespace {

using recovery::Installation;
using recovery::StateReport;
using recovery::Verdict;
using ::testing::ElementsAre;
using ::testing::SizeIs;

using Code = absl::StatusCode;

const recovery::LocalReplicaOptions kReadsLeast = {.name = "model",
                                                   .read_whole_bytes_max = 0};

class ReplicaPlaceTest : public ReplicaTest {
 protected:
  ReplicaPlaceTest() { EXPECT_TRUE(world_.Open(kReadsLeast).ok()); }

  // Opens epoch 6 on the log of InstallLog with more records, all of them
  // visible here, none named by a watermark.
  void WriteUnmarked(int count) {
    const Lsn first = log_.end().lsn;
    for (int i = 0; i < count; ++i) log_.Append("unmarked");
    world_.CopyRecords(log_, first, log_.end().lsn);
  }

  // The header at the head of InstallLog's log was damaged. A repair has copied
  // it again, which is visible only, and was cut off.
  void CutOffARepairBeforeThePlace() {
    InstallLog();
    log_.OpenEpoch(Epoch(7));
    ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
    Damage(Lsn(1), 0);
    world_.pmem().Flush(replica().ring().At(log_.head().offset), kLineBytes);
    ASSERT_TRUE(world_.pmem().Fence());
    ASSERT_FALSE(replica().MakeStateReport()->place.has_value());
    ASSERT_TRUE(replica().RaiseCeiling(Epoch(7), log_.end().offset).ok());
    world_.CopyRecords(log_, Lsn(1), Lsn(2));
  }
  // The next try of the same epoch, and then a power cut.
  void ExpectTheNextTryPersistsAll() {
    ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
    EXPECT_FALSE(replica().MakeStateReport()->place.has_value());
    ASSERT_TRUE(replica().Install(log_.ToInstall()).ok());
    world_.PowerCut();
    EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b"));
  }
};

TEST_F(ReplicaPlaceTest, ReportBeginsAtTheProvenPlace) {
  InstallLog();
  const StateReport report = *replica().MakeStateReport();
  EXPECT_EQ(report.head, log_.head());
  ASSERT_TRUE(report.place.has_value());
  EXPECT_EQ(*report.place, log_.PositionOf(Lsn(2)));
  EXPECT_THAT(report.records, SizeIs(1));
  recovery::VerdictReader reader(report);
  const recovery::VerdictReader::Seen seen = reader.At(Lsn(1));
  EXPECT_EQ(seen.verdict, Verdict::kHave);
  EXPECT_EQ(seen.record, nullptr);
  EXPECT_EQ(seen.epoch, Epoch(5));
  EXPECT_EQ(seen.end, Lsn(2));
  EXPECT_NE(reader.At(Lsn(2)).record, nullptr);
  EXPECT_EQ(reader.At(Lsn(3)).verdict, Verdict::kAbsent);
}

// SSC2: with what nothing proves a fault takes a proven record, which is read.
TEST_F(ReplicaPlaceTest, DamageOfTheRecordAtThePlaceIsReported) {
  InstallLog();
  Damage(Lsn(2), kRecordHeaderBytes);
  const StateReport report = *replica().MakeStateReport();
  recovery::VerdictReader reader(report);
  EXPECT_EQ(reader.At(Lsn(2)).verdict, Verdict::kCorrupt);
}

// SSC2, around the ring.
TEST_F(ReplicaPlaceTest, ReportBeginsAtAHeadThatCantBeRead) {
  InstallLog();
  Damage(Lsn(1), 0);
  const StateReport report = *replica().MakeStateReport();
  EXPECT_FALSE(report.place.has_value());
  recovery::VerdictReader reader(report);
  EXPECT_EQ(reader.At(Lsn(1)).verdict, Verdict::kCorrupt);
  EXPECT_THAT(report.records, SizeIs(1));
}

TEST_F(ReplicaPlaceTest, ReportFromTheHeadNamesAll) {
  InstallLog();
  const StateReport report = *replica().MakeStateReport(/*from_head=*/true);
  EXPECT_FALSE(report.place.has_value());
  EXPECT_THAT(report.records, SizeIs(2));
}

// Goal: what an adapter took and nobody walked is reported: W members may have
// acknowledged it all the same.
TEST_F(ReplicaPlaceTest, BytesThatNobodyWalkedAreReported) {
  InstallLog();
  WriteUnmarked(2);
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  const StateReport report = *replica().MakeStateReport();
  EXPECT_EQ(report.place->lsn, Lsn(2));
  EXPECT_THAT(report.records, SizeIs(3));
  // REP2.
  world_.PowerCut();
  EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b", "unmarked", "unmarked"));
}

TEST_F(ReplicaPlaceTest, ScanEndsAtTheCeiling) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  Installation installation = log_.ToInstall();
  installation.ceiling = log_.end().offset + 2 * kLineBytes;
  ASSERT_TRUE(replica().Install(installation).ok());
  EXPECT_EQ(world_.State().superline.ceiling, installation.ceiling);
  const RegionState state = world_.State();
  recovery::StateReportScan scan(world_.region(), state,
                                 {.read_whole_bytes_max = 0});
  while (!scan.Continue(std::numeric_limits<uint64_t>::max())) {
  }
  EXPECT_EQ(scan.bytes_read(),
            installation.ceiling - log_.PositionOf(Lsn(2)).offset);
}

// SUP5: before a repair writes there.
TEST_F(ReplicaPlaceTest, CeilingIsRaisedForARepair) {
  InstallLog();
  CraftSuperline([](Superline& s) { s.ceiling = RingOffset(128); });
  ASSERT_TRUE(world_.Open(kReadsLeast).ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().RaiseCeiling(Epoch(7), RingOffset(512)).ok());
  world_.PowerCut();
  EXPECT_EQ(world_.State().superline.ceiling, RingOffset(512));
  ASSERT_TRUE(world_.Open(kReadsLeast).ok());
  const std::vector<std::byte> before = world_.Snapshot();
  EXPECT_TRUE(replica().RaiseCeiling(Epoch(7), RingOffset(448)).ok());
  EXPECT_EQ(world_.Snapshot(), before);
  // At most a lap after the head.
  EXPECT_TRUE(replica().RaiseCeiling(Epoch(7), RingOffset(4096)).ok());
  EXPECT_EQ(world_.State().superline.ceiling, RingOffset(1024));
  ExpectRefused(
      [&] { return replica().RaiseCeiling(Epoch(6), RingOffset(64)); },
      Code::kFailedPrecondition, "promised is epoch 7");
  ExpectRefused(
      [&] { return replica().RaiseCeiling(Epoch(7), RingOffset(65)); },
      Code::kInvalidArgument, "no line begins");
}

// REP3, as far as it was read before.
TEST_F(ReplicaPlaceTest, InstallationReadsFromTheSharedPlaceOn) {
  InstallLog();
  WriteUnmarked(2);
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  Damage(Lsn(1), kRecordHeaderBytes);
  const std::vector<std::byte> image = world_.Snapshot();
  ASSERT_TRUE(replica().MakeStateReport().ok());
  EXPECT_TRUE(replica().Install(log_.ToInstall()).ok());
  EXPECT_EQ(replica().StartOfLog().read_from.lsn, Lsn(2));

  world_.Reset(image);
  ASSERT_TRUE(world_.Open(kReadsLeast).ok());
  ASSERT_TRUE(replica().MakeStateReport().ok());
  Damage(Lsn(3), kRecordHeaderBytes);
  EXPECT_TRUE(absl::IsDataLoss(replica().Install(log_.ToInstall())));
}

// REP8: a report that began at the head had records before the place repaired.
TEST_F(ReplicaPlaceTest, WhatWasRepairedBeforeThePlaceIsPersisted) {
  CutOffARepairBeforeThePlace();
  ExpectTheNextTryPersistsAll();
}

// REP8: no object in memory has to know of it.
TEST_F(ReplicaPlaceTest, AnotherProcessPersistsWhatWasRepairedBeforeThePlace) {
  CutOffARepairBeforeThePlace();
  ASSERT_TRUE(world_.Open(kReadsLeast).ok());
  ExpectTheNextTryPersistsAll();
}

// REP8: what follows a large log is repaired without reading all of it.
// A log of at most read_whole_bytes_max is checked as a whole each time.
TEST_F(ReplicaPlaceTest, SmallLogIsReadAsAWholeByAnInstallation) {
  InstallLog();
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.Open({.name = "model"}).ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  Damage(Lsn(1), kRecordHeaderBytes);
  ASSERT_TRUE(replica().MakeStateReport().ok());
  EXPECT_TRUE(absl::IsDataLoss(replica().Install(log_.ToInstall())));
}

TEST_F(ReplicaPlaceTest, PlaceStaysWhereNoRepairBeginsBeforeIt) {
  InstallLog();
  const LogPosition place = world_.State().proven_place();
  ASSERT_EQ(place.lsn, Lsn(2));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().MakeStateReport().ok());
  ASSERT_TRUE(replica().RaiseCeiling(Epoch(7), log_.end().offset).ok());
  EXPECT_EQ(world_.State().proven_place(), place);
  // Nor where nothing is repaired.
  ASSERT_TRUE(replica().MakeStateReport(/*from_head=*/true).ok());
  ASSERT_TRUE(replica().RaiseCeiling(Epoch(7), RingOffset(0)).ok());
  EXPECT_EQ(world_.State().proven_place(), place);
  // Without a place the same is proven.
  ASSERT_TRUE(replica().RaiseCeiling(Epoch(7), log_.end().offset).ok());
  EXPECT_EQ(world_.State().proven_place(), log_.head());
  EXPECT_EQ(world_.State().ProvenLsn(), Lsn(2));
}

TEST_F(ReplicaPlaceTest, InstallationWritesThePlaceOfItsLastRecord) {
  InstallLog();
  const LogPosition last = log_.PositionOf(Lsn(2));
  EXPECT_EQ(world_.State().proven_place(), last);
  for (const auto& line : world_.State().watermarks.lines) {
    ASSERT_TRUE(line.has_value());
    EXPECT_EQ(line->place, (WatermarkPlace{last.offset, last.chain}));
  }
  EXPECT_EQ(replica().StartOfLog().last,
            (WatermarkPlace{last.offset, last.chain}));
}

// A region that was made to look right: its place is after the end of the log.
TEST_F(ReplicaPlaceTest, PlaceOutsideOfTheLogIsNotTaken) {
  InstallLog();
  for (const int line : {0, 1}) {
    const WatermarkFormat watermark = EncodeWatermark(
        kWorldLog, line, {Epoch(6), Lsn(2), {RingOffset(512), 7}});
    world_.pmem().CopyLinesNt(WatermarkLine(world_.region(), line), &watermark,
                              1);
    ASSERT_TRUE(world_.pmem().Fence());
  }
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  const StateReport report = *replica().MakeStateReport();
  ASSERT_TRUE(report.place.has_value());
  EXPECT_EQ(report.place->offset, RingOffset(512));
  EXPECT_TRUE(replica().Install(log_.ToInstall()).ok());
  EXPECT_EQ(replica().StartOfLog().read_from, log_.head());
}

// The record that the own watermark names was cut: with nothing to read there
// would be no place to write.
TEST_F(ReplicaPlaceTest, OneRecordAtLeastIsRead) {
  InstallLog();
  LogImage other(1024);
  other.OpenEpoch(Epoch(5));
  other.Append("a");
  other.OpenEpoch(Epoch(8));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(8)).ok());
  ASSERT_TRUE(replica().MakeStateReport().ok());
  Damage(Lsn(1), kRecordHeaderBytes);
  EXPECT_TRUE(absl::IsDataLoss(replica().Install(other.ToInstall())));
}

// Nothing is known of it: any record may have been overwritten.
TEST_F(ReplicaPlaceTest, RepairingReplicaReadsAllThatItInstalls) {
  InstallLog();
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().MakeStateReport().ok());
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  Damage(Lsn(1), kRecordHeaderBytes);
  EXPECT_TRUE(absl::IsDataLoss(replica().Install(log_.ToInstall())));
}

// Records before the own head were copied here.
TEST_F(ReplicaPlaceTest, LogFromAnEarlierHeadIsReadAsAWhole) {
  InstallLog();
  ASSERT_TRUE(
      replica()
          .PublishBounds(Epoch(6), log_.BoundsWith(log_.PositionOf(Lsn(2))))
          .ok());
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().MakeStateReport().ok());
  Damage(Lsn(1), kRecordHeaderBytes);
  EXPECT_TRUE(absl::IsDataLoss(replica().Install(log_.ToInstall())));
}

// The own records from LSN 2 on are of an epoch that lost.
TEST_F(ReplicaPlaceTest, RecordsOfAnotherHistoryAreRead) {
  InstallLog();
  LogImage other(1024);
  other.OpenEpoch(Epoch(5));
  other.Append("a");
  other.OpenEpoch(Epoch(7));
  other.Append("c");
  other.OpenEpoch(Epoch(8));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(8)).ok());
  ASSERT_TRUE(replica().MakeStateReport().ok());
  world_.CopyRecords(other, Lsn(2), Lsn(3));
  Damage(Lsn(2), kRecordHeaderBytes);
  EXPECT_TRUE(absl::IsDataLoss(replica().Install(other.ToInstall())));
  world_.CopyRecords(other, Lsn(2), Lsn(3));
  Damage(Lsn(1), kRecordHeaderBytes);
  EXPECT_TRUE(replica().Install(other.ToInstall()).ok());
}

TEST_F(ReplicaPlaceTest, ImpossibleCeilingsAreRefused) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  const RingOffset end = log_.end().offset;
  for (const RingOffset ceiling :
       {end - kLineBytes, end + 1, RingOffset(1024 + kLineBytes)}) {
    Installation installation = log_.ToInstall();
    installation.ceiling = ceiling;
    ExpectInstallRefused(installation, Code::kInvalidArgument, "the ceiling");
  }
}

// P-A5: nor goes the ceiling back, below which the epoch may have written.
TEST_F(ReplicaPlaceTest, CeilingOfARunningEpochNeverGoesBack) {
  InstallLog();
  Installation installation = log_.ToInstall();
  installation.ceiling = log_.end().offset;
  ExpectInstallRefused(installation, Code::kFailedPrecondition,
                       "take some of it back");
  const RingBounds bounds = {log_.PositionOf(Lsn(2)), RingOffset(256)};
  ASSERT_TRUE(replica().PublishBounds(Epoch(6), bounds).ok());
  EXPECT_EQ(world_.State().superline.ceiling, RingOffset(1024));
  EXPECT_EQ(world_.State().superline.head_lsn, Lsn(2));
}

// A head that this replica alone was told of.
TEST_F(ReplicaPlaceTest, OlderHeadRaisesTheCeiling) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  Installation installation = log_.ToInstall();
  installation.ceiling = RingOffset(256);
  ASSERT_TRUE(replica().Install(installation).ok());
  const RingBounds later = {log_.PositionOf(Lsn(2)), RingOffset(256)};
  ASSERT_TRUE(replica().PublishBounds(Epoch(6), later).ok());
  const RingBounds older = {log_.PositionOf(Lsn(1)), RingOffset(512)};
  ASSERT_TRUE(replica().PublishBounds(Epoch(6), older).ok());
  world_.PowerCut();
  EXPECT_EQ(world_.State().head(), later.head);
  EXPECT_EQ(world_.State().superline.ceiling, older.ceiling);
}

// SharedPlace (state_report.h).
TEST(SharedPlaceTest, IsWhereOwnersBeginToDiffer) {
  const auto table = [](std::vector<EpochEntry> entries) {
    EpochTable all = EpochTable::Empty(kWorldLog);
    for (const EpochEntry& entry : entries) all = all.With(entry, Lsn(0));
    return all;
  };
  const auto entry = [](uint64_t epoch, uint64_t lsn) {
    return EpochEntry{Epoch(epoch), epoch, Lsn(lsn),
                      RingOffset(lsn * kLineBytes), lsn + 100};
  };
  const auto at = [](uint64_t lsn) {
    return LogPosition{Lsn(lsn), RingOffset(lsn * kLineBytes), lsn + 100};
  };
  const EpochTable own = table({entry(1, 1), entry(2, 5), entry(4, 8)});
  using recovery::SharedPlace;
  EXPECT_EQ(SharedPlace(own, at(20), own, at(1)), at(20));
  // The other's next epoch starts earlier, later, or at the same place.
  EXPECT_EQ(SharedPlace(own, at(20), table({entry(1, 1), entry(3, 3)}), at(1)),
            at(3));
  EXPECT_EQ(SharedPlace(own, at(20),
                        table({entry(1, 1), entry(2, 5), entry(5, 12)}), at(1)),
            at(8));
  EXPECT_EQ(SharedPlace(own, at(20),
                        table({entry(1, 1), entry(2, 5), entry(5, 8)}), at(1)),
            at(8));
  // The place is before that.
  EXPECT_EQ(SharedPlace(own, at(4), table({entry(1, 1), entry(3, 5)}), at(1)),
            at(4));
  // Entries that own nothing from the head on have left.
  EXPECT_EQ(SharedPlace(own, at(20), table({entry(2, 5), entry(4, 8)}), at(6)),
            at(20));
  // Nothing is shared from the start on.
  EXPECT_EQ(SharedPlace(own, at(20), table({entry(3, 1)}), at(1)), at(1));
  EXPECT_EQ(SharedPlace(own, at(1), own, at(3)), at(3));
}

}  // namespace
}  // namespace alpheus::testing
