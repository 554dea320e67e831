// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <functional>
#include <span>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/replication/session/data_path.h"

namespace alpheus::testing {

using replication::kAckBytes;

namespace {

using ::testing::HasSubstr;
using Pace = replication::PrimarySession::Pace;

TEST(PrimarySessionTest, NeverMoreBatchesThanCredits) {
  DataPath path({.credits = 2});
  for (int i = 0; i < 5; ++i) {
    path.Append(32);
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  }
  EXPECT_EQ(path.session(0).batches(), 2u);
  EXPECT_EQ(path.session(0).posted().lsn, Lsn(2));
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(2));
  // Records that waited go as one batch.
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.session(0).batches(), 3u);
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(5));
  EXPECT_EQ(path.session(0).lag_bytes(), 0u);
}

TEST(PrimarySessionTest, SameEndPostsNothing) {
  DataPath path({});
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.fabric().posted(), 0u);
}

TEST(PrimarySessionTest, LargeBatchIsPostedInPieces) {
  DataPath path({.message_bytes_max = 128});
  path.Append(500);  // 576 bytes in the ring
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.fabric().posted(), 5u);
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
  EXPECT_EQ(path.backup(0).RecordsAfterAPowerCut(), 1u);
}

// However large the fabric's messages may be: completions show that it arrives.
TEST(PrimarySessionTest, LargeBatchIsPostedInPiecesOfAMebibyte) {
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  DataPath path(
      {.message_bytes_max = 64 * kMebibyte, .ring_capacity = 8 * kMebibyte});
  path.Append(3 * kMebibyte);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.fabric().posted(), 4u);
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
}

TEST(PrimarySessionTest, BatchWaitsForTheSendQueue) {
  DataPath path({.credits = 64, .message_bytes_max = 64});
  path.Append(1400);  // 23 lines, as many pieces
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  path.Append(1400);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.session(0).batches(), 2u);
  path.Append(1000);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.session(0).batches(), 2u);
  ASSERT_TRUE(path.Round().ok());
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(3));
}

// The message of an ack that the backup's fabric sends to the primary.
absl::Status SendAck(
    DataPath& path, const replication::Ack& ack, size_t bytes = kAckBytes,
    const std::function<void(std::span<std::byte>)>& change = {}) {
  DataPath::Backup& backup = path.backup(0);
  const auto slots =
      *replication::MessageSlots::Make(backup.fabric, 1, kAckBytes);
  const fabric::LocalBytes message = slots->At(0);
  replication::EncodeAck(ack, message.bytes.first<kAckBytes>());
  if (change) change(message.bytes);
  EXPECT_TRUE(backup.fabric
                  .PostSend(backup.connection, fabric::WorkId(),
                            {message.key, message.bytes.first(bytes)})
                  .ok());
  backup.fabric.Run();
  return path.Drain();
}

