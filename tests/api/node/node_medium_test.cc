// SPDX-License-Identifier: Apache-2.0
// A node whose medium fails goes on without that replica, and takes it up again
// as one that holds nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>

#include "alpheus/log.h"
#include "log/base/deadline.h"
#include "log/pmem/region.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::HasSubstr;
using testing::TestCluster;

// The next one of any node fails.
std::atomic<bool> sync_fails{false};

// All of all nodes.
std::atomic<bool> syncs_fail{false};

int SyncOrFail(const void* address, size_t bytes) {
  if (syncs_fail || sync_fails.exchange(false)) return EIO;
  return MsyncPersistence::SyncPages(address, bytes);
}

LogOptions OptionsOf(const TestCluster& cluster) {
  LogOptions options;
  options.replication.cluster_file = cluster.file();
  options.replication.node = 1;
  options.replication.open_timeout_ms = 60'000;
  options.replication.ack_timeout_ms = 60'000;
  return options;
}

TEST(NodeMediumTest, ReplicaWhoseMediumFailedIsTakenUpAgain) {
  TestCluster cluster(3, 0, SyncOrFail);
  FormatOptions format;
  format.region_bytes = 256 * 1024;
  format.cluster_file = cluster.file();
  format.log_name = "main";
  ASSERT_TRUE(Log::Format(format).ok());
  {
    const auto log = Log::Open(OptionsOf(cluster));
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append("before").ok());
    sync_fails = true;
    ASSERT_TRUE((*log)->Append("after").ok());
    ASSERT_TRUE((*log)->Close().ok());
  }
  // The log opens without the replica until the node has taken it up.
  bool repaired = false;
  const Deadline deadline = testing::InPatience();
  for (;;) {
    const auto log = Log::Open(OptionsOf(cluster));
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ((*log)->report().records, 2u);
    for (const std::string& repair : (*log)->report().repairs) {
      EXPECT_THAT(repair, HasSubstr("2 records from LSN 1 on"));
      repaired = true;
    }
    const bool is_whole = (*log)->report().absent_members.empty();
    ASSERT_TRUE((*log)->Close().ok());
    if (repaired && is_whole) break;
    ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()))
        << cluster.Reported();
  }
  EXPECT_FALSE(sync_fails);
  EXPECT_THAT(cluster.Reported(), HasSubstr("its medium failed"));
}

// ND3 (hosted_logs.h): another process that opened the file before would
// believe it.
TEST(NodeMediumTest, LockIsKeptUntilTheReplicaIsMarked) {
  TestCluster cluster(1, 0, SyncOrFail);
  FormatOptions format;
  format.region_bytes = 256 * 1024;
  format.cluster_file = cluster.file();
  ASSERT_TRUE(Log::Format(format).ok());
  const auto log = Log::Open(OptionsOf(cluster));
  ASSERT_TRUE(log.ok()) << log.status();
  syncs_fail = true;
  EXPECT_FALSE((*log)->Append("lost").ok());
  const std::string path = cluster.ReplicaPath(1);
  const Deadline deadline = testing::InPatience();
  while (cluster.Reported().find(path + ": its medium failed") ==
         std::string::npos) {
    ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()))
        << cluster.Reported();
    std::this_thread::yield();
  }
  const absl::Status taken = Region::OpenForWriting(path).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(taken)) << taken;
  EXPECT_THAT(taken.ToString(), HasSubstr("another writer"));
  syncs_fail = false;
}

}  // namespace
}  // namespace alpheus
