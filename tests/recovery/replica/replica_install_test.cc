// SPDX-License-Identifier: Apache-2.0
// Installations on a replica, and those that it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "log/core/read/scan.h"
#include "recovery/replica/local_replica.h"
#include "tests/recovery/replica/replica_fixture.h"

namespace alpheus::testing {

using recovery::Installation;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Code = absl::StatusCode;

// P-H3, REP3.
TEST_F(ReplicaTest, InstalledRecordsOutliveAPowerCut) {
  InstallLog();
  EXPECT_EQ(replica().superline().log_epoch, Epoch(6));
  EXPECT_EQ(replica().table().entries(), log_.table().entries());
  world_.PowerCut();
  const RegionState state = world_.State();
  EXPECT_EQ(state.superline.log_epoch, Epoch(6));
  EXPECT_TRUE(state.superline_cell.copies_agree());
  EXPECT_TRUE(state.table_cell.copies_agree());
  const LogPosition& last = log_.PositionOf(Lsn(2));
  for (const auto& line : state.watermarks.lines) {
    EXPECT_EQ(line, (Watermark{Epoch(6), Lsn(2), {last.offset, last.chain}}));
  }
  EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b"));
}

TEST_F(ReplicaTest, EmptyLogIsInstalled) {
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  EXPECT_EQ(replica().superline().log_epoch, Epoch(6));
  EXPECT_THAT(world_.Payloads(), IsEmpty());
}

// P-H3: whether header, payload or all of a record is missing.
TEST_F(ReplicaTest, LogThatIsNotThereIsNotInstalled) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  ExpectInstallRefused(log_.ToInstall(), Code::kDataLoss, "LSN 1 at offset");
  world_.CopyAll(log_);
  for (const size_t byte : {size_t{24}, size_t{kRecordHeaderBytes}}) {
    Damage(Lsn(2), byte);
    ExpectInstallRefused(log_.ToInstall(), Code::kDataLoss, "LSN 2 at offset");
    Damage(Lsn(2), byte);
  }
  EXPECT_TRUE(replica().Install(log_.ToInstall()).ok());
}

// P-H8: at the end, and where an epoch of the middle starts.
TEST_F(ReplicaTest, LogWithAnotherChainIsNotInstalled) {
  MakeLog();
  LogImage other = log_;
  other.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(other);
  Installation installation = other.ToInstall();
  installation.end.chain ^= 1;
  const EpochEntry last = installation.table.entries().back();
  installation.table =
      log_.table().With({last.epoch, last.nonce, last.start_lsn,
                         last.start_offset, installation.end.chain},
                        Lsn(1));
  ExpectInstallRefused(installation, Code::kDataLoss, "epoch 6 starts with");

  const EpochEntry middle{Epoch(5), 1, Lsn(2), log_.PositionOf(Lsn(2)).offset,
                          log_.PositionOf(Lsn(2)).chain ^ 1};
  EpochEntry first = log_.table().entries()[0];
  first.epoch = Epoch(4);
  installation = other.ToInstall();
  installation.head = log_.PositionOf(Lsn(2));
  installation.table = EpochTable::Empty(kWorldLog)
                           .With(first, Lsn(1))
                           .With(middle, Lsn(1))
                           .With(last, Lsn(1));
  ExpectInstallRefused(installation, Code::kDataLoss, "epoch 5 starts with");
}

TEST_F(ReplicaTest, OnlyThePromisedEpochIsInstalled) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  world_.CopyAll(log_);
  ExpectInstallRefused(log_.ToInstall(), Code::kFailedPrecondition,
                       "promised is epoch 7");
}

TEST_F(ReplicaTest, EarlierEpochIsNotInstalled) {
  InstallLog();
  LogImage other = log_;
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  other.OpenEpoch(Epoch(7));
  world_.CopyAll(other);
  ASSERT_TRUE(replica().Install(other.ToInstall()).ok());
  ExpectInstallRefused(log_.ToInstall(), Code::kFailedPrecondition, "epoch 7");
}

// P-A5: one that joins has installed the epoch perhaps.
TEST_F(ReplicaTest, InstalledEpochIsInstalledAgainWithMoreRecords) {
  InstallLog();
  log_.Append("c");
  world_.CopyAll(log_);
  ASSERT_TRUE(replica().Install(log_.ToInstall()).ok());
  world_.PowerCut();
  EXPECT_EQ(world_.State().ProvenLsn(), Lsn(3));
  EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b", "c"));
}

