// SPDX-License-Identifier: Apache-2.0
// Writers and readers of one region: beside each other, and after a writer
// died.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "nlohmann/json.hpp"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ChildProcess;
using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::HasSubstr;

// A writer that holds the region: `append --ack`, waiting for more input.
class BlockedWriter {
 public:
  explicit BlockedWriter(const std::string& region)
      : child_(ChildProcess::Start(
                   AlpheusProgram({"append", "--file", region, "--ack"}))
                   .value()) {
    EXPECT_EQ(write(child_.input().get(), "held\n", 5), 5);
    // The acknowledgement proves that the region is open.
    std::string said;
    while (said.find('\n') == std::string::npos) {
      pollfd output = {child_.output().get(), POLLIN, 0};
      EXPECT_EQ(poll(&output, 1, -1), 1);
      if (!demo::ReadSome(output.fd, &said)) break;
    }
    EXPECT_THAT(said, HasSubstr(" 0 0\n"));
  }

  pid_t pid() const { return child_.pid(); }
  int Finish() {
    child_.input().Close();
    return child_.Wait().exit_status;
  }
  void Kill() {
    child_.Kill();
    EXPECT_EQ(child_.Wait().signal, SIGKILL);
  }

 private:
  ChildProcess child_;
};

TEST_F(CliTest, SecondWriterIsRefused) {
  FormatWith({"one"});
  BlockedWriter writer(region_);
  has_writer_ = true;
  for (const Arguments& command :
       std::vector<Arguments>{{"append", "--file", region_},
                              {"cleanup", "--file", region_, "--all"},
                              {"cleanup", "--file", region_, "--lsn", "1"},
                              {"cleanup", "--file", region_, "--through", "1"},
                              {"salvage", region_, File("salvaged")}}) {
    ExpectRefused(command, kFailed, "writer", "x\n");
  }
  ExpectRefused({"append", "--file", region_}, kFailed,
                absl::StrCat("it is process ", writer.pid()), "x\n");
  EXPECT_FALSE(std::filesystem::exists(File("salvaged")));
  EXPECT_EQ(writer.Finish(), kGood);
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\nheld\n");
}

TEST_F(CliTest, ReadersWorkBesideAWriter) {
  FormatWith({"one"});
  BlockedWriter writer(region_);
  EXPECT_THAT(RunWell({"cat", "--file", region_}), HasSubstr("one\n"));
  EXPECT_THAT(RunWell({"inspect", "--file", region_, "--json"}),
              HasSubstr("\"has_writer\":true"));
  RunWell({"verify", "--file", region_});
  EXPECT_EQ(writer.Finish(), kGood);
}

// Appends numbers and cleans what is old, until told to stop: the ring is
// reused every few hundred records, below the feet of all readers.
void AppendAndReclaim(Log* log, const std::atomic<bool>* stop) {
  constexpr uint64_t kKept = 50;
  for (uint64_t i = 1; !stop->load(); ++i) {
    const absl::StatusOr<Lsn> lsn = log->Append(absl::StrCat(i));
    ASSERT_TRUE(lsn.ok()) << lsn.status();
    if (i % kKept != 0 || i <= kKept) continue;
    const absl::Status cleaned = log->CleanupThrough(*lsn - kKept);
    ASSERT_TRUE(cleaned.ok()) << cleaned;
  }
}

TEST_F(CliTest, ReadersSurviveAWriterThatReusesTheRing) {
  Format();
  auto log = Log::Open({.path = region_});
  ASSERT_TRUE(log.ok()) << log.status();
  std::atomic<bool> stop{false};
  std::thread writer(AppendAndReclaim, log->get(), &stop);
  for (int i = 0; i < 20; ++i) {
    uint64_t last = 0;
    for (const std::string& line :
         SplitLines(RunWell({"cat", "--file", region_}))) {
      EXPECT_GT(std::stoull(line), last);
      last = std::stoull(line);
    }
    RunWell({"verify", "--file", region_});
    RunWell({"inspect", "--file", region_});
  }
  stop = true;
  writer.join();
}

TEST_F(CliTest, KilledWriterLeavesNoLockAndLosesNothing) {
  FormatWith({"one"});
  BlockedWriter writer(region_);
  writer.Kill();
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\nheld\n");
  RunWell({"append", "--file", region_}, "two\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\nheld\ntwo\n");
  RunWell({"verify", "--file", region_});
}

// Leaves a log as a crash does: LSN 1 acknowledged, LSN 2 reserved and never
// completed, LSN 3 completed.
void CrashWithOpenReservation(const std::string& region) {
  const pid_t pid = fork();
  if (pid == 0) {
    LogOptions options;
    options.path = region;
    auto log = Log::Open(options);
    if (!log.ok() || !(*log)->Append("one").ok()) _exit(1);
    auto open = (*log)->Reserve(3);
    auto completed = (*log)->Reserve(5);
    if (!(*log)->Complete(*std::move(completed)).ok()) _exit(1);
    _exit(open.ok() ? 0 : 1);  // no destructor runs
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_EQ(status, 0);
}

// A torn tail is not damage: readers end before it, opening says what is cut.
TEST_F(CliTest, TornTailIsCutAndReported) {
  Format();
  CrashWithOpenReservation(region_);
  const json verdict = json::parse(
      RunWell({"verify", "--file", region_, "--json"}), nullptr, false);
  EXPECT_EQ(verdict["verdict"], "torn");
  EXPECT_EQ(verdict["cut_records"], 1);
  EXPECT_THAT(RunWell({"verify", "--file", region_}),
              HasSubstr("1 after the torn end, never acknowledged"));
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\n");
  RunWell({"salvage", region_, File("salvaged")});

  const ProgramResult opened =
      RunAlpheus({"append", "--file", region_}, "two\n");
  EXPECT_EQ(opened.end.exit_status, kGood);
  EXPECT_THAT(opened.error, HasSubstr("LSN 2"));
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\ntwo\n");
}

}  // namespace
}  // namespace alpheus::testing
