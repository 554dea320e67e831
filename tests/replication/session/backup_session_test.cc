// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "replication/session/resend.h"
#include "replication/wire/ack.h"
#include "replication/wire/durable_update.h"
#include "replication/wire/head_update.h"
#include "replication/wire/summed_words.h"
#include "tests/replication/session/data_path.h"

namespace alpheus::testing {

using fabric::WorkId;
using replication::HeadUpdate;
using replication::kHeadUpdateBytes;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// SW1 (summed_words.h).
void ExpectEveryTurnedBitSeen(std::span<std::byte> bytes, const auto& decode) {
  EXPECT_TRUE(replication::AreSummed(bytes));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const std::byte turned = std::byte{1} << static_cast<int>(bit % 8);
    bytes[bit / 8] ^= turned;
    EXPECT_FALSE(decode(bytes).has_value()) << bit;
    EXPECT_FALSE(replication::AreSummed(bytes)) << bit;
    bytes[bit / 8] ^= turned;
  }
}

TEST(AckTest, ComesBackAsItWas) {
  std::byte bytes[replication::kAckBytes];
  const replication::Ack ack{Epoch(3), kSession, Lsn(17), 4};
  replication::EncodeAck(ack, bytes);
  EXPECT_EQ(replication::DecodeAck(bytes), ack);
  EXPECT_FALSE(
      replication::DecodeAck(std::span(bytes).first(replication::kAckBytes - 1))
          .has_value());
  ExpectEveryTurnedBitSeen(bytes, replication::DecodeAck);
}

TEST(HeadUpdateTest, ComesBackAsItWas) {
  std::byte bytes[kHeadUpdateBytes];
  const HeadUpdate update{
      Epoch(3),
      kSession,
      {{Lsn(17), RingOffset(64), 0x1234}, RingOffset(4096)}};
  replication::EncodeHeadUpdate(update, bytes);
  EXPECT_EQ(replication::DecodeHeadUpdate(bytes), update);
  EXPECT_FALSE(replication::DecodeHeadUpdate(
                   std::span(bytes).first(kHeadUpdateBytes - 1))
                   .has_value());
  ExpectEveryTurnedBitSeen(bytes, replication::DecodeHeadUpdate);
}

TEST(DurableUpdateTest, ComesBackAsItWas) {
  std::byte bytes[replication::kDurableUpdateBytes];
  const replication::DurableUpdate update{Epoch(3), kSession, Lsn(17)};
  replication::EncodeDurableUpdate(update, bytes);
  EXPECT_EQ(replication::DecodeDurableUpdate(bytes), update);
  EXPECT_FALSE(replication::DecodeDurableUpdate(
                   std::span(bytes).first(replication::kDurableUpdateBytes - 1))
                   .has_value());
  ExpectEveryTurnedBitSeen(bytes, replication::DecodeDurableUpdate);
}

// Sends a head that no session made; what the backup says to it.
absl::Status AnnounceHead(DataPath& path, const HeadUpdate& update,
                          size_t bytes = kHeadUpdateBytes,
                          std::optional<size_t> turned_bit = std::nullopt) {
  const auto slots =
      *replication::MessageSlots::Make(path.fabric(), 1, kHeadUpdateBytes);
  const fabric::LocalBytes message = slots->At(0);
  replication::EncodeHeadUpdate(update,
                                message.bytes.first<kHeadUpdateBytes>());
  if (turned_bit) {
    message.bytes[*turned_bit / 8] ^= std::byte{1}
                                      << static_cast<int>(*turned_bit % 8);
  }
  DataPath::Backup& backup = path.backup(0);
  EXPECT_TRUE(path.fabric()
                  .PostSend(backup.connection, WorkId(),
                            {message.key, message.bytes.first(bytes)})
                  .ok());
  path.fabric().Run();
  ALPHEUS_RETURN_IF_ERROR(backup.Drain());
  return backup.session->Step();
}

HeadUpdate HeadOf(DataPath& path, const LogPosition& head) {
  return {path.terms().epoch, kSession, path.BoundsWith(head)};
}

TEST(BackupSessionTest, HeadOfAnotherSessionIsRefused) {
  const auto refused = [](const HeadUpdate& change, size_t bytes) {
    DataPath path({});
    HeadUpdate update = HeadOf(path, path.terms().next);
    update.epoch = update.epoch + change.epoch.value;
    update.session = update.session + change.session.value;
    const absl::Status told = AnnounceHead(path, update, bytes);
    EXPECT_EQ(path.backup(0).heads.empty(), !told.ok());
    return !told.ok();
  };
  EXPECT_FALSE(refused({}, kHeadUpdateBytes));
  EXPECT_TRUE(
      refused({Epoch(1), replication::SessionId(0), {}}, kHeadUpdateBytes));
  EXPECT_TRUE(
      refused({Epoch(0), replication::SessionId(1), {}}, kHeadUpdateBytes));
  EXPECT_TRUE(refused({}, kHeadUpdateBytes - 8));
}

