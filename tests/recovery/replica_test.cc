// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "log/core/ring_log.h"
#include "log/core/scan.h"
#include "log/format/atomic_cell.h"
#include "tests/recovery/replica_world.h"
#include "tests/testing/log_harness.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LogImage;
using testing::ReplicaWorld;
using ::testing::SizeIs;

using Code = absl::StatusCode;

class ReplicaTest : public ::testing::Test {
 protected:
  ReplicaTest() { EXPECT_TRUE(world_.Open().ok()); }

  Replica<ModelPersistence>& replica() { return world_.replica(); }
  // Of epoch 5: a, b.
  void MakeLog() {
    log_.OpenEpoch(Epoch(5));
    log_.Append("a");
    log_.Append("b");
  }
  // MakeLog, installed as epoch 6.
  void InstallLog() {
    MakeLog();
    log_.OpenEpoch(Epoch(6));
    const absl::Status installed = world_.InstallAll(log_);
    ASSERT_TRUE(installed.ok()) << installed;
  }
  // Both copies of the superline, changed by nobody who may.
  void CraftSuperline(const std::function<void(Superline&)>& change,
                      uint64_t seq = 1000) {
    Superline crafted = world_.State().superline;
    change(crafted);
    ASSERT_TRUE(WriteCell(world_.pmem(), SuperlinePlace(world_.region()), 0,
                          seq, EncodeSuperline(crafted)));
  }
  // `call` fails so, and changes no byte.
  void ExpectRefused(const std::function<absl::Status()>& call, Code code,
                     const std::string& says) {
    const std::vector<std::byte> before = world_.Snapshot();
    const absl::Status refused = call();
    EXPECT_EQ(refused.code(), code) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(says));
    EXPECT_EQ(world_.Snapshot(), before);
  }
  void ExpectInstallRefused(const Installation& installation, Code code,
                            const std::string& says) {
    ExpectRefused([&] { return replica().Install(installation); }, code, says);
  }
  // Flips a bit of the record at `lsn`, `byte` bytes behind its start.
  void Damage(Lsn lsn, size_t byte) {
    replica().ring().At(log_.PositionOf(lsn).offset)[byte] ^= std::byte{1};
  }

  ReplicaWorld world_;
  LogImage log_{1024};
};

TEST_F(ReplicaTest, OpenPersistsNothingNewAndChangesNoByte) {
  InstallLog();
  const std::vector<std::byte> before = world_.Snapshot();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(world_.Snapshot(), before);
  EXPECT_EQ(replica().name(), "model");
  EXPECT_FALSE(replica().is_blank());
}

TEST_F(ReplicaTest, ReplicaOfAnotherClusterOrLogIsRefused) {
  EXPECT_TRUE(world_
                  .Open({.name = "model",
                         .expected_cluster_id = testing::kWorldCluster,
                         .expected_log_id = testing::kWorldLog})
                  .ok());
  for (const ReplicaOptions& options :
       {ReplicaOptions{.name = "model", .expected_cluster_id = Uuid{9, 9}},
        ReplicaOptions{.name = "model", .expected_log_id = Uuid{9, 9}}}) {
    ExpectRefused([&] { return world_.Open(options); },
                  Code::kFailedPrecondition, Uuid{9, 9}.ToString());
  }
}

TEST_F(ReplicaTest, RegionThatCannotBeReadIsNotOpened) {
  for (const uint64_t copy : {0, 1}) {
    world_.region()[copy * kPageBytes + 30] ^= std::byte{1};
  }
  ExpectRefused([&] { return world_.Open(); }, Code::kDataLoss, "superline");
}

// M1 (promise.h), R1.
TEST_F(ReplicaTest, PromiseOutlivesAPowerCut) {
  const auto verdict =
      replica().AcceptPromise(ReplicaWorld::PromiseFor(Epoch(5)));
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(*verdict, PromiseVerdict::kNew);
  world_.PowerCut();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(PromiseOf(replica().superline()),
            ReplicaWorld::PromiseFor(Epoch(5)));
  EXPECT_EQ(replica().superline().log_epoch, Epoch(0));
}

