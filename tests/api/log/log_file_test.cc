// SPDX-License-Identifier: Apache-2.0
// The file of an open log that is removed, replaced or truncated: the log ends
// with an error that says so, within a second, and never by a signal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "tests/support/fixtures/one_step.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Code = absl::StatusCode;
namespace fs = std::filesystem;

constexpr uint64_t kRegionBytes = 1 << 20;

// How often a thread of the library has slept so far.
uint64_t SleepsOfService() {
  uint64_t sleeps = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string word;
    std::string name;
    while (status >> word) {
      if (word == "Name:") status >> name;
      uint64_t count = 0;
      if (name == "alpheus" && word == "voluntary_ctxt_switches:" &&
          status >> count) {
        sleeps += count;
      }
    }
  }
  return sleeps;
}

// By the service thread, and without one.
class LogFileTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  LogFileTest() {
    fs::create_directory(folder_);
    EXPECT_TRUE(
        Log::Format({.path = path_, .region_bytes = kRegionBytes}).ok());
    Open();
  }
  void Open() {
    auto log = Log::Open({.path = path_, .idle_force_us = GetParam()});
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    ASSERT_TRUE(log_->Append("before").ok());
  }

  // Until it has looked after the file, or is to at the next append: an idle
  // thread sleeps from one look to the next.
  void AwaitLook() const {
    const uint64_t before = SleepsOfService();
    const Deadline check = Deadline::In(std::chrono::milliseconds(501));
    const auto is_over = [&] {
      return GetParam() == 0 ? check.HasPassed(Clock::Real().NowNanos())
                             : SleepsOfService() >= before + 4;
    };
    const Deadline patience = testing::InPatience();
    while (!is_over()) {
      std::this_thread::yield();
      ASSERT_FALSE(patience.HasPassed(Clock::Real().NowNanos()))
          << "the thread of an idle log sleeps without looking";
    }
  }
  // Appends, and cleans, until that fails.
  absl::Status FailureOfAppends() {
    const Deadline deadline = testing::InPatience();
    const std::string record(100, 'x');
    while (!deadline.HasPassed(Clock::Real().NowNanos())) {
      const absl::StatusOr<Lsn> lsn = log_->Append(record);
      if (!lsn.ok()) return lsn.status();
      if (lsn->value % 1000 != 0) continue;
      const absl::Status cleaned = log_->CleanupThrough(*lsn);
      if (!cleaned.ok()) return cleaned;
    }
    return absl::OkStatus();
  }
  void ExpectEnd(const std::string& why) {
    const absl::Status failure = FailureOfAppends();
    EXPECT_EQ(failure.code(), Code::kUnavailable) << failure;
    EXPECT_THAT(std::string(failure.message()),
                AllOf(HasSubstr(path_), HasSubstr(why)));
    const absl::Status again = log_->Append("again").status();
    EXPECT_EQ(again.code(), Code::kUnavailable) << again;
    EXPECT_FALSE(log_->Close().ok());
  }

  testing::TempDirectory directory_;
  const std::string folder_ = directory_.File("folder");
  const std::string path_ = folder_ + "/log";
  std::unique_ptr<Log> log_;
};

INSTANTIATE_TEST_SUITE_P(Threads, LogFileTest, ::testing::Values(1000, 0),
                         [](const auto& interval) {
                           return interval.param == 0 ? "None" : "Service";
                         });

TEST_P(LogFileTest, RemovedFileEndsTheLog) {
  fs::remove(path_);
  ExpectEnd("removed");
}

TEST_P(LogFileTest, ReplacedFileEndsTheLogAndIsLeftAlone) {
  const std::string other = directory_.File("other");
  ASSERT_TRUE(Log::Format({.path = other, .region_bytes = kRegionBytes}).ok());
  const std::vector<std::byte> bytes = testing::ReadFile(other);
  fs::rename(other, path_);
  ExpectEnd("another file was put in its place");
  log_.reset();
  EXPECT_EQ(testing::ReadFile(path_), bytes);
}

