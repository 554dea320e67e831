// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/ring_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/thread_token.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LogHarness;

using Code = absl::StatusCode;

class RingLogTest : public ::testing::Test {
 protected:
  RingLogTest()
      : harness_({.ring_capacity = 4096, .exposure_records_max = 32}) {
    EXPECT_TRUE(harness_.Open().ok());
  }

  RingLog<model::ModelPersistence>& log() { return harness_.log(); }

  ReservedRecord Reserve(size_t bytes) {
    auto record = log().Reserve(bytes, Deadline());
    EXPECT_TRUE(record.ok()) << record.status();
    return *record;
  }
  ReservedRecord ReserveFilled(std::string_view text) {
    ReservedRecord record = Reserve(text.size());
    EXPECT_TRUE(log().Copy(record, 0, AsBytes(text)).ok());
    return record;
  }
  void CompleteAndForce(ReservedRecord record) {
    ASSERT_TRUE(log().Complete(record).ok());
    ASSERT_TRUE(log().Force(record.lsn, 1, Deadline::AtNanos(1'000'000)).ok());
  }
  std::vector<std::string> RecoverAfterPowerCut() {
    harness_.PowerCut();
    const absl::Status opened = harness_.Open();
    EXPECT_TRUE(opened.ok()) << opened;
    return harness_.Recovered();
  }

  LogHarness harness_;
};

TEST_F(RingLogTest, AppendedRecordSurvivesPowerCut) {
  harness_.Append("one");
  harness_.Append("two");
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre("one", "two"));
}

TEST_F(RingLogTest, ReserveCopyCompleteForceSurvivesPowerCut) {
  CompleteAndForce(ReserveFilled("stepwise"));
  EXPECT_EQ(log().durable_lsn(), Lsn(1));
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre("stepwise"));
}

TEST_F(RingLogTest, CompletedButNotForcedRecordIsExposed) {
  ReservedRecord record = ReserveFilled("exposed");
  ASSERT_TRUE(log().Complete(record).ok());
  EXPECT_EQ(log().durable_lsn(), Lsn(0));
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre());
}

// The checksum is carried along only while one thread copies in sequence; all
// other ways to fill a record must give the same bytes.
TEST_F(RingLogTest, EveryWayToFillARecordIsSealedRight) {
  ReservedRecord in_place = Reserve(4);
  std::memcpy(in_place.payload, "abcd", 4);
  in_place.filled_in_place = true;
  CompleteAndForce(in_place);

  ReservedRecord backwards = Reserve(4);
  ASSERT_TRUE(log().Copy(backwards, 2, AsBytes("cd")).ok());
  ASSERT_TRUE(log().Copy(backwards, 0, AsBytes("ab")).ok());
  CompleteAndForce(backwards);

  ReservedRecord twice = Reserve(4);
  ASSERT_TRUE(log().Copy(twice, 0, AsBytes("xxcd")).ok());
  ASSERT_TRUE(log().Copy(twice, 0, AsBytes("ab")).ok());
  CompleteAndForce(twice);

  ReservedRecord by_another_thread = Reserve(4);
  const uint32_t self = ThreadToken();
  SetThreadToken(self + 1000);
  ASSERT_TRUE(log().Copy(by_another_thread, 0, AsBytes("abcd")).ok());
  SetThreadToken(self);
  CompleteAndForce(by_another_thread);

  ReservedRecord changed_by_another_thread = Reserve(4);
  ASSERT_TRUE(log().Copy(changed_by_another_thread, 0, AsBytes("xxcd")).ok());
  SetThreadToken(self + 1000);
  ASSERT_TRUE(log().Copy(changed_by_another_thread, 0, AsBytes("ab")).ok());
  SetThreadToken(self);
  CompleteAndForce(changed_by_another_thread);

  ReservedRecord in_pieces = Reserve(4);
  ASSERT_TRUE(log().Copy(in_pieces, 0, AsBytes("ab")).ok());
  ASSERT_TRUE(log().Copy(in_pieces, 2, AsBytes("cd")).ok());
  CompleteAndForce(in_pieces);

  EXPECT_THAT(RecoverAfterPowerCut(),
              ElementsAre("abcd", "abcd", "abcd", "abcd", "abcd", "abcd"));
}