// A4.2: strictly above, or equal and from the same process.
TEST_F(ReplicaTest, PromiseIsRepeatedToTheSameProcessOnly) {
  ASSERT_TRUE(world_.AcceptPromise(Epoch(5)).ok());
  const std::vector<std::byte> before = world_.Snapshot();
  const Promise standing = ReplicaWorld::PromiseFor(Epoch(5));
  const auto again = replica().AcceptPromise(standing);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, PromiseVerdict::kAgain);
  EXPECT_EQ(world_.Snapshot(), before);
  for (const Promise& request :
       {ReplicaWorld::PromiseFor(Epoch(4)), Promise{Epoch(5), {NodeId(2), 78}},
        Promise{Epoch(5), {NodeId(3), 77}}}) {
    ExpectRefused([&] { return replica().AcceptPromise(request).status(); },
                  Code::kFailedPrecondition, "promised is epoch 5");
    EXPECT_EQ(StandingPromise(replica().AcceptPromise(request).status()),
              standing);
  }
}

TEST_F(ReplicaTest, PromiseThatNoEpochCouldFollowIsRefused) {
  for (const uint64_t epoch : {uint64_t{0}, kNumberMax / 2 + 1, ~uint64_t{0}}) {
    ExpectRefused([&] { return world_.AcceptPromise(Epoch(epoch)); },
                  Code::kInvalidArgument, "promise refused");
  }
  EXPECT_TRUE(world_.AcceptPromise(Epoch(kNumberMax / 2)).ok());
  EXPECT_TRUE(world_.Open().ok());
}

// S2: as an update that was cut off, or damage, leaves it.
TEST_F(ReplicaTest, PromiseOfOneCopyIsMendedFirst) {
  const Superline older = world_.State().superline;
  ASSERT_TRUE(world_.AcceptPromise(Epoch(5)).ok());
  const CellPlace place = SuperlinePlace(world_.region());
  const std::vector<std::byte> image = world_.Snapshot();
  for (const int other : {0, 1}) {
    world_.Reset(image);
    ASSERT_TRUE(
        WriteCellCopy(world_.pmem(), place, other, 1, EncodeSuperline(older)));
    ASSERT_TRUE(world_.Open().ok());
    ASSERT_TRUE(world_.AcceptPromise(Epoch(5)).ok());
    EXPECT_TRUE(world_.State().superline_cell.at_rest());
    place.copies[1 - other][30] ^= std::byte{1};
    ASSERT_TRUE(world_.Open().ok());
    EXPECT_EQ(replica().superline().promised_epoch, Epoch(5));
  }
}

// A2: the other copy may be torn, or of an epoch that was never installed.
TEST_F(ReplicaTest, TableOfOneCopyIsMended) {
  InstallLog();
  const CellPlace place =
      EpochTablePlace(world_.region(), world_.State().superline);
  const std::vector<std::byte> image = world_.Snapshot();
  for (const int other : {0, 1}) {
    world_.Reset(image);
    place.copies[other][30] ^= std::byte{1};
    ASSERT_TRUE(world_.Open().ok());
    ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
    EXPECT_TRUE(world_.State().table_cell.at_rest());
    place.copies[1 - other][30] ^= std::byte{1};
    ASSERT_TRUE(world_.Open().ok());
    EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b"));
  }
}

// A2: a word that vouches for an older superline must not make damage of what
// a cut leaves of the next one.
TEST_F(ReplicaTest, CleanCloseIsTakenBackBeforeTheSuperlineChanges) {
  InstallLog();
  const RegionState state = world_.State();
  uint64_t* const word = CleanCloseAddress(world_.region());
  *word = CleanCloseWord(
      state.superline.log_id,
      state.superline_cell.copies[*state.superline_cell.newest].seq);
  world_.Reset(world_.Snapshot());
  ASSERT_TRUE(world_.State().closed_cleanly);
  ASSERT_TRUE(world_.Open().ok());
  world_.pmem().SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kCopy) return;
    EXPECT_EQ(*word, 0u);
    EXPECT_TRUE(world_.pmem().IsPersisted(word, sizeof(*word)));
  });
  EXPECT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  world_.pmem().SetHook({});
}

// H7, R2.
TEST_F(ReplicaTest, AnsweredRecordsOutliveAPowerCut) {
  InstallLog();
  log_.Append("visible");
  world_.CopyRecords(log_, Lsn(3), Lsn(4));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  const auto answer = replica().MakeAnswer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->held, SizeIs(3));
  world_.PowerCut();
  EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b", "visible"));
}