// BS4: a superline never gets a head, or its chain, that nobody sent.
TEST(BackupSessionTest, HeadThatWasChangedOnItsWayIsNotPublished) {
  for (size_t bit = 0; bit < 8 * kHeadUpdateBytes; ++bit) {
    DataPath path({});
    const absl::Status told = AnnounceHead(
        path, HeadOf(path, path.terms().next), kHeadUpdateBytes, bit);
    EXPECT_TRUE(absl::IsUnavailable(told)) << bit << ": " << told;
    EXPECT_THAT(told.message(), HasSubstr("changed on their way"));
    EXPECT_TRUE(path.backup(0).heads.empty()) << bit;
  }
}

// P-H21, BS5: what another session's primary took for durable is nothing here.
TEST(BackupSessionTest, DurableOfAnotherSessionIsRefused) {
  const auto told = [](uint64_t epoch, uint64_t session) {
    DataPath path({});
    const auto slots = *replication::MessageSlots::Make(path.fabric(), 1, 64);
    fabric::LocalBytes message = slots->At(0);
    message.bytes = message.bytes.first(replication::kDurableUpdateBytes);
    replication::EncodeDurableUpdate(
        {path.terms().epoch + epoch,
         replication::SessionId(kSession.value + session), Lsn(9)},
        message.bytes.first<replication::kDurableUpdateBytes>());
    DataPath::Backup& backup = path.backup(0);
    EXPECT_TRUE(
        path.fabric().PostSend(backup.connection, WorkId(), message).ok());
    path.fabric().Run();
    const absl::Status taken = backup.Drain();
    EXPECT_EQ(backup.session->durable_lsn(), taken.ok() ? Lsn(9) : Lsn(0));
    return taken;
  };
  EXPECT_TRUE(told(0, 0).ok());
  EXPECT_TRUE(absl::IsDataLoss(told(1, 0)));
  EXPECT_TRUE(absl::IsDataLoss(told(0, 1)));
}

// Posts what was appended; it has arrived, and the backup has not looked yet.
void Arrive(DataPath& path) {
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  path.fabric().Run();
  ASSERT_TRUE(path.backup(0).Drain().ok());
}

// The record's place in the backup's memory.
std::byte* PlaceOf(DataPath::Backup& backup, RingOffset offset) {
  return backup.pmem.region().data() + backup.state.superline.ring_offset +
         offset.value;
}

// The primary sends, the backup takes that and answers.
absl::Status Exchange(DataPath& path) {
  path.fabric().Run();
  path.backup(0).fabric.Run();
  ALPHEUS_RETURN_IF_ERROR(path.Drain());
  path.fabric().Run();
  ALPHEUS_RETURN_IF_ERROR(path.backup(0).Drain());
  ALPHEUS_RETURN_IF_ERROR(path.backup(0).session->Step());
  path.backup(0).fabric.Run();
  return path.Drain();
}

// Goal: BS6. Wherever a bit of the payload is another one, whatever came
// before: it is not acknowledged, it is told, and it comes right again.
TEST(BackupSessionTest, PayloadThatWasChangedOnItsWayIsNotAcked) {
  for (const size_t bytes : {1, 64, 191, 1000}) {
    for (const size_t at : {size_t{0}, bytes / 2, bytes - 1}) {
      DataPath path({});
      path.Append(16);
      ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
      ASSERT_TRUE(path.Round().ok());
      DataPath::Backup& backup = path.backup(0);
      const RingOffset begin = backup.session->next().offset;
      path.Append(bytes);
      path.Append(16);
      Arrive(path);
      PlaceOf(backup, begin)[kRecordHeaderBytes + at] ^= std::byte{0x10};
      ASSERT_TRUE(backup.session->Step().ok());
      EXPECT_EQ(backup.session->persisted_lsn(), Lsn(1));
      EXPECT_FALSE(backup.session->has_more());  // it waits
      EXPECT_THAT(backup.session->TakeNews(),
                  AllOf(HasSubstr("LSN 2"), HasSubstr("asked for it again")));
      EXPECT_EQ(path.session(0).acked_lsn(), Lsn(1));
      ASSERT_TRUE(Exchange(path).ok());
      EXPECT_EQ(path.session(0).acked_lsn(), Lsn(3));
      EXPECT_EQ(backup.session->TakeNews(), "");
      EXPECT_EQ(backup.RecordsAfterAPowerCut(), 3u);  // BS1
    }
  }
}

