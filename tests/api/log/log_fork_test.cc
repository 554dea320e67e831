// SPDX-License-Identifier: Apache-2.0
// A log belongs to the process that opened it: in a fork's child nothing is
// acknowledged, and nothing that the child does changes the log or its lock.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "alpheus/candidate.h"
#include "alpheus/log.h"
#include "alpheus/log_tail.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using Code = absl::StatusCode;

class LogForkTest : public ::testing::Test {
 protected:
  LogForkTest() {
    EXPECT_TRUE(Log::Format({.path = path_, .region_bytes = 1 << 20}).ok());
    Open();
  }
  void Open() {
    log_.reset();
    // Without the log's own thread: after a while it writes to the file, and a
    // test would take that for the child's work.
    auto log = Log::Open({.path = path_, .idle_force_us = 0});
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }

  // 0 if all that it expects in a child holds.
  static int ExitOfChild(const std::function<bool()>& holds) {
    const pid_t child = fork();
    if (child == 0) std::_Exit(holds() ? 0 : 1);
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  static bool IsRefused(const absl::Status& status) {
    const bool is_refused =
        status.code() == Code::kFailedPrecondition &&
        status.message().find("fork's child") != std::string::npos;
    if (!is_refused) std::cerr << "not refused: " << status << "\n";
    return is_refused;
  }
  // One after the other: which one is not refused is said.
  static bool AreAllCallsRefused(Log& log) {
    const std::array<std::span<const std::byte>, 1> parts = {AsBytes("x")};
    bool was_called = false;
    std::vector<absl::Status> calls = {
        log.Append("child").status(),
        log.Append("child", {.frequency = 1000}).status(),
        log.AppendInRing(parts, Deadline()).status(),
        log.Reserve(10).status(),
        log.Force(Lsn(1)),
        log.BeginForce(Lsn(1)),
        log.WaitDurable(Lsn(1)),
        log.OnDurable(Lsn(1), [&](const absl::Status&) { was_called = true; }),
        log.Cleanup(Lsn(1)),
        log.CleanupThrough(Lsn(1)),
        log.CleanupAll(),
        log.CheckPayloads(),
        log.Close()};
    bool all = !was_called;
    for (const absl::Status& status : calls) all = IsRefused(status) && all;
    return all;
  }

  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("log");
  std::unique_ptr<Log> log_;
};

TEST_F(LogForkTest, ChildIsRefusedAndChangesNothing) {
  ASSERT_TRUE(log_->Append("first").ok());
  const std::vector<std::byte> before = testing::ReadFile(path_);
  EXPECT_EQ(ExitOfChild([&] { return AreAllCallsRefused(*log_); }), 0);
  EXPECT_EQ(testing::ReadFile(path_), before);
  EXPECT_TRUE(log_->Append("second").ok());
  EXPECT_TRUE(log_->Close().ok());
  Open();
  EXPECT_EQ(log_->report().records, 2u);
}

// A reservation of the parent is open: the child may let go of its copy, and
// does nothing to the record.
TEST_F(LogForkTest, ReservationOfTheParentIsLeftAlone) {
  auto reserved = log_->Reserve(5);
  ASSERT_TRUE(reserved.ok());
  ASSERT_TRUE(log_->Copy(*reserved, 0, AsBytes("whole")).ok());
  const auto finish = [&](bool completes) {
    return IsRefused(log_->Copy(*reserved, 0, AsBytes("child"))) &&
           (completes ? IsRefused(log_->Complete(*std::move(reserved)).status())
                      : (reserved->Detach(), reserved->Abort(), true));
  };
  EXPECT_EQ(ExitOfChild([&] { return finish(true); }), 0);
  EXPECT_EQ(ExitOfChild([&] { return finish(false); }), 0);
  EXPECT_EQ(ExitOfChild([&] {
              log_.reset();
              return true;
            }),
            0);
  const auto lsn = log_->Complete(*std::move(reserved));
  ASSERT_TRUE(lsn.ok()) << lsn.status();
  EXPECT_TRUE(log_->Force(*lsn).ok());
  ASSERT_TRUE(log_->Close().ok());
  Open();
  EXPECT_EQ(log_->report().records, 1u);
  EXPECT_TRUE(log_->ForEachRecovered([](const RecoveredRecord& record) {
                    EXPECT_EQ(AsText(record.payload), "whole");
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST_F(LogForkTest, TailOfTheParentShowsNothingInTheChild) {
  ASSERT_TRUE(log_->Append("record").ok());
  auto tail = log_->Tail(Lsn(0));
  ASSERT_TRUE(tail.ok());
  EXPECT_EQ(ExitOfChild([&] { return IsRefused((*tail)->Next().status()); }),
            0);
  EXPECT_TRUE((*tail)->Next().ok());
}

// The child has nothing of the parent's lock to give back, neither at its exit
// nor when it destroys its copy of the log.
TEST_F(LogForkTest, LockStaysWithTheParentWhateverTheChildDoes) {
  for (const bool by_exit : {false, true}) {
    const auto end = [&] {
      if (by_exit) std::exit(0);
      delete log_.release();
      return Log::Open({.path = path_}).status().code() ==
             Code::kFailedPrecondition;
    };
    EXPECT_EQ(ExitOfChild(end), 0);
    EXPECT_EQ(Log::Open({.path = path_}).status().code(),
              Code::kFailedPrecondition);
    EXPECT_TRUE(log_->Append("record").ok());
  }
}

// A child that lives on has the same open file; the lock is not its affair.
TEST_F(LogForkTest, LogIsOpenedAgainOnceTheParentHasClosedItBesideAChild) {
  std::array<int, 2> go = {};
  ASSERT_EQ(pipe(go.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(go[1]);
    (void)!read(go[0], &byte, 1);
    // The parent's log is closed, and this has the copy of it still. (Without a
    // thread, which a sanitizer does not allow in a child.)
    const auto log = Log::Open({.path = path_, .idle_force_us = 0});
    const bool is_good = log.ok() && (*log)->Append("child").ok() &&
                         (*log)->Close().ok() && IsRefused(log_->Close());
    if (!log.ok()) std::cerr << log.status() << "\n";
    std::_Exit(is_good ? 0 : 1);
  }
  ASSERT_TRUE(log_->Append("parent").ok());
  ASSERT_TRUE(log_->Close().ok());
  log_.reset();
  Open();
  EXPECT_TRUE(log_->Append("parent again").ok());
  ASSERT_TRUE(log_->Close().ok());
  log_.reset();
  close(go[1]);
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  EXPECT_EQ(status, 0);
  Open();
  EXPECT_EQ(log_->report().records, 3u);
  close(go[0]);
}

// Nobody else has what is in no file: the child goes on with a copy.
TEST_F(LogForkTest, LogInMemoryIsCopied) {
  const auto log = Log::Open({.anonymous_bytes = 1 << 20, .idle_force_us = 0});
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(ExitOfChild([&] { return (*log)->Append("child").ok(); }), 0);
  EXPECT_EQ((*log)->next_lsn(), Lsn(1));
}

// CAN3 of candidate.h: the thread that stands is the parent's.
TEST_F(LogForkTest, CandidateIsLeftToTheParent) {
  testing::TestCluster cluster(3);
  FormatOptions format;
  format.cluster_file = cluster.file();
  format.region_bytes = 1 << 20;
  ASSERT_TRUE(Log::Format(format).ok());
  CandidateOptions options;
  options.log.replication.cluster_file = cluster.file();
  options.log.replication.node = 1;
  auto candidate = Candidate::Stand(options);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  auto log = (*candidate)->WaitForLog(testing::InPatience());
  ASSERT_TRUE(log.ok()) << log.status();
  const auto end = [&] {
    const bool is_refused =
        IsRefused((*candidate)->WaitForLog().status()) &&
        IsRefused((*candidate)->WaitToGiveBack()) &&
        IsRefused((*candidate)->GiveBack(std::move(*log))) &&
        (*candidate)->must_give_back() && *log != nullptr;
    (*candidate)->Withdraw();
    candidate->reset();
    return is_refused;
  };
  EXPECT_EQ(ExitOfChild(end), 0);
  EXPECT_FALSE((*candidate)->must_give_back());
  EXPECT_TRUE((*log)->Append("record").ok());
}

// Its connections are the parent's, too.
TEST_F(LogForkTest, ReplicatedLogIsLeftToTheParent) {
  testing::TestCluster cluster(3);
  FormatOptions format;
  format.region_bytes = 256 * 1024;
  format.cluster_file = cluster.file();
  format.log_name = "main";
  ASSERT_TRUE(Log::Format(format).ok());
  LogOptions options;
  options.replication.cluster_file = cluster.file();
  options.replication.log_name = "main";
  options.replication.node = 1;
  options.replication.open_timeout_ms = 60'000;
  options.replication.ack_timeout_ms = 60'000;
  auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("first").ok());
  EXPECT_EQ(ExitOfChild([&] {
              const bool refused = AreAllCallsRefused(**log);
              log->reset();
              return refused;
            }),
            0);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE((*log)->Append("record").ok());
  EXPECT_TRUE((*log)->Close().ok());
}

}  // namespace
}  // namespace alpheus