TEST_F(ReplicaTest, AnswerNamesThePromiseBeforeThisBallot) {
  ASSERT_TRUE(world_.AcceptPromise(Epoch(5)).ok());
  EXPECT_EQ(replica().MakeAnswer()->promised_before, Epoch(0));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  EXPECT_EQ(replica().MakeAnswer()->promised_before, Epoch(5));
}

TEST_F(ReplicaTest, RegionThatWentBadIsNotAnsweredFor) {
  InstallLog();
  for (const int line : {0, 1}) {
    WatermarkLine(world_.region(), line)[3] ^= std::byte{1};
  }
  ExpectRefused([&] { return replica().MakeAnswer().status(); },
                Code::kDataLoss, "watermark");
}

// H25: what was read record by record is suspect no more.
TEST_F(ReplicaTest, SuspectReplicaKnowsNothingUntilItIsInstalled) {
  InstallLog();
  ASSERT_TRUE(world_.Open({.name = "model", .suspect = true}).ok());
  EXPECT_FALSE(replica().MakeAnswer()->knows());
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  EXPECT_TRUE(replica().MakeAnswer()->knows());
}

// H12, R4: whoever opens next.
TEST_F(ReplicaTest, RepairThatIsCutOffIsRemembered) {
  InstallLog();
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  EXPECT_TRUE(replica().superline().repairing);
  world_.PowerCut();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_FALSE(replica().MakeAnswer()->knows());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(8)).ok());
  EXPECT_FALSE(replica().MakeAnswer()->knows());
}

TEST_F(ReplicaTest, RepairIsBegunOnceAndForThePromisedEpochOnly) {
  InstallLog();
  ExpectRefused([&] { return replica().BeginRepair(Epoch(6)); },
                Code::kFailedPrecondition, "installed already");
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  for (const Epoch epoch : {Epoch(6), Epoch(8)}) {
    ExpectRefused([&] { return replica().BeginRepair(epoch); },
                  Code::kFailedPrecondition, "promised is epoch 7");
  }
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  const std::vector<std::byte> before = world_.Snapshot();
  EXPECT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  EXPECT_EQ(world_.Snapshot(), before);
}

TEST_F(ReplicaTest, InstallEndsTheRepair) {
  InstallLog();
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  ASSERT_TRUE(replica().Install(log_.ToInstall()).ok());
  EXPECT_FALSE(replica().superline().repairing);
  EXPECT_TRUE(replica().MakeAnswer()->knows());
}

// H3, R3.
TEST_F(ReplicaTest, InstalledRecordsOutliveAPowerCut) {
  InstallLog();
  EXPECT_EQ(replica().superline().log_epoch, Epoch(6));
  EXPECT_EQ(replica().table().entries(), log_.table().entries());
  world_.PowerCut();
  const RegionState state = world_.State();
  EXPECT_EQ(state.superline.log_epoch, Epoch(6));
  EXPECT_TRUE(state.superline_cell.at_rest());
  EXPECT_TRUE(state.table_cell.at_rest());
  for (const auto& line : state.watermarks.lines) {
    EXPECT_EQ(line, (Watermark{Epoch(6), Lsn(2)}));
  }
  EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b"));
}

TEST_F(ReplicaTest, EmptyLogIsInstalled) {
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  EXPECT_EQ(replica().superline().log_epoch, Epoch(6));
  EXPECT_THAT(world_.Payloads(), IsEmpty());
}

// H3: whether header, payload or all of a record is missing.
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

// H8: at the end, and where an epoch of the middle starts.
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
  installation.table = EpochTable::Empty(testing::kWorldLog)
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

TEST_F(ReplicaTest, EpochIsInstalledOnce) {
  InstallLog();
  ExpectInstallRefused(log_.ToInstall(), Code::kFailedPrecondition,
                       "over epoch 6");
}

// H16, G3 (repair_plan.h).
TEST_F(ReplicaTest, BlankReplicaIsNotInstalled) {
  CraftSuperline([](Superline& superline) { superline.incarnation ^= 1; });
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_TRUE(replica().is_blank());
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  EXPECT_FALSE(replica().MakeAnswer()->knows());
  world_.CopyAll(log_);
  ExpectInstallRefused(log_.ToInstall(), Code::kFailedPrecondition, "blank");
}

