// SPDX-License-Identifier: Apache-2.0
// Backups of a replicated log, over TCP; and what nodes make of one.
#include "api/log/cluster_backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDirectory;
using testing::TestCluster;

class ClusterBackupTest : public ::testing::Test {
 protected:
  ClusterBackupTest() {
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = cluster_.file();
    EXPECT_TRUE(Log::Format(options).ok());
  }

  absl::StatusOr<std::unique_ptr<Log>> TryOpen(const std::string& path) {
    LogOptions options;
    options.path = path;
    options.replication.cluster_file = cluster_.file();
    options.replication.node = 1;
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    return Log::Open(options);
  }
  std::unique_ptr<Log> OpenLog(bool has_replica = false) {
    auto log = TryOpen(has_replica ? cluster_.ReplicaPath(1) : "");
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  static void Append(Log& log, const std::string& text) {
    const auto lsn = log.Append(text);
    EXPECT_TRUE(lsn.ok()) << lsn.status();
  }
  absl::StatusOr<BackupReport> BackUp(uint32_t timeout_ms = 60'000,
                                      bool replaces = false) {
    return BackUpCluster({.cluster_file = cluster_.file(),
                          .path = path_,
                          .replaces = replaces,
                          .timeout_ms = timeout_ms});
  }
  std::vector<std::string> Records() const {
    std::vector<std::string> records;
    const auto reader = LogReader::Open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return records;
    const absl::Status read =
        (*reader)->ForEach([&](const ReaderRecord& record) {
          if (record.state != RecordState::kDurable) return absl::OkStatus();
          records.push_back(absl::StrCat(record.lsn.value, ":",
                                         std::string(AsText(record.payload))));
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read;
    return records;
  }
  // Makes the backup the replica of a node, which is down.
  void PutInPlaceOf(int node) const {
    const std::string replica = cluster_.ReplicaPath(node);
    std::filesystem::remove(replica);
    std::filesystem::copy_file(path_, replica);
    std::filesystem::permissions(replica, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
  }

  TestCluster cluster_{3};
  const TempDirectory directory_;
  const std::string path_ = directory_.File("backup");
};

// Goal: CBK1. The primary goes on, and has its own replica, which nobody else
// reads.
TEST_F(ClusterBackupTest, AllThatWasAcknowledgedIsInIt) {
  const auto log = OpenLog(/*has_replica=*/true);
  Append(*log, "one");
  {
    auto given_up = log->Reserve(1);
  }
  Append(*log, "three");
  absl::StatusOr<BackupReport> report = BackUp();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->head_lsn, Lsn(1));
  EXPECT_EQ(report->end_lsn, Lsn(3));
  EXPECT_EQ(report->records, 2U);
  EXPECT_EQ(report->payload_bytes, 8U);
  EXPECT_EQ(report->log_id, log->report().log_id);
  EXPECT_THAT(Records(), ElementsAre("1:one", "3:three"));

  Append(*log, "four");
  ASSERT_TRUE(log->CleanupThrough(Lsn(1)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(BackUp().status()));
  report = BackUp(60'000, /*replaces=*/true);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->end_lsn, Lsn(4));
  const std::vector<std::string> records = Records();
  EXPECT_EQ(records.back(), "4:four");
}

TEST_F(ClusterBackupTest, EmptyLogHasABackup) {
  const auto log = OpenLog();
  absl::StatusOr<BackupReport> report = BackUp();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->end_lsn + 1, report->head_lsn);
  EXPECT_THAT(Records(), IsEmpty());
}

// Each record that was acknowledged before a backup began is in it, whatever is
// appended meanwhile; none is invented.
TEST_F(ClusterBackupTest, LogIsAppendedToMeanwhile) {
  const auto log = OpenLog(/*has_replica=*/true);
  std::atomic<bool> is_over = false;
  std::atomic<uint64_t> acknowledged = 0;
  std::thread appender([&] {
    for (uint64_t i = 1; !is_over && i < 2'000; ++i) {
      Append(*log, absl::StrCat("record ", i));
      acknowledged = i;
    }
  });
  const Deadline end = testing::InPatience();
  while (acknowledged < 50 && !end.HasPassed(Clock::Real().NowNanos())) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = acknowledged;
    const absl::StatusOr<BackupReport> report = BackUp(60'000, true);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) break;
    const std::vector<std::string> records = Records();
    EXPECT_GE(records.size(), before);
    for (size_t at = 0; at < records.size(); ++at) {
      EXPECT_EQ(records[at], absl::StrCat(at + 1, ":record ", at + 1));
    }
  }
  is_over = true;
  appender.join();
}

// No record is left out in silence because nobody knows that it is durable.
TEST_F(ClusterBackupTest, TooFewReplicasAreAnError) {
  const auto log = OpenLog(/*has_replica=*/true);
  Append(*log, "one");
  cluster_.Stop(3);
  absl::StatusOr<BackupReport> report = BackUp(200);
  EXPECT_TRUE(absl::IsUnavailable(report.status())) << report.status();
  EXPECT_THAT(report.status().message(),
              AllOf(HasSubstr("too few replicas"), HasSubstr("node 3")));
  EXPECT_FALSE(std::filesystem::exists(path_));
  cluster_.Start(3);
  report = BackUp();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Records(), ElementsAre("1:one"));
}

TEST_F(ClusterBackupTest, UnknownLogsAndClustersAreErrors) {
  EXPECT_TRUE(absl::IsNotFound(BackUpCluster({.cluster_file = cluster_.file(),
                                              .log_name = "none",
                                              .path = path_,
                                              .timeout_ms = 60'000})
                                   .status()));
  EXPECT_TRUE(absl::IsNotFound(
      BackUpCluster(
          {.cluster_file = directory_.File("none.toml"), .path = path_})
          .status()));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Goal: BKC3 (backup_composer.h). A node that finds a backup in its directory
// says so, and the log goes on without it.
TEST_F(ClusterBackupTest, NoNodeServesABackup) {
  {
    const auto log = OpenLog();
    Append(*log, "one");
  }
  ASSERT_TRUE(BackUp().ok());
  cluster_.Stop(2);
  PutInPlaceOf(2);
  const std::vector<std::byte> before =
      testing::ReadFile(cluster_.ReplicaPath(2));
  cluster_.Start(2);
  const Deadline end = testing::InPatience();
  while (cluster_.Reported().find("is a backup of log") == std::string::npos &&
         !end.HasPassed(Clock::Real().NowNanos())) {
    std::this_thread::yield();
  }
  EXPECT_THAT(cluster_.Reported(), HasSubstr("no node's replica"));
  const auto log = OpenLog();
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->report().end_lsn, Lsn(1));
  EXPECT_EQ(log->replication_status().in_sync, 2U);
  EXPECT_EQ(testing::ReadFile(cluster_.ReplicaPath(2)), before);
}

// Nor does a program open one as the replica of its node, or as a local log.
TEST_F(ClusterBackupTest, NoProgramOpensABackup) {
  {
    const auto log = OpenLog();
    Append(*log, "one");
  }
  ASSERT_TRUE(BackUp().ok());
  cluster_.Stop(1);
  PutInPlaceOf(1);
  const std::vector<std::byte> before =
      testing::ReadFile(cluster_.ReplicaPath(1));
  const absl::Status member = TryOpen(cluster_.ReplicaPath(1)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(member)) << member;
  EXPECT_THAT(member.message(), HasSubstr("is a backup of log"));
  const absl::Status local =
      Log::Open({.path = cluster_.ReplicaPath(1)}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(local)) << local;
  EXPECT_THAT(local.message(), HasSubstr("is a backup of log"));
  EXPECT_EQ(testing::ReadFile(cluster_.ReplicaPath(1)), before);
}

}  // namespace
}  // namespace alpheus