// P-F4: bytes that users store through the pointer are flushed with the record.
TEST_F(RingLogTest, StoresThroughThePointerArePersistedByForce) {
  const std::string payload(500, 'u');
  ReservedRecord record = Reserve(payload.size());
  std::memcpy(record.payload, payload.data(), payload.size());
  record.filled_in_place = true;
  CompleteAndForce(record);
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre(payload));
}

// P-F3: the thread that forces is another one than those that wrote.
TEST_F(RingLogTest, RecordOfOneThreadIsPersistedByAnother) {
  const std::string payload(200, 'w');
  const std::span<const std::byte> part = AsBytes(payload);
  harness_.pmem().SetThread(1);
  ASSERT_TRUE(log().Append({&part, 1}, /*policy=*/2, Deadline()).ok());
  ReservedRecord copied = ReserveFilled(payload);
  ASSERT_TRUE(log().Complete(copied).ok());
  harness_.pmem().SetThread(2);
  ASSERT_TRUE(log().Force(copied.lsn, 1, Deadline()).ok());
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre(payload, payload));
}

// P-A3.3: the extents of one batch lie on both sides of the ring's end.
TEST_F(RingLogTest, BatchOverTheEndOfTheRingIsPersisted) {
  const std::string half(PayloadBytesMax(4096) - kLineBytes, 'h');
  harness_.Append(half);
  harness_.Append(half);
  ASSERT_TRUE(log().CleanupAll().ok());
  ReservedRecord last;
  for (const char* text : {"a", "b", "c", "d"}) {
    last = ReserveFilled(text);
    ASSERT_TRUE(log().Complete(last).ok());
  }
  ASSERT_GT(last.offset.value, log().ring().capacity());
  ASSERT_TRUE(log().Force(last.lsn, 1, Deadline()).ok());
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(RingLogTest, ScatteredPartsBecomeOneRecordInEverySize) {
  std::vector<std::string> expected;
  for (size_t first = 0; first < 80; first += 7) {
    for (size_t second = 0; second < 200; second += 31) {
      const std::string a(first, 'a');
      const std::string b(second, 'b');
      const std::string c(64, 'c');
      const std::span<const std::byte> parts[] = {
          AsBytes(a), {}, AsBytes(b), AsBytes(c)};
      ASSERT_TRUE(log().Append(parts, 1, Deadline()).ok());
      if (log().durable_lsn() > Lsn(1)) {
        ASSERT_TRUE(log().CleanupThrough(log().durable_lsn() - 1).ok());
      }
      EXPECT_THAT(harness_.Recovered().back(), a + b + c);
    }
  }
}

// One fence per forced record is the whole local cost (P-A1).
TEST_F(RingLogTest, AppendCostsOneFence) {
  harness_.Append("warm up");
  const uint64_t before = harness_.pmem().fence_count();
  harness_.Append("counted");
  EXPECT_EQ(harness_.pmem().fence_count() - before, 1u);
}

TEST_F(RingLogTest, ForceOfABatchCostsOneFence) {
  ReservedRecord last;
  for (int i = 0; i < 8; ++i) {
    last = ReserveFilled("batch");
    ASSERT_TRUE(log().Complete(last).ok());
  }
  const uint64_t fences = harness_.pmem().fence_count();
  const uint64_t clean_lines = harness_.pmem().lint().clean_lines_flushed;
  ASSERT_TRUE(log().Force(last.lsn, 1, Deadline()).ok());
  EXPECT_EQ(harness_.pmem().fence_count() - fences, 1u);
  EXPECT_EQ(harness_.pmem().lint().clean_lines_flushed, clean_lines);
}

TEST_F(RingLogTest, ForceOfADurableRecordCostsNothing) {
  const Lsn lsn = harness_.Append("durable");
  const uint64_t before = harness_.pmem().fence_count();
  ASSERT_TRUE(log().Force(lsn, 1, Deadline()).ok());
  EXPECT_EQ(harness_.pmem().fence_count(), before);
}

TEST_F(RingLogTest, FrequencyForcesOnlyDivisibleLsns) {
  const std::span<const std::byte> part = AsBytes("x");
  for (int i = 1; i <= 12; ++i) {
    ASSERT_TRUE(log().Append({&part, 1}, 4, Deadline()).ok());
    EXPECT_EQ(log().durable_lsn(), Lsn(i / 4 * 4));
  }
}

// Appends become durable without a batch of the forcer, and their slots are
// used again; a force after any number of them must still find its records.
TEST_F(RingLogTest, ForceWorksAfterMoreAppendsThanTheCap) {
  for (int i = 0; i < 100; ++i) {
    harness_.Append("x");
    ASSERT_TRUE(log().CleanupThrough(log().durable_lsn()).ok());
  }
  CompleteAndForce(ReserveFilled("forced"));
  ASSERT_EQ(log().durable_lsn(), Lsn(101));
  EXPECT_TRUE(log().Close().ok());
}

// A refusal before anything is written means that nothing happened.
TEST_F(RingLogTest, AppendBehindOwnOpenReservationWritesNothing) {
  const ReservedRecord open = Reserve(1);
  const std::span<const std::byte> part = AsBytes("refused");
  EXPECT_EQ(log().Append({&part, 1}, 1, Deadline()).status().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(log().next_lsn(), Lsn(2));
  // With a frequency the record is completed, and the answer says so.
  EXPECT_EQ(log().Append({&part, 1}, 2, Deadline()).status().code(),
            Code::kCancelled);
  EXPECT_EQ(log().next_lsn(), Lsn(3));
  EXPECT_EQ(log().WaitDurable(Lsn(2), Deadline()).code(),
            Code::kFailedPrecondition);
  log().Abort(open);
}

TEST_F(RingLogTest, RingFullOfOwnReservationsIsNotForCleaning) {
  const ReservedRecord first = Reserve(2000);
  const ReservedRecord second = Reserve(1900);
  EXPECT_EQ(log().Reserve(100, Deadline()).status().code(),
            Code::kFailedPrecondition);
  log().Abort(first);
  log().Abort(second);
}

// P-F1: dropping a reservation never blocks anybody.
TEST_F(RingLogTest, AbortedRecordIsPassedOver) {
  harness_.Append("before");
  const ReservedRecord given_up = Reserve(100);
  const ReservedRecord kept = ReserveFilled("after");
  log().Abort(given_up);
  CompleteAndForce(kept);
  EXPECT_TRUE(log().Force(given_up.lsn, 1, Deadline()).ok());
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre("before", "after"));
}

// P-F2: a thread never waits for itself.
TEST_F(RingLogTest, ForceBehindOwnOpenReservationIsRefused) {
  const ReservedRecord open = Reserve(1);
  ReservedRecord done = ReserveFilled("done");
  ASSERT_TRUE(log().Complete(done).ok());
  const absl::Status refused =
      log().Force(done.lsn, 1, Deadline::AtNanos(1'000'000));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("LSN 1"));
  log().Abort(open);
  EXPECT_TRUE(log().Force(done.lsn, 1, Deadline()).ok());
}