TEST_F(ReplicaTest, InstalledEpochTakesNothingBack) {
  InstallLog();
  const LogPosition start = log_.end();
  log_.Append("c");
  world_.CopyAll(log_);
  Installation installation = log_.ToInstall();
  installation.head = log_.PositionOf(Lsn(2));
  ASSERT_TRUE(replica().Install(installation).ok());

  Installation shorter = installation;
  shorter.end = start;
  ExpectInstallRefused(shorter, Code::kFailedPrecondition, "take some of it");
  Installation earlier = installation;
  earlier.head = log_.PositionOf(Lsn(1));
  ExpectInstallRefused(earlier, Code::kFailedPrecondition, "take some of it");
  Installation elsewhere = installation;
  const EpochEntry last = log_.table().entries().back();
  elsewhere.table = EpochTable::Empty(world_.State().superline.log_id);
  for (const EpochEntry& entry : log_.table().entries()) {
    EpochEntry changed = entry;
    if (entry == last) ++changed.nonce;
    elsewhere.table = elsewhere.table.With(changed, Lsn(0));
  }
  ExpectInstallRefused(elsewhere, Code::kFailedPrecondition, "elsewhere");
  EXPECT_TRUE(replica().Install(installation).ok());
}

// P-H18: the superline says who keeps the log, from the epoch that changed it
// on.
TEST_F(ReplicaTest, ConfigurationChangesWithAnEpochOnly) {
  InstallLog();
  const Configuration before = world_.State().superline.configuration;
  log_.Append("c");
  world_.CopyAll(log_);
  Installation installation = log_.ToInstall();
  installation.configuration = before;
  installation.configuration.id = before.id + 1;
  installation.configuration.write_quorum = 3;
  installation.configuration.made_from = before;
  ExpectInstallRefused(installation, Code::kFailedPrecondition,
                       "another one than");

  log_.OpenEpoch(Epoch(9), 99);
  ASSERT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  Installation next = log_.ToInstall();
  next.configuration = installation.configuration;
  ASSERT_TRUE(replica().Install(next).ok());
  world_.PowerCut();
  EXPECT_EQ(world_.State().superline.configuration, installation.configuration);
}

TEST_F(ReplicaTest, ConfigurationNeverGoesBack) {
  InstallLog();
  ASSERT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  log_.OpenEpoch(Epoch(9), 99);
  Installation installation = log_.ToInstall();
  installation.configuration = world_.State().superline.configuration;
  --installation.configuration.id;
  ExpectInstallRefused(installation, Code::kFailedPrecondition, "older than");
}

TEST_F(ReplicaTest, ConfigurationThatDoesNotNameItIsNotInstalled) {
  InstallLog();
  ASSERT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  log_.OpenEpoch(Epoch(9), 99);
  Installation installation = log_.ToInstall();
  installation.configuration = world_.State().superline.configuration;
  for (Member& member : installation.configuration.members) {
    ++member.incarnation;
  }
  ExpectInstallRefused(installation, Code::kFailedPrecondition,
                       "does not name node");
}

// P-H8: in the middle of an epoch no table says what the chain is.
TEST_F(ReplicaTest, EndWithAnotherChainIsNotInstalled) {
  InstallLog();
  log_.Append("c");
  world_.CopyAll(log_);
  Installation installation = log_.ToInstall();
  installation.end.chain ^= 1;
  ExpectInstallRefused(installation, Code::kDataLoss, "the records lead to");
}

// P-H16, RPL3 (repair_plan.h).
TEST_F(ReplicaTest, BlankReplicaIsNotInstalled) {
  CraftSuperline([](Superline& superline) { superline.incarnation ^= 1; });
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_TRUE(replica().is_blank());
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  EXPECT_FALSE(replica().MakeStateReport()->knows());
  world_.CopyAll(log_);
  ExpectInstallRefused(log_.ToInstall(), Code::kFailedPrecondition, "blank");
}

TEST_F(ReplicaTest, ImpossibleInstallationsAreRefused) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  const std::vector<std::function<void(Installation&)>> crafts = {
      [](Installation& i) { i.table = EpochTable::Empty(kWorldLog); },
      [](Installation& i) { i.end.lsn = i.end.lsn - 1; },
      [](Installation& i) { i.end.offset = i.end.offset + 64; },
      [](Installation& i) { i.end.offset = i.end.offset + 8; },
      [](Installation& i) { i.end.chain ^= 1; },
      [](Installation& i) { i.end = i.head; },
      [](Installation& i) { i.end.offset = RingOffset(1088); },
      [](Installation& i) { i.end.lsn = Lsn(kLsnMax / 2 + 1); },
      [](Installation& i) { i.end.offset = RingOffset(kOffsetMax); },
      [](Installation& i) { i.head.lsn = Lsn(0); },
      [](Installation& i) { i.head.chain = 1; },
      [](Installation& i) { i.head.offset = RingOffset(64); },
      [](Installation& i) { i.head.lsn = Lsn(4); },
  };
  for (size_t i = 0; i < crafts.size(); ++i) {
    SCOPED_TRACE(i);
    Installation installation = log_.ToInstall();
    crafts[i](installation);
    ExpectInstallRefused(installation, Code::kInvalidArgument, "epoch 6");
  }
  EXPECT_TRUE(replica().Install(log_.ToInstall()).ok());
}