TEST(PrimarySessionTest, AckOfAnotherSessionCountsForNothing) {
  DataPath path({});
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  const Epoch epoch = path.terms().epoch;
  EXPECT_TRUE(
      SendAck(path, {epoch, replication::SessionId(78), Lsn(1), 1}).ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(0));
  EXPECT_TRUE(SendAck(path, {epoch + 1, kSession, Lsn(1), 1}).ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(0));
  EXPECT_TRUE(SendAck(path, {epoch, kSession, Lsn(1), 1}).ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
  // Again is no harm.
  EXPECT_TRUE(SendAck(path, {epoch, kSession, Lsn(1), 1}).ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
}

// A batch in flight was posted before, so that its ack says nothing of now.
TEST(PrimarySessionTest, AsksAlsoWhileSomethingIsInFlight) {
  DataPath path({.credits = 3});
  path.Append(100);
  replication::PrimarySession& session = path.session(0);
  ASSERT_TRUE(session.Advance(path.End()).ok());
  ASSERT_TRUE(session.Beat(Lsn(0)).ok());
  EXPECT_EQ(session.batches(), 1u);
  ASSERT_TRUE(session.Ask(Lsn(0)).ok());
  EXPECT_EQ(session.batches(), 2u);
  ASSERT_TRUE(SendAck(path, {path.terms().epoch, kSession, Lsn(1), 1}).ok());
  EXPECT_EQ(session.batches_acked(), 1u);
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(session.batches_acked(), 2u);
  EXPECT_TRUE(session.is_idle());
}

TEST(PrimarySessionTest, AsksNothingWithoutACredit) {
  DataPath path({.credits = 1});
  path.Append(100);
  replication::PrimarySession& session = path.session(0);
  ASSERT_TRUE(session.Advance(path.End()).ok());
  ASSERT_TRUE(session.Ask(Lsn(0)).ok());
  EXPECT_EQ(session.batches(), 1u);
  ASSERT_TRUE(path.Round().ok());
  ASSERT_TRUE(session.Ask(Lsn(0)).ok());
  EXPECT_EQ(session.batches(), 2u);
}

TEST(PrimarySessionTest, AckCountsForNoLaterBatch) {
  DataPath path({.credits = 2});
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(SendAck(path, {path.terms().epoch, kSession, Lsn(1), 1}).ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
  ASSERT_TRUE(SendAck(path, {path.terms().epoch, kSession, Lsn(2), 2}).ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(2));
}

// P-H21, P-A6: a turned bit may make the number of a head of that of the batch
// before it. The session ends, and nothing counts.
TEST(PrimarySessionTest, AckThatWasChangedOnItsWayCountsForNothing) {
  for (size_t bit = 0; bit < 8 * kAckBytes; ++bit) {
    DataPath path({});
    path.Append(100);
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
    const absl::Status taken =
        SendAck(path, {path.terms().epoch, kSession, Lsn(1), 1}, kAckBytes,
                [bit](std::span<std::byte> bytes) {
                  bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
                });
    EXPECT_TRUE(absl::IsUnavailable(taken)) << bit << ": " << taken;
    EXPECT_THAT(taken.message(), HasSubstr("was damaged on the way"));
    EXPECT_EQ(path.session(0).acked_lsn(), Lsn(0));
  }
}

TEST(PrimarySessionTest, ImpossibleAcksAreRefused) {
  const auto refused = [](Lsn lsn, uint64_t batches, size_t bytes) {
    DataPath path({});
    path.Append(100);
    EXPECT_TRUE(path.session(0).Advance(path.End()).ok());
    const absl::Status sent =
        SendAck(path, {path.terms().epoch, kSession, lsn, batches}, bytes);
    EXPECT_EQ(path.session(0).acked_lsn(), Lsn(0));
    return sent.code();
  };
  constexpr auto kNoAck = absl::StatusCode::kDataLoss;
  EXPECT_EQ(refused(Lsn(2), 1, kAckBytes), kNoAck);  // never posted
  EXPECT_EQ(refused(Lsn(1), 2, kAckBytes), kNoAck);  // never announced
  EXPECT_EQ(refused(Lsn(1), 1, kAckBytes - 8), absl::StatusCode::kUnavailable);
}

// RSE5: and records that go round the end of the ring stay whole, too.
TEST(PrimarySessionTest, BackupThatIsBehindGetsBatchesOfWholeRecords) {
  DataPath path({.ring_capacity = 1024, .batch_bytes_max = 400});
  for (int lap = 0; lap < 5; ++lap) {
    for (int i = 0; i < 4; ++i) path.Append(100);  // 192 bytes each
    const uint64_t before = path.session(0).batches();
    const RingEnd end = path.End();
    while (path.session(0).acked_lsn() != end.lsn) {
      ASSERT_TRUE(path.session(0).Advance(end).ok());
      ASSERT_FALSE(path.session(0).is_idle());
      const absl::Status round = path.Round();
      ASSERT_TRUE(round.ok()) << round;
    }
    EXPECT_GE(path.session(0).batches() - before, 2u);
    ASSERT_TRUE(path.log().log().CleanupThrough(end.lsn).ok());
    const LogPosition head = path.log().log().head();
    ASSERT_TRUE(path.session(0).AdvanceBounds(path.BoundsWith(head)).ok());
    ASSERT_TRUE(path.Round().ok());
  }
}

TEST(PrimarySessionTest, RecordLargerThanABatchIsOne) {
  DataPath path({.batch_bytes_max = 64});
  path.Append(500);
  path.Append(500);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.session(0).posted().lsn, Lsn(2));
  EXPECT_EQ(path.session(0).batches(), 2u);
}

// Two, so that it is never idle; not all, so that it is told of what is new.
TEST(PrimarySessionTest, BackupThatIsBehindHasTwoBatchesInFlight) {
  DataPath path({.batch_bytes_max = 64});
  for (int i = 0; i < 4; ++i) path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.session(0).batches(), 2u);
  ASSERT_TRUE(path.Round().ok());
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.session(0).batches(), 4u);
}

