// SPDX-License-Identifier: Apache-2.0
#include "alpheus/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "log/base/bytes.h"
#include "log/format/record.h"
#include "log/pmem/counters.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    const auto id = Log::Format({path_, 1 << 20});
    EXPECT_TRUE(id.ok()) << id.status();
    log_id_ = *id;
    Open();
  }
  void Open() {
    log_.reset();
    auto log = Log::Open({.path = path_, .idle_force_us = 0});
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  std::vector<std::string> Recovered() {
    std::vector<std::string> payloads;
    EXPECT_TRUE(log_->ForEachRecovered([&](const RecoveredRecord& record) {
                      payloads.emplace_back(AsText(record.payload));
                      return absl::OkStatus();
                    })
                    .ok());
    return payloads;
  }

  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("log");
  Uuid log_id_;
  std::unique_ptr<Log> log_;
};

TEST_F(LogTest, AppendedRecordsAreRecoveredInOrder) {
  for (const char* text : {"one", "two", "three"}) {
    ASSERT_TRUE(log_->Append(text).ok());
  }
  Open();
  EXPECT_THAT(Recovered(), ElementsAre("one", "two", "three"));
  EXPECT_TRUE(log_->report().was_closed_cleanly);
  EXPECT_EQ(log_->report().records, 3u);
  EXPECT_EQ(log_->report().log_id, log_id_);
  EXPECT_EQ(log_->report().epoch, Epoch(2));
  EXPECT_EQ(log_->report().moments.began_ns, 0);
  EXPECT_EQ(log_->report().moments.opened_ns, 0);
}

TEST_F(LogTest, AppendInRingIsDurableAndTellsWhereThePayloadIs) {
  const std::string first = "head ";
  const std::string second(1000, 'b');
  const std::vector<std::span<const std::byte>> parts = {
      std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
  for (uint64_t lsn = 1; lsn <= 3; ++lsn) {
    const auto record = log_->AppendInRing(parts);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->lsn, Lsn(lsn));
    EXPECT_EQ(log_->durable_lsn(), Lsn(lsn));
    EXPECT_EQ(AsText(record->payload), first + second);
  }
  const std::string large(log_->payload_bytes_max() + 1, 'l');
  const auto refused =
      log_->AppendInRing(std::vector{std::as_bytes(std::span(large))});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
}

// Every name of the paper's Table 2, with its meaning.
TEST_F(LogTest, PaperInterfaceWorksAsOneSequence) {
  auto reserved = log_->Reserve(10);
  ASSERT_TRUE(reserved.ok());
  ASSERT_TRUE(log_->Copy(*reserved, 0, AsBytes("01234")).ok());
  ASSERT_TRUE(log_->Copy(*reserved, 5, AsBytes("56789")).ok());
  const Lsn lsn = reserved->lsn();  // getLSN
  const auto id = log_->Complete(*std::move(reserved));
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(*id, lsn);
  EXPECT_EQ(log_->Exposed(), 1u);
  ASSERT_TRUE(log_->Force(*id, {.frequency = 1}).ok());
  EXPECT_EQ(log_->Exposed(), 0u);
  ASSERT_TRUE(log_->Append("appended").ok());
  Open();
  std::vector<std::string> seen;
  RecoveredRange records = log_->Recovered();
  for (const RecoveredRecord& record : records) {
    seen.emplace_back(AsText(record.payload));
  }
  ASSERT_TRUE(records.status().ok());
  EXPECT_THAT(seen, ElementsAre("0123456789", "appended"));
  ASSERT_TRUE(log_->Cleanup(lsn).ok());
  EXPECT_THAT(Recovered(), ElementsAre("appended"));
  ASSERT_TRUE(log_->CleanupAll().ok());
  EXPECT_THAT(Recovered(), IsEmpty());
}

// A caller that cleans while it iterates may overwrite records that it has not
// seen yet: that is an error, never another record's bytes.
TEST_F(LogTest, IterationNeverShowsWhatWasOverwritten) {
  const std::string before(1000, 'a');
  const std::string after(1000, 'b');
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(log_->Append(before).ok());
  Open();
  int seen = 0;
  const absl::Status visited =
      log_->ForEachRecovered([&](const RecoveredRecord& record) {
        EXPECT_EQ(AsText(record.payload), before) << "LSN " << record.lsn;
        if (++seen > 1) return absl::OkStatus();
        EXPECT_TRUE(log_->CleanupAll().ok());
        while (log_->Append(after).ok()) {
        }
        return absl::OkStatus();
      });
  EXPECT_EQ(visited.code(), Code::kDataLoss) << visited;
  EXPECT_EQ(seen, 1);
}