TEST_F(ReplicaTest, TableEntryThatCannotBeIsRefused) {
  MakeLog();
  const EpochEntry good = log_.table().entries()[0];
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  const EpochEntry last = log_.table().entries().back();
  for (const EpochEntry& entry :
       {EpochEntry{good.epoch, good.nonce, Lsn(0), RingOffset(0), 0},
        EpochEntry{good.epoch, good.nonce, Lsn(1), RingOffset(8), 0},
        EpochEntry{good.epoch, good.nonce, Lsn(1), RingOffset(1 << 20), 0}}) {
    Installation installation = log_.ToInstall();
    installation.table =
        EpochTable::Empty(kWorldLog).With(entry, Lsn(1)).With(last, Lsn(1));
    ExpectInstallRefused(installation, Code::kInvalidArgument, "epoch table");
  }
}

TEST_F(ReplicaTest, TableThatDoesNotFitIsRefusedWithAWayOut) {
  ReplicaWorld world({.ring_capacity = 1024, .table_capacity = 2});
  ASSERT_TRUE(world.Open().ok());
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    log_.OpenEpoch(Epoch(epoch));
    if (epoch < 3) log_.Append("x");
  }
  const absl::Status refused = world.InstallAll(log_);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("after LSN 1"));
  EXPECT_EQ(world.State().superline.log_epoch, Epoch(0));
}

// The head may have been told to this replica alone.
TEST_F(ReplicaTest, LogThatStartsBehindOwnHeadIsInstalled) {
  InstallLog();
  ASSERT_TRUE(
      replica()
          .PublishBounds(Epoch(6), log_.BoundsWith(log_.PositionOf(Lsn(2))))
          .ok());
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b"));
}

// P-H13, Arcadia 4.2: replicas A, B and C, R = W = 2. A alone has X at LSN 1; B
// and C go on without it and make Y durable there; then A and B recover. This
// is A.
TEST_F(ReplicaTest, DivergingHistoriesOfThePaperStayApart) {
  LogImage a = log_;
  a.OpenEpoch(Epoch(1));
  LogImage bc = a;
  ASSERT_TRUE(world_.InstallAll(a).ok());
  a.Append("X");
  a.Append("behind X");
  world_.CopyAll(a);
  EXPECT_THAT(world_.Payloads(), ElementsAre("X", "behind X"));

  bc.OpenEpoch(Epoch(2));  // never seen by A
  bc.Append("Y");
  bc.OpenEpoch(Epoch(3));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(3)).ok());
  ASSERT_TRUE(replica().BeginRepair(Epoch(3)).ok());
  world_.CopyAll(bc);
  ASSERT_TRUE(replica().Install(bc.ToInstall()).ok());
  EXPECT_THAT(world_.Payloads(), ElementsAre("Y"));
  EXPECT_THAT(replica().MakeStateReport()->records, SizeIs(1));

  // Nor later, when a record of its very size lies before what was stale.
  bc.Append("Z");
  world_.CopyRecords(bc, Lsn(2), Lsn(3));
  EXPECT_THAT(world_.Payloads(), ElementsAre("Y", "Z"));
  world_.PowerCut();
  ASSERT_TRUE(world_.Open().ok());
  bc.Truncate(Lsn(1));  // Z was visible only
  bc.OpenEpoch(Epoch(4));
  ASSERT_TRUE(world_.InstallAll(bc).ok());
  EXPECT_THAT(world_.Payloads(), ElementsAre("Y"));
}

// P-H13: nothing is copied; the table alone ends the stale tail.
TEST_F(ReplicaTest, StaleTailNeverComesBack) {
  log_.OpenEpoch(Epoch(1));
  log_.Append("kept");
  LogImage stale = log_;
  stale.Append("s");
  stale.Append("t");
  stale.OpenEpoch(Epoch(2));
  ASSERT_TRUE(world_.InstallAll(stale).ok());
  EXPECT_THAT(world_.Payloads(), SizeIs(3));
  log_.OpenEpoch(Epoch(3));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(3)).ok());
  ASSERT_TRUE(replica().Install(log_.ToInstall()).ok());
  EXPECT_THAT(world_.Payloads(), ElementsAre("kept"));
  log_.Append("n");
  world_.CopyRecords(log_, Lsn(2), Lsn(3));
  EXPECT_THAT(world_.Payloads(), ElementsAre("kept", "n"));
}

// P-A1: a damaged PAD beside a good record.
TEST_F(ReplicaTest, DamagedPadIsWrittenAgain) {
  log_.OpenEpoch(Epoch(5));
  log_.Append(std::string(400, 'a'));  // 448 bytes
  log_.Append(std::string(400, 'b'));  // 448, then 128 to the end
  log_.CleanThrough(Lsn(1));
  log_.Append(std::string(200, 'c'));  // behind a PAD
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  Damage(Lsn(3), 20);
  ASSERT_TRUE(replica().Install(log_.ToInstall()).ok());
  world_.PowerCut();
  const RegionState state = world_.State();
  const ScanResult scan = ScanLog(ScanInputOf(world_.region(), state));
  EXPECT_THAT(scan.damaged_pads, IsEmpty());
  EXPECT_EQ(scan.end, log_.end());
}

}  // namespace
}  // namespace alpheus::testing