// So that the network is never idle, and no send takes long.
TEST(PrimarySessionTest, BackupThatCatchesUpHasFourBatchesInFlight) {
  DataPath path({.batch_bytes_max = 64});
  for (int i = 0; i < 6; ++i) path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End(), Pace::kCatchUp).ok());
  EXPECT_EQ(path.session(0).batches(), 4u);
  ASSERT_TRUE(path.Round().ok());
  ASSERT_TRUE(path.session(0).Advance(path.End(), Pace::kCatchUp).ok());
  EXPECT_EQ(path.session(0).posted().lsn, Lsn(6));
}

// Each large batch of a backup that is behind would be a pause for appends.
TEST(PrimarySessionTest, BatchesOfWhoCatchesUpAreSmall) {
  constexpr uint64_t kRecords = 160;
  DataPath path({.credits = 16, .ring_capacity = uint64_t{1} << 18});
  for (uint64_t i = 0; i < kRecords; ++i) path.Append(1000);  // 1088 bytes each
  const RingEnd end = path.End();
  while (path.session(0).acked_lsn() != end.lsn) {
    const RingEnd before = path.session(0).posted();
    const uint64_t batches = path.session(0).batches();
    ASSERT_TRUE(path.session(0).Advance(end, Pace::kCatchUp).ok());
    EXPECT_LE(path.session(0).posted().offset - before.offset,
              (path.session(0).batches() - batches) << 15);
    ASSERT_TRUE(path.Round().ok());
  }
  EXPECT_EQ(path.session(0).batches(), 6u);
}

// RSE4: the head may pass LSN 2 only where LSN 2 is.
TEST(PrimarySessionTest, HeadGoesBehindItsRecords) {
  DataPath path({.credits = 2});
  path.Append(32);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  path.Append(32);
  const RingEnd end = path.End();
  const LogPosition head{end.lsn + 1, end.offset,
                         path.log().log().head().chain};
  ASSERT_TRUE(path.session(0).AdvanceBounds(path.BoundsWith(head)).ok());
  EXPECT_EQ(path.session(0).batches(), 1u);
  ASSERT_TRUE(path.session(0).Advance(end).ok());
  // Both credits are taken now.
  ASSERT_TRUE(path.session(0).AdvanceBounds(path.BoundsWith(head)).ok());
  EXPECT_EQ(path.session(0).batches(), 2u);
  EXPECT_EQ(path.session(0).bounds_published().head, LogPosition());
}

TEST(PrimarySessionTest, HeadIsPublishedOnceItIsAcknowledged) {
  DataPath path({.credits = 2});
  path.Append(32);
  path.Append(32);
  ASSERT_TRUE(path.log().log().CleanupThrough(Lsn(1)).ok());
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  const LogPosition head = path.log().log().head();
  ASSERT_EQ(head.lsn, Lsn(2));
  ASSERT_TRUE(path.session(0).AdvanceBounds(path.BoundsWith(head)).ok());
  EXPECT_EQ(path.session(0).batches(), 2u);
  path.fabric().Run();
  ASSERT_TRUE(path.Drain().ok());
  EXPECT_EQ(path.session(0).bounds_published().head, LogPosition());
  EXPECT_FALSE(path.session(0).is_idle());
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).bounds_published().head, head);
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(2));
  EXPECT_TRUE(path.session(0).is_idle());
  EXPECT_EQ(path.backup(0).heads, std::vector<LogPosition>{head});
  // The same again is nothing new.
  ASSERT_TRUE(path.session(0).AdvanceBounds(path.BoundsWith(head)).ok());
  EXPECT_EQ(path.session(0).batches(), 2u);
}

// RSE6: until the backup has said that its superline has a higher one.
TEST(PrimarySessionTest, NothingIsPostedBeyondTheCeiling) {
  DataPath path({.ceiling_lines = 2});
  replication::PrimarySession& session = path.session(0);
  path.Append(16);
  path.Append(16);
  ASSERT_TRUE(session.Advance(path.End()).ok());
  EXPECT_EQ(session.posted().lsn, Lsn(2));
  path.Append(16);
  const RingEnd end = path.End();
  ASSERT_TRUE(session.Advance(end).ok());
  EXPECT_EQ(session.posted().lsn, Lsn(2));
  const RingBounds bounds{session.bounds_sent().head,
                          RingOffset(3 * kLineBytes)};
  ASSERT_TRUE(session.AdvanceBounds(bounds).ok());
  ASSERT_TRUE(session.Advance(end).ok());
  EXPECT_EQ(session.posted().lsn, Lsn(2));
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(session.bounds_published(), bounds);
  ASSERT_TRUE(session.Advance(end).ok());
  EXPECT_EQ(session.posted().lsn, Lsn(3));
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(session.acked_lsn(), Lsn(3));
}