TEST_F(RingLogTest, ForceBehindADetachedReservationWaits) {
  ReservedRecord open = Reserve(1);
  log().Detach(open);
  ReservedRecord done = ReserveFilled("done");
  ASSERT_TRUE(log().Complete(done).ok());
  EXPECT_EQ(log().Force(done.lsn, 1, Deadline::AtNanos(1'000'000)).code(),
            Code::kDeadlineExceeded);
  // A caller's own deadline is no failure of the log (P-A3.6).
  log().Abort(open);
  EXPECT_TRUE(log().Force(done.lsn, 1, Deadline()).ok());
}

TEST_F(RingLogTest, ReserveAtTheExposureCapForces) {
  for (int i = 0; i < 32; ++i) {
    ReservedRecord record = ReserveFilled("x");
    ASSERT_TRUE(log().Complete(record).ok());
  }
  EXPECT_EQ(log().durable_lsn(), Lsn(0));
  auto record = log().Reserve(1, Deadline::AtNanos(1'000'000));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(log().durable_lsn(), Lsn(32));
  log().Abort(*record);
}

TEST_F(RingLogTest, ReserveBlockedByOwnReservationsIsRefused) {
  std::vector<ReservedRecord> open;
  for (int i = 0; i < 32; ++i) open.push_back(Reserve(1));
  EXPECT_EQ(log().Reserve(1, Deadline()).status().code(),
            Code::kFailedPrecondition);
  for (const ReservedRecord& record : open) log().Abort(record);
  EXPECT_TRUE(log().Append({}, 1, Deadline()).ok());
}

