// SPDX-License-Identifier: Apache-2.0
#include "alpheus/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/pmem/region.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Code = absl::StatusCode;

class LogReaderTest : public ::testing::Test {
 protected:
  LogReaderTest() { EXPECT_TRUE(Log::Format({path_, 1 << 20}).ok()); }

  std::unique_ptr<Log> OpenLog() {
    // Without the log's own thread: after a while it proves more records, and
    // a reader would show them.
    auto log = Log::Open({.path = path_, .idle_force_us = 0});
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  std::unique_ptr<Log> OpenLogWith(const std::vector<std::string>& texts) {
    std::unique_ptr<Log> log = OpenLog();
    for (const std::string& text : texts) {
      EXPECT_TRUE(log->Append(text).ok());
    }
    return log;
  }
  void AppendAndClose(const std::vector<std::string>& texts) {
    ASSERT_TRUE(OpenLogWith(texts)->Close().ok());
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
  // The payloads that a pass from `from` on shows.
  std::vector<std::string> ReadFrom(LogReader& reader, Lsn from) {
    std::vector<std::string> payloads;
    const absl::Status read =
        reader.ForEachFrom(from, [&](const ReaderRecord& record) {
          payloads.emplace_back(AsText(record.payload));
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read;
    return payloads;
  }
  // In place: a writer has the file mapped.
  void Flip(uint64_t offset) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
    ASSERT_TRUE(file.flush().good());
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
                      [&](Lsn first, Lsn after) {
                        lost.emplace_back(first.value, after.value);
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

TEST_F(LogReaderTest, PassBeginsWhereItIsAsked) {
  AppendAndClose({"a", "b", "c"});
  const std::unique_ptr<LogReader> reader = OpenReader();
  EXPECT_THAT(ReadFrom(*reader, Lsn(0)), ElementsAre("a", "b", "c"));
  EXPECT_THAT(ReadFrom(*reader, Lsn(2)), ElementsAre("b", "c"));
  EXPECT_THAT(ReadFrom(*reader, Lsn(4)), IsEmpty());
  EXPECT_THAT(ReadFrom(*reader, Lsn(9)), IsEmpty());
}

// Damage in what was shown is not seen again, as nobody looks there.
TEST_F(LogReaderTest, PassBesideAWriterReadsOnlyWhatIsNew) {
  std::vector<std::string> payloads;
  AppendAndClose({"a"});
  ASSERT_TRUE(Read(&payloads).ok());
  const std::unique_ptr<Log> log = OpenLog();
  for (const char* text : {"b", "c"}) ASSERT_TRUE(log->Append(text).ok());
  const std::unique_ptr<LogReader> reader = OpenReader();
  EXPECT_THAT(ReadFrom(*reader, Lsn(0)), ElementsAre("a", "b"));
  for (const char* text : {"d", "e"}) ASSERT_TRUE(log->Append(text).ok());
  Flip(offsets_[0]);  // of the header of "a"
  EXPECT_THAT(ReadFrom(*reader, Lsn(3)), ElementsAre("c", "d"));
  EXPECT_THAT(ReadFrom(*reader, Lsn(5)), IsEmpty());
  ASSERT_TRUE(log->Append("f").ok());
  EXPECT_THAT(ReadFrom(*reader, Lsn(5)), ElementsAre("e"));
  const auto show_none = [](const ReaderRecord&) { return absl::OkStatus(); };
  EXPECT_EQ(reader->ForEach(show_none).code(), Code::kDataLoss);
  EXPECT_EQ(OpenReader()->ForEachFrom(Lsn(5), show_none).code(),
            Code::kDataLoss);
}

// A pass that was ended goes on with the record that ended it.
TEST_F(LogReaderTest, RecordWhoseVisitFailedIsShownAgain) {
  const std::unique_ptr<Log> log = OpenLogWith({"a", "b", "c"});
  const std::unique_ptr<LogReader> reader = OpenReader();
  EXPECT_EQ(reader
                ->ForEach([](const ReaderRecord& record) {
                  return record.lsn == Lsn(2) ? absl::CancelledError()
                                              : absl::OkStatus();
                })
                .code(),
            Code::kCancelled);
  EXPECT_THAT(ReadFrom(*reader, Lsn(2)), ElementsAre("b"));
}

TEST_F(LogReaderTest, PassGoesOnWhenAnotherWriterComes) {
  std::unique_ptr<Log> log = OpenLogWith({"a", "b", "c"});
  const std::unique_ptr<LogReader> reader = OpenReader();
  EXPECT_THAT(ReadFrom(*reader, Lsn(0)), ElementsAre("a", "b"));
  ASSERT_TRUE(log->Close().ok());
  log.reset();
  EXPECT_THAT(ReadFrom(*reader, Lsn(3)), ElementsAre("c"));
  log = OpenLog();
  ASSERT_TRUE(log->Append("d").ok());
  ASSERT_TRUE(log->Append("e").ok());
  EXPECT_THAT(ReadFrom(*reader, Lsn(4)), ElementsAre("d"));
}

// An image from before is put into the file: its next epoch has the number of
// the one in which the last pass ended, and other records.
TEST_F(LogReaderTest, PassDoesNotGoOnInAnotherEpochOfThatNumber) {
  const std::vector<std::byte> blank = testing::ReadFile(path_);
  std::unique_ptr<Log> log = OpenLogWith({"a", "b", "c"});
  const std::unique_ptr<LogReader> reader = OpenReader();
  EXPECT_THAT(ReadFrom(*reader, Lsn(0)), ElementsAre("a", "b"));
  ASSERT_TRUE(log->Close().ok());
  log.reset();
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  file.write(reinterpret_cast<const char*>(blank.data()),
             static_cast<std::streamsize>(blank.size()));
  ASSERT_TRUE(file.flush().good());
  log = OpenLog();
  const std::string longer(1000, 'x');
  for (const char* text : {"d", "e", "f", "g"}) {
    ASSERT_TRUE(log->Append(text + longer).ok());
  }
  EXPECT_THAT(ReadFrom(*reader, Lsn(3)), ElementsAre("f" + longer));
}

TEST_F(LogReaderTest, PassFromWhatWasCleanedIsToldTheHead) {
  const std::unique_ptr<Log> log = OpenLogWith({"a", "b", "c"});
  const std::unique_ptr<LogReader> reader = OpenReader();
  EXPECT_THAT(ReadFrom(*reader, Lsn(0)), ElementsAre("a", "b"));
  const std::string large(200'000, 'x');
  for (int i = 0; i < 10; ++i) {  // more than a lap
    ASSERT_TRUE(log->CleanupThrough(log->durable_lsn() - 1).ok());
    ASSERT_TRUE(log->Append(large).ok());
  }
  const absl::Status read = reader->ForEachFrom(
      Lsn(3), [](const ReaderRecord&) { return absl::OkStatus(); });
  EXPECT_EQ(read.code(), Code::kOutOfRange);
  const Lsn head = reader->info().head_lsn;
  EXPECT_GT(head, Lsn(3));
  EXPECT_THAT(std::string(read.message()),
              AllOf(HasSubstr("LSN 3 was cleaned"),
                    HasSubstr(absl::StrCat("starts at LSN ", head.value))));
  EXPECT_THAT(ReadFrom(*reader, head), Each(large));
}

// LR4: nothing is lost, and nothing of another lap is shown, when a log is
// opened in the middle of a look at it, cleaned, and filled once more.
TEST_F(LogReaderTest, WriterWhoComesMeanwhileIsNoDamage) {
  constexpr int kRecords = 5000;  // more than between two reports of progress
  AppendAndClose(std::vector<std::string>(kRecords, "text"));
  std::unique_ptr<Log> log;
  const VerifyReport report = OpenReader()->Verify([&](double) {
    if (log != nullptr) return;
    log = OpenLog();
    ASSERT_TRUE(log->CleanupThrough(log->durable_lsn()).ok());
    const std::string text(1000, 'x');
    while (log->Append(text).ok()) {
    }
  });
  ASSERT_NE(log, nullptr);
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.verdict, "complete");
  EXPECT_GT(report.end_lsn, Lsn(kRecords));
}

// In the middle of each pass another one opens the log, and leaves.
TEST_F(LogReaderTest, WritersWhoComeAgainAndAgainAreToldOf) {
  AppendAndClose(std::vector<std::string>(5000, "text"));
  int passes = 0;
  const VerifyReport report = OpenReader()->Verify([&](double) {
    ++passes;
    ASSERT_TRUE(OpenLog()->Close().ok());
  });
  EXPECT_EQ(report.status.code(), Code::kOutOfRange) << report.status;
  EXPECT_THAT(std::string(report.status.message()), HasSubstr("Read it again"));
  EXPECT_EQ(passes, 5 + 1);  // and once at the end
}

// Beside a writer that came after the pass had begun, damage is told by the
// next one.
TEST_F(LogReaderTest, PassThatWasOvertakenByAnOpeningIsToBeRepeated) {
  AppendAndClose({"a", "b", "c"});
  std::vector<std::string> payloads;
  ASSERT_TRUE(Read(&payloads).ok());
  std::unique_ptr<Log> log;
  const absl::Status read =
      OpenReader()->ForEach([&](const ReaderRecord& record) {
        if (record.lsn != Lsn(1)) return absl::OkStatus();
        log = OpenLog();
        Flip(offsets_[1] + kRecordHeaderBytes);
        return absl::OkStatus();
      });
  EXPECT_EQ(read.code(), Code::kOutOfRange) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("opened the log while"));
  EXPECT_EQ(Read(&payloads).code(), Code::kDataLoss);
}

// Damage after which nothing can be read is told, whenever it came.
TEST_F(LogReaderTest, DamageThatCameAfterAWriterIsTold) {
  AppendAndClose({"a"});
  const std::unique_ptr<LogReader> reader = OpenReader();
  AppendAndClose({"b"});
  Flip(kWatermarkOffset);
  Flip(kWatermarkOffset + kPageBytes);
  const VerifyReport report = reader->Verify();
  EXPECT_EQ(report.status.code(), Code::kDataLoss) << report.status;
  EXPECT_EQ(report.verdict, "corrupt");
  EXPECT_EQ(
      reader->ForEach([](const ReaderRecord&) { return absl::OkStatus(); })
          .code(),
      Code::kDataLoss);
}

TEST_F(LogReaderTest, RegionThatIsBeingFormattedIsNoDamage) {
  const std::string path = directory_.File("new");
  const auto region = Region::Create(path, 1 << 20);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(LogReader::Open(path).status().code(), Code::kUnavailable);
  ASSERT_EQ(truncate(path.c_str(), 0), 0);  // as it was before it got its size
  EXPECT_EQ(LogReader::Open(path).status().code(), Code::kUnavailable);
}

// Records of one letter each, for lap after lap of the ring.
void AppendAndCleanUntil(Log& log, const std::atomic<bool>& stop) {
  uint64_t n = 0;
  while (!stop) {
    const std::string text(100 + n % 3000, static_cast<char>('a' + n % 26));
    const auto lsn = log.Append(text);
    if (lsn.ok()) {
      ++n;
    } else {
      ASSERT_EQ(lsn.status().code(), Code::kResourceExhausted);
      ASSERT_TRUE(log.CleanupThrough(log.durable_lsn() - 10).ok());
    }
  }
}

void ExpectWhole(const ReaderRecord& record) {
  const std::string_view text = AsText(record.payload);
  EXPECT_EQ(text.find_first_not_of(text[0]), std::string_view::npos);
}

// A reader beside a writer that wraps the ring all the time sees whole records
// in order or is told that it was overtaken; never a torn or wrong one.
TEST_F(LogReaderTest, ReaderBesideABusyWriterNeverSeesATornRecord) {
  const std::unique_ptr<Log> log = OpenLog();
  std::atomic<bool> stop{false};
  std::jthread writer([&] { AppendAndCleanUntil(*log, stop); });
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
          ExpectWhole(record);
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

// The same by one reader, which goes on where it ended: each record once, none
// left out but those that it is told were cleaned.
TEST_F(LogReaderTest, FollowerOfABusyWriterMissesNothingUnlessItIsTold) {
  const std::unique_ptr<Log> log = OpenLog();
  std::atomic<bool> stop{false};
  std::jthread writer([&] { AppendAndCleanUntil(*log, stop); });
  while (log->durable_lsn() < Lsn(100)) std::this_thread::yield();
  const std::unique_ptr<LogReader> reader = OpenReader();
  Lsn next{0};
  int shown = 0;
  for (int pass = 0; pass < 2000; ++pass) {
    const absl::Status read =
        reader->ForEachFrom(next, [&](const ReaderRecord& record) {
          EXPECT_TRUE(next == Lsn(0) || record.lsn == next) << record.lsn;
          next = record.lsn + 1;
          ExpectWhole(record);
          ++shown;
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok() || read.code() == Code::kOutOfRange) << read;
    if (!read.ok() && next < reader->info().head_lsn) next = Lsn(0);
  }
  stop = true;
  EXPECT_GT(shown, 0);
}

}  // namespace
}  // namespace alpheus
