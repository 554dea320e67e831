// SPDX-License-Identifier: Apache-2.0
// The file of a replica that is removed, replaced or truncated under its node:
// the node says so within a second, that replica acknowledges nothing more, and
// everything else goes on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "alpheus/log.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "tests/support/fixtures/one_step.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using testing::TestCluster;
namespace fs = std::filesystem;

class NodeFileTest : public ::testing::Test {
 protected:
  NodeFileTest() {
    Format("main");
    Format("other");
    log_ = Open("main");
    other_ = Open("other");
  }

  void Format(const std::string& log) {
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = cluster_.file();
    options.log_name = log;
    const auto id = Log::Format(options);
    ASSERT_TRUE(id.ok()) << id.status();
  }
  std::unique_ptr<Log> Open(const std::string& name) {
    LogOptions options;
    options.replication.cluster_file = cluster_.file();
    options.replication.log_name = name;
    options.replication.node = 1;
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    auto log = Log::Open(options);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }

  // Appends to both logs until the condition holds.
  void AppendUntil(const std::function<bool()>& holds) {
    const Deadline deadline = testing::InPatience();
    while (!holds()) {
      for (Log* const log : {log_.get(), other_.get()}) {
        const auto lsn = log->Append("record");
        ASSERT_TRUE(lsn.ok()) << lsn.status();
        ASSERT_TRUE(log->CleanupThrough(*lsn).ok());
      }
      ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()))
          << cluster_.Reported();
    }
  }
  void AppendUntilTold(const std::string& what) {
    AppendUntil(
        [&] { return cluster_.Reported().find(what) != std::string::npos; });
    AppendUntil([&] { return log_->replication_status().in_sync == 2; });
    EXPECT_EQ(other_->replication_status().in_sync, 3u) << "other logs go on";
  }
  void AppendUntilAllAreInSync() {
    AppendUntil([&] { return log_->replication_status().in_sync == 3; });
  }

  TestCluster cluster_{3};
  const std::string path_ = cluster_.ReplicaPath(2);
  std::unique_ptr<Log> log_;
  std::unique_ptr<Log> other_;
};

TEST_F(NodeFileTest, RemovedReplicaAcknowledgesNoMore) {
  fs::remove(path_);
  AppendUntilTold("removed");
}

// Its path leads to it again: it joins, with what it missed.
TEST_F(NodeFileTest, RenamedReplicaIsServedAgainOnceItIsBack) {
  const std::string aside = path_ + ".aside";
  fs::rename(path_, aside);
  AppendUntilTold("renamed");
  fs::rename(aside, path_);
  AppendUntilAllAreInSync();
}

TEST_F(NodeFileTest, ReplacedReplicaAcknowledgesNoMore) {
  const std::string other = path_ + ".copy";
  std::vector<std::byte> bytes(1 << 18, std::byte{1});
  testing::WriteFile(other, bytes);
  fs::rename(other, path_);
  AppendUntilTold("another file was put in its place");
  AppendUntilTold("no superline");
  AppendUntilTold("`alpheus replace --cluster ");
  EXPECT_EQ(testing::ReadFile(path_), bytes);
}

TEST_F(NodeFileTest, TruncatedReplicaEndsNothingElse) {
  ASSERT_EQ(truncate(path_.c_str(), 100'000), 0);
  AppendUntilTold("truncated");
}

// An older copy of a node's folder that is put in its place: what is persisted
// in the other one would be found by nobody.
TEST_F(NodeFileTest, ReplacedFolderAcknowledgesNoMore) {
  const fs::path folder = fs::path(path_).parent_path();
  const fs::path copy = folder.string() + ".copy";
  fs::copy(folder, copy);
  testing::Exchange(folder, copy);
  const Deadline deadline = testing::InPatience();
  for (const std::string log : {"log main", "log other"}) {
    const std::string told = log + ": not served: " +
                             (folder / (log.substr(4) + ".alpheus")).string() +
                             ": another file was put in its place";
    while (cluster_.Reported().find(told) == std::string::npos) {
      ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()))
          << cluster_.Reported();
      ASSERT_TRUE(log_->Append("record").ok());
      ASSERT_TRUE(other_->Append("record").ok());
      ASSERT_TRUE(log_->CleanupAll().ok());
      ASSERT_TRUE(other_->CleanupAll().ok());
    }
  }
}

// The file has its length, and holds no replica any more.
TEST_F(NodeFileTest, ZeroedReplicaAcknowledgesNoMore) {
  testing::MakeHole(path_);
  AppendUntilTold("extended again");
}

TEST_F(NodeFileTest, OverwrittenReplicaAcknowledgesNoMore) {
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file << std::string(16'384, 'x');
  file.close();
  ASSERT_FALSE(file.fail());
  AppendUntilTold("its beginning names log");
}

// All of a node's files, of which it serves two.
TEST_F(NodeFileTest, IdleNodeTellsOfAllItsFilesWithoutBeingUsed) {
  log_.reset();
  other_.reset();
  ASSERT_EQ(truncate(path_.c_str(), 0), 0);
  fs::remove(cluster_.ReplicaPath(2, "other"));
  const Deadline deadline = testing::InPatience();
  for (const std::string what : {"truncated", "removed"}) {
    while (cluster_.Reported().find(what) == std::string::npos) {
      ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()))
          << cluster_.Reported();
    }
  }
}

}  // namespace
}  // namespace alpheus