// P-H11: between the scan and the iteration a record may go bad.
TEST_F(LogTest, RecordThatGoesBadOnceRecoveredIsAnErrorNotTheEnd) {
  for (const char* text : {"one", "two", "three"}) {
    ASSERT_TRUE(log_->Append(text).ok());
  }
  Open();
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  const std::string image((std::istreambuf_iterator<char>(file)),
                          std::istreambuf_iterator<char>());
  const size_t payload = image.find("two");
  ASSERT_NE(payload, std::string::npos);
  file.seekp(static_cast<std::streamoff>(payload - kRecordHeaderBytes));
  file.put(static_cast<char>(image[payload - kRecordHeaderBytes] ^ 1));
  ASSERT_TRUE(file.flush());

  std::vector<std::string> seen;
  const absl::Status status =
      log_->ForEachRecovered([&seen](const RecoveredRecord& record) {
        seen.emplace_back(AsText(record.payload));
        return absl::OkStatus();
      });
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("LSN 2"));
  EXPECT_THAT(seen, ElementsAre("one"));
}

TEST_F(LogTest, DroppedReservationIsAbortedAndPassedOver) {
  ASSERT_TRUE(log_->Append("first").ok());
  {
    const auto dropped = log_->Reserve(100);
    ASSERT_TRUE(dropped.ok());
  }
  auto moved_over = log_->Reserve(100);
  ASSERT_TRUE(moved_over.ok());
  moved_over = log_->Reserve(4);
  ASSERT_TRUE(moved_over.ok());
  EXPECT_EQ(moved_over->lsn(), Lsn(4));
  std::memcpy(moved_over->payload().data(), "kept", 4);
  ASSERT_TRUE(log_->Complete(*std::move(moved_over)).ok());
  ASSERT_TRUE(log_->Force(Lsn(4)).ok());
  Open();
  EXPECT_THAT(Recovered(), ElementsAre("first", "kept"));
  EXPECT_EQ(log_->report().aborted_records, 2u);
}

TEST_F(LogTest, ReservationThatIsNotOpenIsRefused) {
  auto reserved = log_->Reserve(4);
  ASSERT_TRUE(reserved.ok());
  Reservation moved = *std::move(reserved);
  EXPECT_FALSE(reserved->is_open());
  EXPECT_EQ(log_->Complete(*std::move(reserved)).status().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(log_->Copy(*reserved, 0, {}).code(), Code::kFailedPrecondition);
  auto other = Log::Open({.anonymous_bytes = 1 << 20});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*other)->Complete(std::move(moved)).status().code(),
            Code::kFailedPrecondition);
  EXPECT_TRUE(moved.is_open());
  moved.Abort();
  moved.Abort();
  EXPECT_FALSE(moved.is_open());
}

TEST_F(LogTest, PayloadIsAlignedForEveryFundamentalType) {
  for (size_t bytes = 0; bytes < 200; ++bytes) {
    auto reserved = log_->Reserve(bytes);
    ASSERT_TRUE(reserved.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(reserved->payload().data()) % 16, 0u);
    EXPECT_EQ(reserved->payload().size(), bytes);
  }
}

TEST_F(LogTest, SecondWriterIsRefused) {
  ASSERT_TRUE(log_->Append("x").ok());
  const auto second = Log::Open({.path = path_});
  EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(log_->Append("y").ok());
  Open();
  EXPECT_THAT(Recovered(), ElementsAre("x", "y"));
}

TEST_F(LogTest, OtherLogThanExpectedIsRefused) {
  log_.reset();
  EXPECT_EQ(
      Log::Open({.path = path_, .expected_log_id = Uuid{1, 1}}).status().code(),
      Code::kFailedPrecondition);
  EXPECT_TRUE(Log::Open({.path = path_, .expected_log_id = log_id_}).ok());
}