TEST_F(ReplicaTest, ImpossibleInstallationsAreRefused) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  const std::vector<std::function<void(Installation&)>> crafts = {
      [](Installation& i) { i.table = EpochTable::Empty(testing::kWorldLog); },
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
    installation.table = EpochTable::Empty(testing::kWorldLog)
                             .With(entry, Lsn(1))
                             .With(last, Lsn(1));
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
  EXPECT_THAT(std::string(refused.message()), HasSubstr("behind LSN 1"));
  EXPECT_EQ(world.State().superline.log_epoch, Epoch(0));
}

// The head may have been told to this replica alone.
TEST_F(ReplicaTest, LogThatStartsBehindOwnHeadIsInstalled) {
  InstallLog();
  ASSERT_TRUE(replica().PublishHead(Epoch(6), log_.PositionOf(Lsn(2))).ok());
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  EXPECT_THAT(world_.Payloads(), ElementsAre("a", "b"));
}

// H13, Arcadia 4.2: of A, B and C with R = W = 2, A alone has X at LSN 1; B and
// C go on without it and make Y durable there; then A and B recover. This is A.
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
  EXPECT_THAT(replica().MakeAnswer()->held, SizeIs(1));

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

// H13: nothing is copied; the table alone ends the stale tail.
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

// A1: a damaged PAD beside a good record.
TEST_F(ReplicaTest, DamagedPadIsWrittenAnew) {
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

// A2, R5: the media go bad while the process runs.
TEST_F(ReplicaTest, CopyThatWentBadSinceIsOverwrittenFirst) {
  InstallLog();
  const CellPlace place = SuperlinePlace(world_.region());
  for (const int bad : {0, 1}) {
    place.copies[bad][30] ^= std::byte{1};
    world_.pmem().SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive != ModelPersistence::Primitive::kFence) return;
      std::vector<std::byte> cut = world_.Snapshot();
      // The copy that is being written never arrives whole.
      for (const auto& word : world_.pmem().DirtyWords()) {
        cut[word.offset] ^= std::byte{1};
      }
      EXPECT_TRUE(ReadRegionState(cut, "model").ok());
    });
    EXPECT_TRUE(world_.AcceptPromise(Epoch(7 + bad)).ok());
    world_.pmem().SetHook({});
    EXPECT_TRUE(world_.State().superline_cell.at_rest());
  }
}

TEST_F(ReplicaTest, StartOfTheLogIsWhatWasInstalled) {
  log_.OpenEpoch(Epoch(5));
  for (int i = 0; i < 10; ++i) log_.Append("x");
  log_.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world_.InstallAll(log_).ok());
  ASSERT_TRUE(replica().PublishHead(Epoch(6), log_.PositionOf(Lsn(3))).ok());
  const RingLogStart start = replica().StartOfLog();
  const RegionState state = world_.State();
  EXPECT_EQ(start.superline, state.superline);
  EXPECT_EQ(start.superline_seq, state.superline_cell.copies[0].seq);
  EXPECT_EQ(start.table.entries(), log_.table().entries());
  EXPECT_EQ(start.end, log_.end());
  EXPECT_EQ(start.index->Nearest(Lsn(11), log_.head()), log_.head());
}

// The positions of the index, where it has some.
TEST(ReplicaIndexTest, IndexKnowsEveryInstalledStride) {
  ReplicaWorld world({.ring_capacity = 16384});
  ASSERT_TRUE(world.Open().ok());
  LogImage log(16384);
  log.OpenEpoch(Epoch(5));
  for (int i = 0; i < 127; ++i) log.Append("x");
  log.OpenEpoch(Epoch(6));
  ASSERT_TRUE(world.InstallAll(log).ok());
  const RingLogStart start = world.replica().StartOfLog();
  EXPECT_EQ(start.index->Nearest(Lsn(70), log.head()), log.PositionOf(Lsn(64)));
  EXPECT_EQ(start.index->Nearest(Lsn(128), log.head()), log.end());
}