TEST_P(LogFileTest, TruncatedFileEndsTheLogWithoutASignal) {
  for (const uint64_t bytes : {uint64_t{200'000}, uint64_t{1}, uint64_t{0}}) {
    ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(bytes)), 0);
    const absl::Status failure = FailureOfAppends();
    EXPECT_EQ(failure.code(), Code::kUnavailable) << failure;
    EXPECT_THAT(std::string(failure.message()),
                AllOf(HasSubstr(path_), HasSubstr("truncated")));
    EXPECT_FALSE(log_->Close().ok());
    log_.reset();
    fs::remove(path_);
    ASSERT_TRUE(
        Log::Format({.path = path_, .region_bytes = kRegionBytes}).ok());
    Open();
  }
}

TEST_P(LogFileTest, RenamedFolderEndsTheLog) {
  fs::rename(folder_, directory_.File("aside"));
  ExpectEnd("a folder above it");
}

TEST_P(LogFileTest, OlderCopyOfTheFolderEndsTheLogAndIsLeftAlone) {
  const std::string copy = directory_.File("copy");
  fs::copy(folder_, copy);
  testing::Exchange(folder_, copy);
  const std::vector<std::byte> bytes = testing::ReadFile(path_);
  ExpectEnd("another file was put in its place");
  log_.reset();
  EXPECT_EQ(testing::ReadFile(path_), bytes);
}

// The file is there, and as long as it was.
TEST_P(LogFileTest, FileThatIsZeroedAndExtendedAgainEndsTheLog) {
  if (GetParam() == 0) {
    ASSERT_EQ(truncate(path_.c_str(), 0), 0);
    ASSERT_EQ(truncate(path_.c_str(), kRegionBytes), 0);
  } else {
    // A service thread could look between two steps.
    testing::MakeHole(path_);
  }
  ExpectEnd("extended again");
}

// One whole copy of the superline is enough.
TEST_P(LogFileTest, FileWhoseBeginningIsOverwrittenEndsTheLog) {
  const std::string other = directory_.File("other");
  ASSERT_TRUE(Log::Format({.path = other, .region_bytes = kRegionBytes}).ok());
  const std::vector<std::byte> begin = testing::ReadFile(other);
  AwaitLook();
  for (const std::streamsize bytes : {4096, 8192}) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(begin.data()), bytes);
    file.close();
    ASSERT_FALSE(file.fail());
    AwaitLook();
    if (bytes == 8192) break;
    ASSERT_TRUE(log_->Append("record").ok());
    AwaitLook();
  }
  ExpectEnd("names log");
}

// Nobody used it meanwhile: not even one record is acknowledged then.
TEST_P(LogFileTest, FirstRecordAfterAnIdleTimeIsRefused) {
  AwaitLook();
  fs::remove(path_);
  AwaitLook();
  const absl::Status failure = log_->Append("record").status();
  EXPECT_EQ(failure.code(), Code::kUnavailable) << failure;
  EXPECT_THAT(std::string(failure.message()), HasSubstr("removed"));
}

// A log that is cut off under its reader does not end where reading stops.
TEST_P(LogFileTest, ReaderOfATruncatedFileIsToldAndEndsByNoSignal) {
  const std::string record(1000, 'x');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(log_->Append(record).ok());
  ASSERT_TRUE(log_->Close().ok());
  log_.reset();
  const auto reader = LogReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ(truncate(path_.c_str(), 200'000), 0);
  const absl::Status read =
      (*reader)->ForEach([](const ReaderRecord&) { return absl::OkStatus(); });
  EXPECT_EQ(read.code(), Code::kUnavailable) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr(path_));
  EXPECT_FALSE((*reader)->Verify().status.ok());
}

// A process of its own has the log open, and other logs go on.
TEST_P(LogFileTest, OtherLogsGoOn) {
  const std::string other = directory_.File("other");
  ASSERT_TRUE(Log::Format({.path = other, .region_bytes = kRegionBytes}).ok());
  const auto second = Log::Open({.path = other, .idle_force_us = GetParam()});
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(truncate(path_.c_str(), 100'000), 0);
  ExpectEnd("truncated");
  EXPECT_TRUE((*second)->Append("record").ok());
  EXPECT_TRUE((*second)->Close().ok());
}

}  // namespace
}  // namespace alpheus