TEST_F(LogTest, OptionsOutOfRangeAreRefused) {
  EXPECT_EQ(Log::Open({.anonymous_bytes = 100}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Log::Open({.exposure_records_max = 1}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Log::Open({.exposure_records_max = (1u << 20) + 1}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Log::Open({.emulated_latency_ns = 1'000'001}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(log_->Append("x", {.frequency = 0}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(log_->Force(Lsn(1), {.frequency = 0}).code(),
            Code::kInvalidArgument);
}

TEST_F(LogTest, FormatTouchesNothingThatExists) {
  log_.reset();
  const auto before = testing::ReadFile(path_);
  EXPECT_EQ(Log::Format({path_, 1 << 20}).status().code(),
            Code::kAlreadyExists);
  EXPECT_EQ(testing::ReadFile(path_), before);
  EXPECT_EQ(Log::Format({path_ + "2", 1000}).status().code(),
            Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path_ + "2"));
}

TEST_F(LogTest, ForceWithFrequencySkipsOtherLsns) {
  std::vector<Lsn> lsns;
  for (int i = 0; i < 4; ++i) {
    auto record = log_->Reserve(1);
    lsns.push_back(*log_->Complete(*std::move(record)));
  }
  ASSERT_TRUE(log_->Force(lsns[0], {.frequency = 4}).ok());
  EXPECT_EQ(log_->durable_lsn(), Lsn(0));
  EXPECT_EQ(log_->Force(Lsn(5), {.frequency = 4}).code(), Code::kOutOfRange);
  ASSERT_TRUE(log_->Force(lsns[3], {.frequency = 4}).ok());
  EXPECT_EQ(log_->durable_lsn(), Lsn(4));
}

// Waiting does not force: another thread's force ends it.
TEST_F(LogTest, WaitDurableReturnsWhenAnotherThreadForces) {
  auto record = log_->Reserve(1);
  const Lsn lsn = *log_->Complete(*std::move(record));
  EXPECT_EQ(log_->WaitDurable(lsn, Deadline::AtNanos(1)).code(),
            Code::kDeadlineExceeded);
  std::jthread waiter([&] { EXPECT_TRUE(log_->WaitDurable(lsn).ok()); });
  EXPECT_TRUE(log_->Force(lsn).ok());
}

TEST_F(LogTest, ForceWaitsForAnotherThreadsReservation) {
  std::atomic<bool> reserved{false};
  std::jthread other([&] {
    auto record = log_->Reserve(1);
    ASSERT_TRUE(record.ok());
    reserved = true;
    reserved.notify_one();
    // Waits until the main thread is waiting, or is about to.
    while (log_->next_lsn() < Lsn(3)) std::this_thread::yield();
    ASSERT_TRUE(log_->Complete(*std::move(record)).ok());
  });
  reserved.wait(false);
  ASSERT_TRUE(log_->Append("behind").ok());
  EXPECT_EQ(log_->durable_lsn(), Lsn(2));
}

TEST_F(LogTest, AppendOnThisMediumCostsOneFence) {
  ASSERT_TRUE(log_->Append("warm up").ok());
  const PersistenceCounters before = ThreadPersistenceCounters();
  ASSERT_TRUE(log_->Append(std::string(64, 'x')).ok());
  const PersistenceCounters after = ThreadPersistenceCounters();
  EXPECT_EQ(after.fences - before.fences, 1u);
  EXPECT_EQ(after.flushed_lines - before.flushed_lines, 0u);
}

// Each waits for a disk there, also where the record is too large for the
// cache.
TEST_F(LogTest, RecordsForcedTogetherInAPlainFileShareTheirSystemCalls) {
  if (std::getenv("PMEM_IS_PMEM_FORCE") != nullptr) {
    GTEST_SKIP()
        << "skipped because files are declared to be persistent memory";
  }
  for (const size_t bytes : {64, 1024, 8192}) {
    const std::string record(bytes, 'x');
    const uint64_t before = ThreadPersistenceCounters().msyncs;
    for (int i = 0; i < 32; ++i) {
      ASSERT_TRUE(log_->Append(record, {.frequency = 8}).ok());
    }
    const uint64_t calls = ThreadPersistenceCounters().msyncs - before;
    EXPECT_GE(calls, 4u) << bytes;
    // Four batches, a watermark, and a batch that does not begin with its page.
    EXPECT_LE(calls, 6u) << bytes;
    ASSERT_TRUE(log_->CleanupThrough(log_->durable_lsn()).ok());
  }
}

TEST_F(LogTest, AnonymousLogWorksAndDiesWithItself) {
  auto log = Log::Open({.anonymous_bytes = 1 << 20});
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Append("x").ok());
}

TEST_F(LogTest, ReportReadsLikeASentence) {
  ASSERT_TRUE(log_->Append("x").ok());
  Open();
  EXPECT_EQ(log_->report().ToString(),
            "recovered LSN 1 to 1: 1 records, 1 bytes; complete, closed "
            "cleanly; epoch 1 -> 2");
}

using LogDeathTest = LogTest;

TEST_F(LogDeathTest, UnreadStatusOfRecoveredRecordsAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto log = Log::Open({.anonymous_bytes = 1 << 20});
        RecoveredRange records = (*log)->Recovered();
        for (const RecoveredRecord& record : records) (void)record;
      },
      "status of recovered records must be read");
}

}  // namespace
}  // namespace alpheus