// S4: it goes on, and the replica keeps its hands off.
TEST_F(ReplicaTest, StartedLogIsTheOnlyWriter) {
  InstallLog();
  testing::SteppingClock clock;
  testing::NoWaiter waiter;
  {
    RingLog<ModelPersistence> started(world_.pmem(), world_.region(),
                                      replica().StartOfLog(), {"model", 64},
                                      clock, waiter);
    const std::span<const std::byte> part = AsBytes(std::string_view("c"));
    ASSERT_TRUE(started.Append({&part, 1}, 1, Deadline()).ok());
    ASSERT_TRUE(started.CleanupThrough(Lsn(1)).ok());
    ASSERT_TRUE(started.Close().ok());
    ExpectRefused([&] { return world_.AcceptPromise(Epoch(9)); },
                  Code::kFailedPrecondition, "open the replica again");
    ExpectRefused([&] { return replica().MakeAnswer().status(); },
                  Code::kFailedPrecondition, "open the replica again");
    ExpectRefused([&] { return replica().BeginRepair(Epoch(6)); },
                  Code::kFailedPrecondition, "open the replica again");
    ExpectInstallRefused(log_.ToInstall(), Code::kFailedPrecondition,
                         "open the replica again");
    ExpectRefused([&] { return replica().PublishHead(Epoch(6), log_.end()); },
                  Code::kFailedPrecondition, "open the replica again");
  }
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  EXPECT_EQ(replica().superline().head_lsn, Lsn(2));
  EXPECT_THAT(world_.Payloads(), ElementsAre("b", "c"));
}

using ReplicaDeathTest = ReplicaTest;

TEST_F(ReplicaDeathTest, OnlyAnInstalledLogStarts) {
  EXPECT_DEATH((void)replica().StartOfLog(), "installed");
  InstallLog();
  ASSERT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  EXPECT_DEATH((void)replica().StartOfLog(), "installed");
}

// A6, P3 (superline.h).
TEST_F(ReplicaTest, HeadNeverGoesBack) {
  InstallLog();
  ASSERT_TRUE(replica().PublishHead(Epoch(6), log_.PositionOf(Lsn(2))).ok());
  const std::vector<std::byte> before = world_.Snapshot();
  EXPECT_TRUE(replica().PublishHead(Epoch(6), log_.PositionOf(Lsn(1))).ok());
  EXPECT_TRUE(replica().PublishHead(Epoch(6), log_.PositionOf(Lsn(2))).ok());
  EXPECT_EQ(world_.Snapshot(), before);
  world_.PowerCut();
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(replica().superline().head_lsn, Lsn(2));
  EXPECT_THAT(world_.Payloads(), ElementsAre("b"));
}

// It may pass records that this replica has not got yet.
TEST_F(ReplicaTest, HeadGoesBehindTheOwnEnd) {
  InstallLog();
  log_.Append("c");
  EXPECT_TRUE(replica().PublishHead(Epoch(6), log_.end()).ok());
  EXPECT_EQ(world_.State().head(), log_.end());
}

TEST_F(ReplicaTest, HeadOfAnotherEpochIsRefused) {
  InstallLog();
  const LogPosition head = log_.PositionOf(Lsn(2));
  ExpectRefused([&] { return replica().PublishHead(Epoch(5), head); },
                Code::kFailedPrecondition, "promised is epoch 6");
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  ExpectRefused([&] { return replica().PublishHead(Epoch(6), head); },
                Code::kFailedPrecondition, "promised is epoch 7");
  ExpectRefused([&] { return replica().PublishHead(Epoch(7), head); },
                Code::kFailedPrecondition, "installed is epoch 6");
}

TEST_F(ReplicaTest, ImpossibleHeadIsRefused) {
  InstallLog();
  for (const LogPosition& head :
       {LogPosition{Lsn(1), RingOffset(64), 0}, LogPosition{Lsn(1), {}, 1},
        LogPosition{Lsn(3), RingOffset(64), 0},
        LogPosition{Lsn(2), RingOffset(65), 0},
        LogPosition{Lsn(kLsnMax), RingOffset(kOffsetMax), 0}}) {
    ExpectRefused([&] { return replica().PublishHead(Epoch(6), head); },
                  Code::kInvalidArgument, "can't be");
  }
}