// It is the primary's memory, or a link that damages each time.
TEST(BackupSessionTest, PayloadThatNeverComesRightEndsTheSession) {
  DataPath path({});
  path.Append(100);
  std::byte* const own =
      path.log().log().ring().data() + kRecordHeaderBytes + 50;
  *own ^= std::byte{1};
  Arrive(path);
  absl::Status step = path.backup(0).session->Step();
  int exchanges = 0;
  for (; step.ok() && exchanges < 10; ++exchanges) step = Exchange(path);
  EXPECT_EQ(exchanges, 3);
  EXPECT_TRUE(absl::IsDataLoss(step)) << step;
  EXPECT_THAT(std::string(step.message()),
              AllOf(HasSubstr("LSN 1"), HasSubstr("3 times more"),
                    HasSubstr("primary's memory")));
  EXPECT_EQ(path.session(0).acked_lsn(), Lsn(0));
}

TEST(BackupSessionTest, WhatNobodyAskedForIsRefused) {
  DataPath path({});
  const auto slots = *replication::MessageSlots::Make(path.fabric(), 1, 64);
  fabric::LocalBytes message = slots->At(0);
  message.bytes = message.bytes.first(replication::kResentBytes);
  replication::EncodeResent({path.terms().epoch, kSession, RingOffset(64)},
                            message.bytes.first<replication::kResentBytes>());
  DataPath::Backup& backup = path.backup(0);
  EXPECT_TRUE(
      path.fabric().PostSend(backup.connection, WorkId(), message).ok());
  path.fabric().Run();
  EXPECT_TRUE(absl::IsDataLoss(backup.Drain()));
}

// A backup gets nothing again but what it may still be without.
TEST(PrimarySessionTest, ResendThatCannotBeIsRefused) {
  const auto asked = [](uint64_t offset, uint64_t bytes) {
    DataPath path({});
    path.Append(16);
    Arrive(path);
    DataPath::Backup& backup = path.backup(0);
    const auto slots = *replication::MessageSlots::Make(backup.fabric, 1, 64);
    fabric::LocalBytes message = slots->At(0);
    message.bytes = message.bytes.first(replication::kResendRequestBytes);
    replication::EncodeResendRequest(
        {path.terms().epoch, kSession, RingOffset(offset), bytes},
        message.bytes.first<replication::kResendRequestBytes>());
    EXPECT_TRUE(
        backup.fabric.PostSend(backup.connection, WorkId(), message).ok());
    backup.fabric.Run();
    return path.Drain();
  };
  const uint64_t record = RecordBytes(16);
  EXPECT_TRUE(asked(0, record).ok()) << asked(0, record);
  for (const auto& [offset, bytes] : {std::pair<uint64_t, uint64_t>{0, 0},
                                      {0, record + kLineBytes},
                                      {kLineBytes, record},
                                      {1, record},
                                      {0, record - 1},
                                      {uint64_t{1} << 40, record}}) {
    EXPECT_TRUE(absl::IsDataLoss(asked(offset, bytes)))
        << offset << " " << bytes;
  }
}

TEST(ResendTest, ComesBackAsItWas) {
  std::byte asked[replication::kResendRequestBytes];
  const replication::ResendRequest request{Epoch(3), kSession, RingOffset(64),
                                           128};
  replication::EncodeResendRequest(request, asked);
  EXPECT_EQ(replication::DecodeResendRequest(asked), request);
  EXPECT_FALSE(replication::DecodeAck(asked).has_value());
  asked[0] ^= std::byte{1};
  EXPECT_FALSE(replication::DecodeResendRequest(asked).has_value());
  std::byte sent[replication::kResentBytes];
  const replication::Resent resent{Epoch(3), kSession, RingOffset(64)};
  replication::EncodeResent(resent, sent);
  EXPECT_EQ(replication::DecodeResent(sent), resent);
  EXPECT_FALSE(replication::DecodeDurableUpdate(sent).has_value());
  sent[0] ^= std::byte{1};
  EXPECT_FALSE(replication::DecodeResent(sent).has_value());
}

// The link has found it, and what is left is the scan's and the scrub's.
TEST(BackupSessionTest, WhereTheLinkChecksPayloadsAreNotSummed) {
  DataPath::Options options;
  options.platform.transport = replication::Transport::kInfiniBand;
  DataPath path(options);
  path.Append(100);
  Arrive(path);
  DataPath::Backup& backup = path.backup(0);
  backup.pmem
      .region()[backup.state.superline.ring_offset + kRecordHeaderBytes] ^=
      std::byte{1};
  EXPECT_TRUE(backup.session->Step().ok());
  EXPECT_EQ(backup.session->persisted_lsn(), Lsn(1));
}