// P-R1: it takes a credit, as a batch does, and gives it back.
TEST(PrimarySessionTest, WhatIsDurableIsToldOnce) {
  DataPath path({.credits = 1});
  replication::PrimarySession& session = path.session(0);
  path.Append(32);
  ASSERT_TRUE(session.Advance(path.End()).ok());
  ASSERT_TRUE(session.AdvanceDurable(Lsn(1)).ok());
  EXPECT_EQ(session.batches(), 1u);  // no credit
  EXPECT_EQ(session.durable_announced(), Lsn(0));
  ASSERT_TRUE(path.Round().ok());
  ASSERT_TRUE(session.AdvanceDurable(Lsn(1)).ok());
  EXPECT_EQ(session.batches(), 2u);
  EXPECT_EQ(session.durable_announced(), Lsn(1));
  EXPECT_FALSE(session.is_idle());
  ASSERT_TRUE(path.Round().ok());
  EXPECT_TRUE(session.is_idle());
  EXPECT_EQ(session.acked_lsn(), Lsn(1));
  EXPECT_EQ(path.backup(0).session->durable_lsn(), Lsn(1));
  ASSERT_TRUE(session.AdvanceDurable(Lsn(1)).ok());
  EXPECT_EQ(session.batches(), 2u);
}

TEST(PrimarySessionTest, BrokenConnectionIsUnavailable) {
  DataPath path({});
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  path.fabric().Break(path.backup(0).connection);
  path.fabric().Run();
  const absl::Status taken = path.Drain();
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
}

TEST(PrimarySessionTest, WhatNoBackupDoesIsRefused) {
  DataPath path({});
  EXPECT_TRUE(absl::IsDataLoss(path.session(0).OnCompletion(
      {path.backup(0).connection, fabric::WorkId(), fabric::Operation::kRead,
       fabric::CompletionStatus::kOk, 0, 0})));
}

// --- Backups whose records are persisted without their program ---------------

DataPath::Options OnCaches() {
  DataPath::Options options;
  options.platform = *replication::ParsePlatform("mhp,infiniband");
  return options;
}

// Acks still give credits back, and the backup walks, fences and marks what it
// acknowledges, as on any platform.
TEST(PrimarySessionTest, FlushPersistsAndAcksGiveCreditsBack) {
  DataPath path(OnCaches());
  path.Append(32);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  EXPECT_EQ(path.fabric().posted(), 2u);  // and the flush
  path.fabric().Run();
  ASSERT_TRUE(path.Drain().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
  EXPECT_EQ(path.session(0).batches_acked(), 0u);
  EXPECT_FALSE(path.session(0).is_idle());
  EXPECT_EQ(path.backup(0).session->persisted_lsn(), Lsn(0));
  const uint64_t fences = path.backup(0).pmem.fence_count();
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).batches_acked(), 1u);
  EXPECT_TRUE(path.session(0).is_idle());
  EXPECT_EQ(path.backup(0).session->persisted_lsn(), Lsn(1));
  EXPECT_EQ(path.backup(0).pmem.fence_count(), fences + 1);
  EXPECT_EQ(path.backup(0).RecordsAfterAPowerCut(), 1u);
}

// A backup that acknowledges nothing gets no more than its receives, whatever
// the adapter takes.
TEST(PrimarySessionTest, CompletionsAreNoCredits) {
  DataPath path(OnCaches());
  for (uint64_t i = 0; i < 6; ++i) {
    path.Append(32);
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
    path.fabric().Run();
    ASSERT_TRUE(path.Drain().ok());
  }
  EXPECT_EQ(path.session(0).batches(), 4u);
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(4));
}

// An ack that comes before the completion says it, too.
TEST(PrimarySessionTest, AckPersistsAsWell) {
  DataPath path(OnCaches());
  path.Append(32);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  path.fabric().Run();
  const auto late = path.fabric().DrainCompletions();
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
  for (const fabric::Completion& completion : late) {
    ASSERT_TRUE(path.session(0).OnCompletion(completion).ok());
  }
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
}

}  // namespace
}  // namespace alpheus::testing