// Such a region can be read, but one that goes on from there could not.
TEST_F(ReplicaTest, NumbersWithoutRoomToGoOnAreRefused) {
  MakeLog();
  log_.OpenEpoch(Epoch(6));
  const std::vector<std::byte> image = world_.Snapshot();
  CraftSuperline([](Superline&) {}, kNumberMax);
  ASSERT_TRUE(world_.Open().ok());
  ExpectRefused([&] { return world_.AcceptPromise(Epoch(6)); }, Code::kDataLoss,
                "beyond what any log reaches");
  world_.Reset(image);
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(6)).ok());
  world_.CopyAll(log_);
  CraftSuperline([](Superline&) {}, kNumberMax);
  ExpectInstallRefused(log_.ToInstall(), Code::kDataLoss,
                       "beyond what any log reaches");
}

// A3.5: the watermark of an epoch stands until the next one is installed.
TEST_F(ReplicaTest, WatermarkStaysUntilTheNextEpochIsInstalled) {
  InstallLog();
  for (const int i : {3, 4, 5}) log_.Append(std::to_string(i));
  world_.CopyRecords(log_, Lsn(3), Lsn(6));
  for (const int line : {0, 1}) {
    const WatermarkFormat watermark = EncodeWatermark(
        testing::kWorldLog, line, {Epoch(6), Lsn(uint64_t{4} + line)});
    world_.pmem().CopyLinesNt(WatermarkLine(world_.region(), line), &watermark,
                              1);
  }
  log_.OpenEpoch(Epoch(7));
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_.AcceptPromise(Epoch(7)).ok());
  EXPECT_EQ(replica().MakeAnswer()->proven_lsn, Lsn(5));
  ASSERT_TRUE(replica().BeginRepair(Epoch(7)).ok());
  EXPECT_EQ(world_.State().ProvenLsn(), Lsn(5));
  ASSERT_TRUE(replica().Install(log_.ToInstall()).ok());
  for (const auto& line : world_.State().watermarks.lines) {
    EXPECT_EQ(line, (Watermark{Epoch(7), Lsn(5)}));
  }
}

// R6: at each fence of each call, and nothing changes any more.
TEST_F(ReplicaTest, FailureOfTheMediumSticks) {
  log_.OpenEpoch(Epoch(5));
  log_.Append(std::string(400, 'a'));
  log_.Append(std::string(400, 'b'));
  log_.CleanThrough(Lsn(1));
  log_.Append(std::string(200, 'c'));
  log_.OpenEpoch(Epoch(6));
  const std::vector<std::byte> formatted = world_.Snapshot();
  const auto until_installed = [&](uint64_t fails_at) {
    world_.Reset(formatted);
    *CleanCloseAddress(world_.region()) = 1;
    EpochTablePlace(world_.region(), world_.State().superline).copies[0][30] ^=
        std::byte{1};
    world_.pmem().FailFence(fails_at);
    absl::Status status = world_.Open();
    if (!status.ok()) return status;
    status = world_.AcceptPromise(Epoch(6));
    if (status.ok()) status = replica().MakeAnswer().status();
    if (status.ok()) status = replica().BeginRepair(Epoch(6));
    if (status.ok()) {
      world_.CopyAll(log_);
      Damage(Lsn(3), 20);  // a PAD
      status = replica().Install(log_.ToInstall());
    }
    if (status.ok()) {
      status = replica().PublishHead(Epoch(6), log_.PositionOf(Lsn(3)));
    }
    return status;
  };
  uint64_t fence = 1;
  for (;; ++fence) {
    SCOPED_TRACE(fence);
    const absl::Status status = until_installed(fence);
    if (status.ok()) break;
    EXPECT_EQ(status.code(), Code::kUnavailable) << status;
    if (fence == 1) continue;  // was not opened
    for (const auto& call : std::vector<std::function<absl::Status()>>{
             [&] { return world_.AcceptPromise(Epoch(9)); },
             [&] { return replica().MakeAnswer().status(); },
             [&] { return replica().BeginRepair(Epoch(6)); },
             [&] { return replica().Install(log_.ToInstall()); },
             [&] { return replica().PublishHead(Epoch(6), log_.end()); }}) {
      ExpectRefused(call, Code::kFailedPrecondition, "Open the replica again");
    }
    world_.PowerCut();
    EXPECT_TRUE(world_.Open().ok());
    EXPECT_TRUE(world_.AcceptPromise(Epoch(9)).ok());
  }
  EXPECT_EQ(fence, 18u) << "these calls have seventeen fences";
}

}  // namespace
}  // namespace alpheus