// Goal: other logs of the node don't wait for a large record, and its last byte
// counts as its first.
TEST(BackupSessionTest, LargeRecordIsSummedInSlices) {
  constexpr size_t kBytes = (size_t{3} << 20) + 1;
  for (const bool is_damaged : {false, true}) {
    DataPath path({.ring_capacity = uint64_t{8} << 20});
    path.Append(kBytes);
    Arrive(path);
    DataPath::Backup& backup = path.backup(0);
    if (is_damaged) {
      PlaceOf(backup, RingOffset(0))[kRecordHeaderBytes + kBytes - 1] ^=
          std::byte{1};
    }
    int steps = 1;
    ASSERT_TRUE(backup.session->Step().ok());
    for (; backup.session->has_more(); ++steps) {
      EXPECT_EQ(backup.session->persisted_lsn(), Lsn(0));
      ASSERT_TRUE(backup.session->Step().ok());
    }
    EXPECT_EQ(steps, 4);
    EXPECT_EQ(backup.session->persisted_lsn(), Lsn(is_damaged ? 0 : 1));
    EXPECT_EQ(backup.session->TakeNews().empty(), !is_damaged);
  }
}

// BS5: each header names what was durable when it was written.
TEST(BackupSessionTest, HeadersTellWhatIsDurable) {
  DataPath path({});
  path.Append(16);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.backup(0).session->durable_lsn(), Lsn(0));
  path.Append(16);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.backup(0).session->durable_lsn(), Lsn(1));
}

// P-L10: two records of 64 and 128 bytes; heads are before one or behind both.
TEST(BackupSessionTest, HeadThatCannotBeIsRefused) {
  const auto refused = [](Lsn lsn, uint64_t offset, uint64_t chain) {
    DataPath path({});
    path.Append(16);
    path.Append(80);
    EXPECT_TRUE(path.session(0).Advance(path.End()).ok());
    EXPECT_TRUE(path.Round().ok());
    const LogPosition& next = path.backup(0).session->next();
    const absl::Status told = AnnounceHead(
        path, HeadOf(path, {lsn, RingOffset(offset), next.chain + chain}));
    EXPECT_EQ(path.backup(0).heads.empty(), !told.ok());
    return absl::IsDataLoss(told);
  };
  EXPECT_FALSE(refused(Lsn(3), 192, 0));
  EXPECT_FALSE(refused(Lsn(2), 64, 1));
  EXPECT_TRUE(refused(Lsn(4), 192, 0));  // beyond the log
  EXPECT_TRUE(refused(Lsn(3), 128, 0));  // not where it ends
  EXPECT_TRUE(refused(Lsn(3), 192, 1));  // another log
  EXPECT_TRUE(refused(Lsn(2), 192, 0));  // a record of no bytes
  EXPECT_TRUE(refused(Lsn(2), 65, 0));   // between lines
}

TEST(BackupSessionTest, HeadNeverGoesBack) {
  DataPath path({});
  path.Append(16);
  path.Append(16);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  ASSERT_TRUE(
      AnnounceHead(path, HeadOf(path, {Lsn(2), RingOffset(64), 1})).ok());
  EXPECT_TRUE(absl::IsDataLoss(
      AnnounceHead(path, HeadOf(path, {Lsn(1), RingOffset(0), 1}))));
}

// BS4: what is announced with it is persisted first, and one ack says both.
TEST(BackupSessionTest, HeadIsAckedWhenItIsPublished) {
  DataPath path({});
  path.Append(16);
  ASSERT_TRUE(path.log().log().CleanupThrough(Lsn(1)).ok());
  const LogPosition head = path.log().log().head();
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.session(0).AdvanceBounds(path.BoundsWith(head)).ok());
  const uint64_t fences = path.backup(0).pmem.fence_count();
  ASSERT_TRUE(path.Round().ok());
  EXPECT_EQ(path.backup(0).heads, std::vector<LogPosition>{head});
  EXPECT_EQ(path.backup(0).pmem.fence_count(), fences + 1);
  EXPECT_EQ(path.backup(0).fabric.executed(fabric::Operation::kSend), 1u);
  EXPECT_EQ(path.session(0).bounds_published().head, head);
}