TEST_F(RingLogTest, FullRingIsResourceExhaustedAndLosesNothing) {
  const std::string payload(500, 'p');
  size_t appended = 0;
  absl::Status status;
  while (status.ok()) {
    const std::span<const std::byte> part = AsBytes(payload);
    status = log().Append({&part, 1}, 1, Deadline()).status();
    if (status.ok()) ++appended;
  }
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(appended, 4096u / 576u);
  EXPECT_EQ(RecoverAfterPowerCut().size(), appended);
  ASSERT_TRUE(log().CleanupThrough(Lsn(2)).ok());
  harness_.Append(payload);
}

TEST_F(RingLogTest, FullRingWithADeadlineWaitsForIt) {
  const std::string payload(1000, 'p');
  const std::span<const std::byte> part = AsBytes(payload);
  while (log().Append({&part, 1}, 1, Deadline()).ok()) {
  }
  EXPECT_EQ(log()
                .Append({&part, 1}, 1, Deadline::AtNanos(1'000'000'000))
                .status()
                .code(),
            Code::kResourceExhausted);
}

// Aborted records need no cleaning by the application: they free themselves.
TEST_F(RingLogTest, RingOfAbortedRecordsNeverFills) {
  for (int i = 0; i < 200; ++i) log().Abort(Reserve(1000));
  harness_.Append("still room");
}

TEST_F(RingLogTest, LargestAndEmptyRecordsAreTaken) {
  const std::string largest(PayloadBytesMax(4096), 'L');
  harness_.Append(largest);
  harness_.Append("");
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre(largest, ""));
}

TEST_F(RingLogTest, RecordLargerThanHalfTheRingIsRefused) {
  const absl::Status refused =
      log().Reserve(PayloadBytesMax(4096) + 1, Deadline()).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(log().next_lsn(), Lsn(1));
}

// Sizes are checked before a byte is read, their sum too.
TEST_F(RingLogTest, PartsThatAreTooLargeAreNotRead) {
  const std::byte one{1};
  const std::span<const std::byte> huge(&one, SIZE_MAX / 2 + 1);
  const std::span<const std::byte> parts[] = {huge, huge, {&one, 1}};
  for (const size_t count : {1, 2, 3}) {
    const auto lsn = log().Append(std::span(parts).first(count), 1, Deadline());
    EXPECT_EQ(lsn.status().code(), Code::kInvalidArgument) << count;
  }
  EXPECT_EQ(log().next_lsn(), Lsn(1));
}

TEST_F(RingLogTest, CopyBeyondTheRecordIsRefused) {
  ReservedRecord record = Reserve(4);
  EXPECT_EQ(log().Copy(record, 3, AsBytes("ab")).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(log().Copy(record, 5, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(log().Copy(record, ~size_t{0}, AsBytes("ab")).code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(log().Copy(record, 4, {}).ok());
  log().Abort(record);
}

TEST_F(RingLogTest, LsnThatWasNeverAssignedIsOutOfRange) {
  harness_.Append("x");
  for (const Lsn lsn : {Lsn(0), Lsn(2), Lsn(~uint64_t{0})}) {
    EXPECT_EQ(log().Force(lsn, 1, Deadline()).code(), Code::kOutOfRange);
    EXPECT_EQ(log().Cleanup(lsn).code(), Code::kOutOfRange);
    EXPECT_EQ(log().CleanupThrough(lsn).code(), Code::kOutOfRange);
    EXPECT_EQ(log().WaitDurable(lsn, Deadline()).code(), Code::kOutOfRange);
  }
}

TEST_F(RingLogTest, CleaningTwiceIsNotFound) {
  for (int i = 0; i < 3; ++i) harness_.Append("x");
  ASSERT_TRUE(log().Cleanup(Lsn(2)).ok());
  EXPECT_EQ(log().Cleanup(Lsn(2)).code(), Code::kNotFound);
  ASSERT_TRUE(log().Cleanup(Lsn(1)).ok());
  EXPECT_EQ(log().head_lsn(), Lsn(3));
  EXPECT_EQ(log().Cleanup(Lsn(1)).code(), Code::kNotFound);
  EXPECT_TRUE(log().CleanupThrough(Lsn(1)).ok());
}

// P-L10: a record that is not durable can't be cleaned.
TEST_F(RingLogTest, CleaningAnExposedRecordIsRefused) {
  ReservedRecord record = ReserveFilled("exposed");
  ASSERT_TRUE(log().Complete(record).ok());
  EXPECT_EQ(log().Cleanup(record.lsn).code(), Code::kFailedPrecondition);
  EXPECT_EQ(log().CleanupThrough(record.lsn).code(), Code::kFailedPrecondition);
}

// RCL1 (reclaimer.h): the head moves over the contiguous cleaned prefix only.
TEST_F(RingLogTest, HeadPassesTheCleanedPrefix) {
  for (int i = 0; i < 5; ++i) harness_.Append("x");
  ASSERT_TRUE(log().Cleanup(Lsn(2)).ok());
  ASSERT_TRUE(log().Cleanup(Lsn(4)).ok());
  EXPECT_EQ(log().head_lsn(), Lsn(1));
  ASSERT_TRUE(log().Cleanup(Lsn(1)).ok());
  EXPECT_EQ(log().head_lsn(), Lsn(3));
}

TEST_F(RingLogTest, CleanupFindsRecordsFarFromTheHead) {
  while (log().next_lsn() < Lsn(4045)) {
    harness_.Append("");
    if (log().next_lsn().value % 20 == 0) {
      ASSERT_TRUE(log().CleanupThrough(log().durable_lsn() - 15).ok());
    }
  }
  for (const uint64_t lsn : {4043, 4032, 4031, 4033, 4026}) {
    EXPECT_TRUE(log().Cleanup(Lsn(lsn)).ok()) << lsn;
  }
}

// P-L11: the superline update is the commit point; LSNs go on.
TEST_F(RingLogTest, CleanupAllIsFinal) {
  harness_.Append("gone");
  ReservedRecord exposed = ReserveFilled("gone too");
  ASSERT_TRUE(log().Complete(exposed).ok());
  ASSERT_TRUE(log().CleanupAll().ok());
  EXPECT_EQ(log().head_lsn(), Lsn(3));
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre());
  EXPECT_EQ(log().next_lsn(), Lsn(3));
  harness_.Append("new");
  EXPECT_THAT(RecoverAfterPowerCut(), ElementsAre("new"));
}

TEST_F(RingLogTest, CleanupAllOfAnEmptyLogIsFine) {
  EXPECT_TRUE(log().CleanupAll().ok());
  EXPECT_TRUE(log().CleanupAll().ok());
}

TEST_F(RingLogTest, CleanupAllWithOpenReservationsIsRefused) {
  const ReservedRecord open = Reserve(1);
  const absl::Status refused = log().CleanupAll();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("before cleaning everything"));
  EXPECT_EQ(log().Close().code(), Code::kFailedPrecondition);
  log().Abort(open);
  EXPECT_TRUE(log().CleanupAll().ok());
}

// P-S1: whatever an update changes, it is told from the one before.
TEST_F(RingLogTest, EverySuperlineUpdateHasANumberOfItsOwn) {
  uint64_t last = 0;
  for (int i = 0; i < 4; ++i) {
    harness_.Append("x");
    ASSERT_TRUE(log().CleanupAll().ok());
    const CellState cell = ReadCell(SuperlinePlace(harness_.region()));
    EXPECT_TRUE(cell.copies_agree());
    EXPECT_GT(cell.copies[0].seq, last);
    last = cell.copies[0].seq;
  }
}

TEST_F(RingLogTest, ClosedLogRefusesEverything) {
  harness_.Append("x");
  ASSERT_TRUE(log().Close().ok());
  EXPECT_EQ(log().Close().code(), Code::kFailedPrecondition);
  EXPECT_EQ(log().Reserve(1, Deadline()).status().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(log().Force(Lsn(1), 1, Deadline()).code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(log().Cleanup(Lsn(1)).code(), Code::kFailedPrecondition);
  EXPECT_EQ(log().CleanupAll().code(), Code::kFailedPrecondition);
}

// P-H20, RL4 (ring_log.h): after a failed fence nothing is acknowledged,
// whatever call it hits; and nobody hangs.
TEST_F(RingLogTest, FailureOfTheMediumSticks) {
  for (uint64_t fence = 1; fence <= 10; ++fence) {
    LogHarness harness({});
    ASSERT_TRUE(harness.Open().ok());
    auto& log = harness.log();
    harness.pmem().FailFence(fence);
    absl::Status status;
    const std::span<const std::byte> part = AsBytes("x");
    for (int i = 0; i < 4 && status.ok(); ++i) {
      status = log.Append({&part, 1}, 1, Deadline()).status();
    }
    if (status.ok()) {
      auto record = log.Reserve(1, Deadline());
      ASSERT_TRUE(log.Complete(*record).ok());
      status = log.Force(record->lsn, 1, Deadline());
    }
    if (status.ok()) status = log.CleanupAll();
    if (status.ok()) status = log.Close();
    ASSERT_EQ(status.code(), Code::kUnavailable) << "fence " << fence;
    // Not the same fence fails again: the log itself refuses.
    ASSERT_FALSE(log.Append({&part, 1}, 1, Deadline()).ok());
    ASSERT_FALSE(log.Close().ok());
  }
}

// FC3, FC4 (forcer.h): the watermark always names what an earlier fence
// covered.
TEST_F(RingLogTest, WatermarkFollowsOneBatchBehind) {
  for (int i = 0; i < 5; ++i) {
    harness_.Append("x");
    const auto pair = ReadWatermarks(harness_.region(),
                                     harness_.opened().start.superline.log_id);
    EXPECT_EQ(pair.Proven(Epoch(1)), log().durable_lsn() - 1);
  }
  ASSERT_TRUE(log().Close().ok());
  const auto pair = ReadWatermarks(harness_.region(),
                                   harness_.opened().start.superline.log_id);
  EXPECT_EQ(pair.lines[0]->lsn, Lsn(5));
  EXPECT_EQ(pair.lines[1]->lsn, Lsn(5));
}

using RingLogDeathTest = RingLogTest;

TEST_F(RingLogDeathTest, LogWithOpenReservationMustNotDie) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        LogHarness harness({});
        (void)harness.Open();
        (void)harness.log().Reserve(1, Deadline());
        harness.Drop();
      },
      "must not outlive");
}

}  // namespace
}  // namespace alpheus
