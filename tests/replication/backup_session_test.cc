// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "replication/ack.h"
#include "tests/replication/data_path.h"

namespace alpheus::testing {
namespace {

TEST(AckTest, ComesBackAsItWas) {
  std::byte bytes[kAckBytes];
  const Ack ack{Epoch(3), kSession, Lsn(17), 4};
  EncodeAck(ack, bytes);
  EXPECT_EQ(DecodeAck(bytes), ack);
  EXPECT_FALSE(DecodeAck(std::span(bytes).first(kAckBytes - 1)).has_value());
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(DecodeAck(bytes).has_value());
}

TEST(BackupSessionTest, AckedRecordsOutliveAPowerCut) {
  DataPath path({});
  for (int i = 0; i < 3; ++i) path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(3));
  EXPECT_EQ(path.backup(0).session->persisted_lsn(), Lsn(3));
  EXPECT_EQ(path.backup(0).RecordsAfterAPowerCut(), 3);
}

TEST(BackupSessionTest, OneFenceForAllThatWasAnnounced) {
  DataPath path({});
  for (int i = 0; i < 3; ++i) {
    path.Append(100);
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  }
  EXPECT_EQ(path.session(0).batches(), 3);
  const uint64_t before = path.backup(0).pmem.fence_count();
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.backup(0).pmem.fence_count(), before + 1);
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(3));
  // And none for nothing.
  ASSERT_TRUE(path.backup(0).session->Step().ok());
  EXPECT_EQ(path.backup(0).pmem.fence_count(), before + 1);
}

// L7: one batch, two pieces, one immediate; and a PAD in between.
TEST(BackupSessionTest, BatchRoundTheEndOutlivesAPowerCut) {
  DataPath path({.ring_capacity = 1024});
  const auto replicate = [&path] {
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
    ASSERT_TRUE(path.Round().ok());
  };
  for (int i = 0; i < 3; ++i) path.Append(200);
  replicate();
  // Room for the records that go round the end.
  ASSERT_TRUE(path.log().log().CleanupThrough(Lsn(2)).ok());
  ASSERT_TRUE(path.log().log().CleanupAll().ok());
  for (int i = 0; i < 2; ++i) path.Append(200);
  replicate();
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(5));
  DataPath::Backup& backup = path.backup(0);
  const LogPosition& next = backup.session->next();
  EXPECT_GT(next.offset.value, 1024u);
  const Ring ring = RingOf(backup.pmem.region(), backup.state.superline);
  EXPECT_TRUE(backup.pmem.IsPersisted(ring.data(), ring.Place(next.offset)));
  EXPECT_TRUE(backup.pmem.IsPersisted(ring.data(), ring.capacity()));
}

TEST(BackupSessionTest, WatermarkFollowsTheAck) {
  DataPath path({});
  DataPath::Backup& backup = path.backup(0);
  const auto watermark = [](std::vector<std::byte> image) {
    return ReadRegionState(image, "backup")->ProvenLsn();
  };
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  // Stored, not fenced: it may or may not be there.
  EXPECT_EQ(watermark(backup.pmem.CutKeepingNone()), Lsn(0));
  EXPECT_EQ(watermark(backup.pmem.CutKeepingAll()), Lsn(1));
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(watermark(backup.pmem.CutKeepingNone()), Lsn(1));
  ASSERT_TRUE(backup.session->PersistWatermark().ok());
  EXPECT_EQ(watermark(backup.pmem.CutKeepingNone()), Lsn(2));
}

TEST(BackupSessionTest, FailedFenceAcknowledgesNothing) {
  DataPath path({});
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  path.fabric().Run();
  DataPath::Backup& backup = path.backup(0);
  ASSERT_TRUE(backup.Take().ok());
  backup.pmem.FailFence(1);
  EXPECT_TRUE(absl::IsUnavailable(backup.session->Step()));
  EXPECT_EQ(backup.fabric.posted(), 0u);
  EXPECT_EQ(backup.session->persisted_lsn(), Lsn(0));
  // The watermark's fence, too.
  backup.pmem.FailFence(1);
  EXPECT_FALSE(backup.session->PersistWatermark().ok());
}

TEST(BackupSessionTest, AnnouncedBytesThatAreNoRecordsAreRefused) {
  DataPath path({});
  path.Append(100);
  const RingEnd end = path.End();
  ASSERT_TRUE(path.session(0).Advance(end).ok());
  path.fabric().Run();
  DataPath::Backup& backup = path.backup(0);
  const Ring ring = RingOf(backup.pmem.region(), backup.state.superline);
  ring.data()[8] ^= std::byte{1};  // of its header
  ASSERT_TRUE(backup.Take().ok());
  const absl::Status stepped = backup.session->Step();
  EXPECT_TRUE(absl::IsDataLoss(stepped)) << stepped;
  EXPECT_EQ(backup.fabric.posted(), 0u);
}

TEST(BackupSessionTest, ImpossibleAnnouncementsAreRefused) {
  DataPath path({});
  BackupSession<ModelPersistence>& session = *path.backup(0).session;
  Completion announced{
      path.backup(0).connection, WorkId(0), Operation::kReceiveImmediate,
      CompletionStatus::kOk,     64,        4096 / 64};
  EXPECT_TRUE(absl::IsDataLoss(session.Take(announced)));
  announced.immediate = 1;
  announced.bytes = 0;
  EXPECT_TRUE(absl::IsDataLoss(session.Take(announced)));
  announced.operation = Operation::kRead;
  EXPECT_TRUE(absl::IsDataLoss(session.Take(announced)));
  announced.status = CompletionStatus::kFlushed;
  EXPECT_TRUE(absl::IsUnavailable(session.Take(announced)));
}

// All ack buffers are under way: the next ack says it for those that wait.
TEST(BackupSessionTest, AcksAreCumulativeWhenTheyCannotBeSent) {
  DataPath path({.credits = 32});
  DataPath::Backup& backup = path.backup(0);
  for (int i = 0; i < 20; ++i) {
    path.Append(32);
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
    path.fabric().Run();
    ASSERT_TRUE(path.Take().ok());
    ASSERT_TRUE(backup.Take().ok());
    ASSERT_TRUE(backup.session->Step().ok());
  }
  EXPECT_EQ(backup.fabric.posted(), 16u);
  EXPECT_EQ(backup.session->persisted_lsn(), Lsn(20));
  ASSERT_TRUE(path.Round().ok());
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(20));
}

}  // namespace
}  // namespace alpheus::testing