// BS7: the primary's own ceiling is another.
TEST(BackupSessionTest, BytesBeyondTheCeilingEndTheSession) {
  DataPath path({.backup_ceiling_lines = 2});
  for (int i = 0; i < 2; ++i) path.Append(16);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  path.Append(16);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  const absl::Status round = path.Round();
  EXPECT_TRUE(absl::IsDataLoss(round)) << round;
  EXPECT_THAT(round.message(), HasSubstr("the ceiling here is 128"));
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
  // A Step with nothing to do takes no fence.
  ASSERT_TRUE(path.backup(0).session->Step().ok());
  EXPECT_EQ(path.backup(0).pmem.fence_count(), before + 1);
}

// P-L7: one batch, two pieces, one immediate; and a PAD in between.
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
  // The backup says that its ceiling is after the ring's end.
  const LogPosition head = path.log().log().head();
  ASSERT_TRUE(path.session(0).AdvanceBounds(path.BoundsWith(head)).ok());
  ASSERT_TRUE(path.Round().ok());
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
  std::vector<std::byte> image = backup.pmem.CutKeepingNone();
  EXPECT_EQ(watermark(image), Lsn(2));
  // After LSN 1, which takes three lines.
  const LogPosition place = ReadRegionState(image, "backup")->proven_place();
  EXPECT_EQ(place.lsn, Lsn(2));
  EXPECT_EQ(place.offset, RingOffset(3 * kLineBytes));
}

// WMK2 of watermark.h: the line that holds is not the one that is written.
TEST(BackupSessionTest, ACutLeavesOneOfTwoWatermarks) {
  DataPath path({});
  DataPath::Backup& backup = path.backup(0);
  for (int i = 0; i < 2; ++i) {
    path.Append(100);
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
    ASSERT_TRUE(path.Round().ok());
    ASSERT_TRUE(backup.session->PersistWatermark().ok());
  }
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  ASSERT_TRUE(path.Round().ok());
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    std::vector<std::byte> image = backup.pmem.CutDrawing(random);
    EXPECT_GE(ReadRegionState(image, "backup")->ProvenLsn(), Lsn(2)) << seed;
  }
}

TEST(BackupSessionTest, FailedFenceAcknowledgesNothing) {
  DataPath path({});
  path.Append(100);
  ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
  path.fabric().Run();
  DataPath::Backup& backup = path.backup(0);
  ASSERT_TRUE(backup.Drain().ok());
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
  ASSERT_TRUE(backup.Drain().ok());
  const absl::Status stepped = backup.session->Step();
  EXPECT_TRUE(absl::IsDataLoss(stepped)) << stepped;
  EXPECT_EQ(backup.fabric.posted(), 0u);
}

TEST(BackupSessionTest, ImpossibleAnnouncementsAreRefused) {
  DataPath path({});
  replication::BackupSession<model::ModelPersistence>& session =
      *path.backup(0).session;
  fabric::Completion announced{path.backup(0).connection,
                               WorkId(0),
                               fabric::Operation::kReceiveImmediate,
                               fabric::CompletionStatus::kOk,
                               64,
                               4096 / 64};
  EXPECT_TRUE(absl::IsDataLoss(session.OnCompletion(announced)));
  announced.immediate = 1;
  announced.bytes = 0;
  EXPECT_TRUE(absl::IsDataLoss(session.OnCompletion(announced)));
  announced.operation = fabric::Operation::kRead;
  EXPECT_TRUE(absl::IsDataLoss(session.OnCompletion(announced)));
  announced.status = fabric::CompletionStatus::kFlushed;
  EXPECT_TRUE(absl::IsUnavailable(session.OnCompletion(announced)));
}

// All ack buffers are in flight: the next ack says it for those that wait.
// Two whole laps would be flushed beyond the end of the ring.
TEST(BackupSessionTest, MoreThanALapIsNotAnnounced) {
  DataPath path({});
  replication::BackupSession<model::ModelPersistence>& session =
      *path.backup(0).session;
  const uint64_t place =
      path.log().log().ring().Place(session.next().offset) / kLineBytes;
  fabric::Completion announced{path.backup(0).connection, WorkId(0),
                               fabric::Operation::kReceiveImmediate};
  announced.bytes = kLineBytes;
  announced.immediate = static_cast<uint32_t>(place);
  EXPECT_TRUE(session.OnCompletion(announced).ok());
  EXPECT_TRUE(absl::IsDataLoss(session.OnCompletion(announced)));
}

TEST(BackupSessionTest, AcksAreCumulativeWhenTheyCannotBeSent) {
  DataPath path({.credits = 32});
  DataPath::Backup& backup = path.backup(0);
  for (int i = 0; i < 20; ++i) {
    path.Append(32);
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
    path.fabric().Run();
    ASSERT_TRUE(path.Drain().ok());
    ASSERT_TRUE(backup.Drain().ok());
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
