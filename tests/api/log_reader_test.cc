// SPDX-License-Identifier: Apache-2.0
#include "alpheus/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "tests/testing/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Code = absl::StatusCode;

class LogReaderTest : public ::testing::Test {
 protected:
  LogReaderTest() { EXPECT_TRUE(Log::Format({path_, 1 << 20}).ok()); }

  std::unique_ptr<Log> OpenLog() {
    // What the log itself writes after a while would be seen.
    auto log = Log::Open({.path = path_, .idle_force_us = 0});
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  void AppendAndClose(std::vector<std::string> texts) {
    const std::unique_ptr<Log> log = OpenLog();
    for (const std::string& text : texts) ASSERT_TRUE(log->Append(text).ok());
    ASSERT_TRUE(log->Close().ok());
  }
  std::unique_ptr<LogReader> OpenReader() {
    auto reader = LogReader::Open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  absl::Status Read(std::vector<std::string>* payloads) {
    return OpenReader()->ForEach([&](const ReaderRecord& record) {
      offsets_.push_back(record.offset);
      payloads->emplace_back(AsText(record.payload));
      return absl::OkStatus();
    });
  }
  void Flip(uint64_t offset) {
    auto bytes = testing::ReadFile(path_);
    bytes[offset] ^= std::byte{1};
    testing::WriteFile(path_, bytes);
  }

  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("log");
  std::vector<uint64_t> offsets_;
};

TEST_F(LogReaderTest, ReaderOfADeadLogChangesNoByte) {
  AppendAndClose({"a", "b"});
  const auto before = testing::ReadFile(path_);
  std::vector<std::string> payloads;
  EXPECT_TRUE(Read(&payloads).ok());
  EXPECT_THAT(payloads, ElementsAre("a", "b"));
  EXPECT_TRUE(OpenReader()->Verify().status.ok());
  EXPECT_EQ(testing::ReadFile(path_), before);
}

// Beside a live writer only what is proven durable is shown: the watermark is
// one batch behind.
TEST_F(LogReaderTest, ReaderOfALiveLogSeesDurableRecords) {
  const std::unique_ptr<Log> log = OpenLog();
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(log->Append(text).ok());
  auto exposed = log->Reserve(1);
  ASSERT_TRUE(log->Complete(*std::move(exposed)).ok());
  std::vector<std::string> payloads;
  EXPECT_TRUE(Read(&payloads).ok());
  EXPECT_TRUE(OpenReader()->info().has_writer);
  EXPECT_THAT(payloads, ElementsAre("a", "b", "c"));
}

TEST_F(LogReaderTest, StatesAreTold) {
  {
    const std::unique_ptr<Log> log = OpenLog();
    for (const char* text : {"a", "b", "c"})
      ASSERT_TRUE(log->Append(text).ok());
    log->Reserve(1)->Abort();
    ASSERT_TRUE(log->Cleanup(Lsn(2)).ok());
    ASSERT_TRUE(log->Close().ok());
  }
  std::vector<std::string> states;
  ASSERT_TRUE(OpenReader()
                  ->ForEach([&](const ReaderRecord& record) {
                    states.emplace_back(RecordStateName(record.state));
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(states, ElementsAre("durable", "cleaned", "durable", "aborted"));
}

TEST_F(LogReaderTest, VisitorEndsTheIteration) {
  AppendAndClose({"a", "b"});
  int calls = 0;
  EXPECT_EQ(OpenReader()
                ->ForEach([&](const ReaderRecord&) {
                  ++calls;
                  return absl::CancelledError();
                })
                .code(),
            Code::kCancelled);
  EXPECT_EQ(calls, 1);
}

// After a clean close every bit of a record or a header counts.
TEST_F(LogReaderTest, DamageIsToldAfterEverythingBeforeIt) {
  AppendAndClose({"a", "b", "c"});
  std::vector<std::string> payloads;
  ASSERT_TRUE(Read(&payloads).ok());
  Flip(offsets_[1] + 48);
  payloads.clear();
  const absl::Status status = Read(&payloads);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("LSN 2"), HasSubstr(std::to_string(offsets_[1]))));
  EXPECT_THAT(payloads, ElementsAre("a"));
  const VerifyReport report = OpenReader()->Verify();
  EXPECT_EQ(report.status.code(), Code::kDataLoss);
  EXPECT_EQ(report.verdict, "corrupt");
  EXPECT_EQ(report.end_lsn, Lsn(1));
}

TEST_F(LogReaderTest, SingleBadCopyOfAClosedLogIsToldAfterAllRecords) {
  AppendAndClose({"a"});
  Flip(4096 + 40);
  std::vector<std::string> payloads;
  EXPECT_EQ(Read(&payloads).code(), Code::kDataLoss);
  EXPECT_THAT(payloads, ElementsAre("a"));
  EXPECT_EQ(OpenReader()->Verify().status.code(), Code::kDataLoss);
  OpenLog();  // makes it whole
  payloads.clear();
  EXPECT_TRUE(Read(&payloads).ok());
}

TEST_F(LogReaderTest, SalvageGoesOnBehindDamage) {
  AppendAndClose({"a", "b", "c", "d", "e"});
  std::vector<std::string> payloads;
  ASSERT_TRUE(Read(&payloads).ok());
  Flip(offsets_[1] + 48);  // payload of 2
  Flip(offsets_[3]);       // header of 4
  Flip(offsets_[4]);       // header of 5, the last
  payloads.clear();
  std::vector<std::pair<uint64_t, uint64_t>> lost;
  EXPECT_TRUE(OpenReader()
                  ->ForEachSalvageable(
                      [&](const ReaderRecord& record) {
                        payloads.emplace_back(AsText(record.payload));
                        return absl::OkStatus();
                      },
                      [&](Lsn first, Lsn behind) {
                        lost.emplace_back(first.value, behind.value);
                      })
                  .ok());
  EXPECT_THAT(payloads, ElementsAre("a", "c"));
  EXPECT_THAT(lost, ElementsAre(Pair(2, 3), Pair(4, 0)));
}

TEST_F(LogReaderTest, SalvageReadsWhatOpenRefuses) {
  AppendAndClose({"a", "b", "c"});
  const auto whole = testing::ReadFile(path_);
  const auto salvage = [this] {
    std::vector<std::string> payloads;
    const auto reader = LogReader::OpenForSalvage(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return payloads;
    EXPECT_TRUE((*reader)
                    ->ForEachSalvageable(
                        [&](const ReaderRecord& record) {
                          payloads.emplace_back(AsText(record.payload));
                          return absl::OkStatus();
                        },
                        [&](Lsn, Lsn) { payloads.emplace_back("(gap)"); })
                    .ok());
    return payloads;
  };
  // Neither watermark line.
  Flip(8192);
  Flip(12288);
  EXPECT_EQ(LogReader::Open(path_).status().code(), Code::kDataLoss);
  EXPECT_THAT(salvage(), ElementsAre("a", "b", "c"));
  // Nor the second record: only a later record says that there was one.
  std::vector<std::byte> damaged = testing::ReadFile(path_);
  const uint64_t ring_offset = 106496;
  damaged[ring_offset + 64] ^= std::byte{1};
  testing::WriteFile(path_, damaged);
  EXPECT_THAT(salvage(), ElementsAre("a", "(gap)", "c"));
  // A file that ends in the middle of the ring.
  damaged = whole;
  damaged.resize(ring_offset + 128);
  testing::WriteFile(path_, damaged);
  EXPECT_EQ(LogReader::Open(path_).status().code(), Code::kDataLoss);
  EXPECT_THAT(salvage(), ElementsAre("a", "b", "(gap)"));
  // No superline: nothing can be read.
  damaged = whole;
  damaged[30] ^= std::byte{1};
  damaged[4096 + 30] ^= std::byte{1};
  testing::WriteFile(path_, damaged);
  EXPECT_EQ(LogReader::OpenForSalvage(path_).status().code(), Code::kDataLoss);
  damaged.resize(100);
  testing::WriteFile(path_, damaged);
  EXPECT_EQ(LogReader::OpenForSalvage(path_).status().code(), Code::kDataLoss);
}

TEST_F(LogReaderTest, SalvageBesideAWriterIsRefused) {
  const std::unique_ptr<Log> log = OpenLog();
  const auto reader = LogReader::OpenForSalvage(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)
                ->ForEachSalvageable(
                    [](const ReaderRecord&) { return absl::OkStatus(); },
                    [](Lsn, Lsn) {})
                .code(),
            Code::kFailedPrecondition);
}

// A reader that was opened before the writer notices it.
TEST_F(LogReaderTest, ReaderNoticesAWriterThatComesLater) {
  const std::unique_ptr<LogReader> reader = OpenReader();
  EXPECT_FALSE(reader->info().has_writer);
  const std::unique_ptr<Log> log = OpenLog();
  ASSERT_TRUE(log->Append("a").ok());
  ASSERT_TRUE(log->Append("b").ok());
  int records = 0;
  EXPECT_TRUE(reader
                  ->ForEach([&](const ReaderRecord&) {
                    ++records;
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_TRUE(reader->info().has_writer);
  EXPECT_GE(records, 1);
}

// A reader beside a writer that wraps the ring all the time sees whole records
// in order or is told that it was overtaken; never a torn or wrong one.
TEST_F(LogReaderTest, ReaderBesideABusyWriterNeverSeesATornRecord) {
  const std::unique_ptr<Log> log = OpenLog();
  std::atomic<bool> stop{false};
  std::jthread writer([&] {
    uint64_t n = 0;
    while (!stop) {
      const std::string text(100 + n % 3000, static_cast<char>('a' + n % 26));
      const auto lsn = log->Append(text);
      if (lsn.ok()) {
        ++n;
      } else {
        ASSERT_EQ(lsn.status().code(), Code::kResourceExhausted);
        ASSERT_TRUE(log->CleanupThrough(log->durable_lsn() - 10).ok());
      }
    }
  });
  while (log->durable_lsn() < Lsn(100)) std::this_thread::yield();
  int complete = 0;
  for (int pass = 0; pass < 200; ++pass) {
    const auto reader = LogReader::Open(path_);
    ASSERT_TRUE(reader.ok()) << reader.status();
    Lsn last;
    const absl::Status status =
        (*reader)->ForEach([&](const ReaderRecord& record) {
          EXPECT_GT(record.lsn, last);
          last = record.lsn;
          const std::string_view text = AsText(record.payload);
          EXPECT_EQ(text.find_first_not_of(text[0]), std::string_view::npos);
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok() || status.code() == Code::kOutOfRange) << status;
    const absl::Status verified = (*reader)->Verify().status;
    EXPECT_TRUE(verified.ok() || verified.code() == Code::kOutOfRange)
        << verified;
    complete += status.ok() ? 1 : 0;
  }
  stop = true;
  RecordProperty("complete_passes", complete);
}

}  // namespace
}  // namespace alpheus
