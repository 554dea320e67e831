// SPDX-License-Identifier: Apache-2.0
// A log may be used, closed and dropped until its process ends, by destructors
// of static and thread-local objects and by exit handlers, in any order. Each
// child here ends by exit(); that nothing is used after it was freed shows in
// the build with the sanitizer of addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "alpheus/log_tail.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::ExitedWithCode;

constexpr int kRecords = 100;

// Made before anything of the log, so it ends after all of that.
std::unique_ptr<Log> static_log;
std::unique_ptr<LogReader> static_reader;
std::unique_ptr<LogTail> static_tail;

std::unique_ptr<Log> OpenLog(const std::string& path) {
  auto log = Log::Open({.path = path});
  if (!log.ok()) std::_Exit(2);
  return *std::move(log);
}

// Completed, and of no use to anybody before they are forced: F is large.
void AppendTo(Log& log, int count) {
  for (int i = 0; i < count; ++i) {
    if (!log.Append("record", {.frequency = 1000}).ok()) std::_Exit(3);
  }
}

class LogAtExitTest : public ::testing::Test {
 protected:
  LogAtExitTest() {
    EXPECT_TRUE(Log::Format({.path = path_, .region_bytes = 1 << 20}).ok());
  }

  // The number of records that the child left behind.
  uint64_t Records() const {
    const std::unique_ptr<Log> log = OpenLog(path_);
    EXPECT_TRUE(log->report().was_closed_cleanly);
    return log->report().records;
  }

  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("log");
};

TEST_F(LogAtExitTest, LogIsClosedByTheDestructorOfAStaticObject) {
  EXPECT_EXIT(
      {
        static_log = OpenLog(path_);
        AppendTo(*static_log, kRecords);
        std::exit(0);
      },
      ExitedWithCode(0), "");
  EXPECT_EQ(Records(), kRecords);
}

TEST_F(LogAtExitTest, LogIsUsedForcedAndClosedByAnExitHandler) {
  EXPECT_EXIT(
      {
        std::atexit([] {
          AppendTo(*static_log, kRecords);
          const bool good =
              static_log->Force(Lsn(kRecords)).ok() && static_log->Close().ok();
          static_log.reset();
          if (!good) std::_Exit(4);
        });
        static_log = OpenLog(path_);
        AppendTo(*static_log, 1);
        std::exit(0);
      },
      ExitedWithCode(0), "");
  EXPECT_EQ(Records(), kRecords + 1);
}

TEST_F(LogAtExitTest, LogIsOpenedAndClosedByAnExitHandler) {
  static std::string path;
  path = path_;
  EXPECT_EXIT(
      {
        std::atexit([] {
          const std::unique_ptr<Log> log = OpenLog(path);
          AppendTo(*log, kRecords);
        });
        std::exit(0);
      },
      ExitedWithCode(0), "");
  EXPECT_EQ(Records(), kRecords);
}

// The thread-local object is made first, so it ends last.
TEST_F(LogAtExitTest, LogIsClosedByThreadLocalObjects) {
  const auto use = [this] {
    thread_local std::unique_ptr<Log> log;
    log = OpenLog(path_);
    AppendTo(*log, kRecords);
  };
  EXPECT_EXIT(
      {
        std::thread(use).join();
        use();
        std::exit(0);
      },
      ExitedWithCode(0), "");
  EXPECT_EQ(Records(), 2 * kRecords);
}

TEST_F(LogAtExitTest, LogIsClosedByAnotherThreadThanTheOneThatEnds) {
  EXPECT_EXIT(
      {
        std::atexit([] {
          std::thread([] {
            AppendTo(*static_log, kRecords);
            static_log.reset();
          }).join();
        });
        static_log = OpenLog(path_);
        AppendTo(*static_log, kRecords);
        std::exit(0);
      },
      ExitedWithCode(0), "");
  EXPECT_EQ(Records(), 2 * kRecords);
}

// Nobody closes the log, and a thread of the program goes on with it.
TEST_F(LogAtExitTest, LogIsInUseWhileTheProcessEnds) {
  EXPECT_EXIT(
      {
        static std::atomic<int> appended = 0;
        Log* const log = OpenLog(path_).release();
        std::thread([log] {
          for (;;) {
            if (log->Append("record").ok()) ++appended;
          }
        }).detach();
        while (appended < kRecords) std::this_thread::yield();
        std::exit(0);
      },
      ExitedWithCode(0), "");
  EXPECT_GE(OpenLog(path_)->report().records, kRecords);
}

TEST_F(LogAtExitTest, CallbacksReadersAndTailsEndWithStaticObjects) {
  EXPECT_EXIT(
      {
        static std::atomic<int> told = 0;
        std::atexit([] {
          if (told != 1) std::_Exit(5);
        });
        static_log = OpenLog(path_);
        AppendTo(*static_log, kRecords);
        const absl::Status added = static_log->OnDurable(
            Lsn(kRecords), [](const absl::Status& status) {
              if (status.ok()) ++told;
            });
        if (!added.ok() || !static_log->Force(Lsn(kRecords)).ok()) {
          std::_Exit(6);
        }
        auto reader = LogReader::Open(path_);
        if (!reader.ok()) std::_Exit(7);
        static_reader = *std::move(reader);
        auto tail = static_log->Tail(Lsn(1));
        if (!tail.ok() || !(*tail)->Next().ok()) std::_Exit(8);
        static_tail = *std::move(tail);
        std::exit(0);
      },
      ExitedWithCode(0), "");
  EXPECT_EQ(Records(), kRecords);
}

}  // namespace
}  // namespace alpheus
