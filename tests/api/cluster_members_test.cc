// SPDX-License-Identifier: Apache-2.0
// Changes of the members of a log, over TCP, with its nodes' files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <string>
#include <vector>

#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "tests/testing/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestCluster;

class ClusterMembersTest : public ::testing::Test {
 protected:
  void Format(const std::string& list) {
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = list;
    const auto id = Log::Format(options);
    ASSERT_TRUE(id.ok()) << id.status();
  }
  static LogOptions By(const std::string& list, int node) {
    LogOptions options;
    options.replication.cluster_file = list;
    options.replication.node = static_cast<uint64_t>(node);
    options.replication.open_timeout_ms = 60'000;
    options.replication.silence_ms = 60'000;
    return options;
  }
  static absl::StatusOr<RecoveryReport> Change(
      const std::string& to, const std::string& from,
      const std::vector<uint64_t>& replaced = {}) {
    ChangeMembersOptions options;
    options.cluster_file = to;
    options.previous_cluster_file = from;
    options.replaced = replaced;
    return Log::ChangeMembers(options);
  }
  // Opens by the list, expects so many records there, and appends.
  void Append(const std::string& list, int node, int there, int records) {
    const auto log = Log::Open(By(list, node));
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ((*log)->report().end_lsn, Lsn(static_cast<uint64_t>(there)));
    for (int i = 0; i < records; ++i) {
      const auto lsn = (*log)->Append("record");
      ASSERT_TRUE(lsn.ok()) << lsn.status();
    }
    ASSERT_TRUE((*log)->Close().ok());
  }
  void LoseMedium(int node) {
    cluster_.Stop(node);
    std::filesystem::remove(cluster_.ReplicaPath(node));
    cluster_.Start(node);
  }
  int RecordsOf(int node) {
    int records = 0;
    const auto reader = LogReader::Open(cluster_.ReplicaPath(node));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return 0;
    const absl::Status walked = (*reader)->ForEach([&](const ReaderRecord&) {
      ++records;
      return absl::OkStatus();
    });
    EXPECT_TRUE(walked.ok()) << walked;
    return records;
  }

  TestCluster cluster_{4};
  const std::string three_ = cluster_.WriteList(1, {1, 2, 3}, 2);
};

TEST_F(ClusterMembersTest, LostReplicaIsReplacedWhileTheLogRuns) {
  Format(three_);
  Append(three_, 1, 0, 5);
  const auto log = Log::Open(By(three_, 2));
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("by who runs it").ok());
  LoseMedium(3);
  const auto changed = Change(three_, "", {3});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->end_lsn, Lsn(6));
  EXPECT_THAT(changed->absent_members, IsEmpty());

  // Whoever ran it hears of it, and goes on.
  const auto refused = (*log)->Append("too late");
  EXPECT_TRUE(absl::IsAborted(refused.status())) << refused.status();
  cluster_.Stop(1);
  Append(three_, 2, 6, 2);
  cluster_.Stop(2);
  cluster_.Stop(3);
  EXPECT_EQ(RecordsOf(3), 8);
}

TEST_F(ClusterMembersTest, ReplicaThatIsThereIsNotReplaced) {
  Format(three_);
  Append(three_, 1, 0, 2);
  const auto refused = Change(three_, "", {3});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("it is not lost"));
  Append(three_, 2, 2, 1);
}

// The file in the way is named with a remedy, and the remedy works.
TEST_F(ClusterMembersTest, DamagedReplicaIsInTheWayUntilItIsRemoved) {
  for (const bool is_served : {true, false}) {
    TestCluster cluster(3);
    const std::string list = cluster.file();
    Format(list);
    Append(list, 1, 0, 2);
    if (!is_served) cluster.Stop(3);
    {
      std::fstream file(cluster.ReplicaPath(3),
                        std::ios::in | std::ios::out | std::ios::binary);
      file << std::string(8192, '\0');
    }
    if (!is_served) cluster.Start(3);
    const auto refused = Change(list, "", {3});
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()))
        << refused.status();
    EXPECT_THAT(refused.status().message(),
                AllOf(HasSubstr("node 3"), HasSubstr("damaged replica"),
                      HasSubstr("Remove the file main.alpheus")));
    cluster.Stop(3);
    std::filesystem::remove(cluster.ReplicaPath(3));
    cluster.Start(3);
    const auto changed = Change(list, "", {3});
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_THAT(changed->absent_members, IsEmpty());
  }
}

TEST_F(ClusterMembersTest, MembersComeAndGo) {
  Format(three_);
  Append(three_, 1, 0, 3);
  const std::string four = cluster_.WriteList(2, {1, 2, 3, 4}, 3);
  auto changed = Change(four, three_);
  ASSERT_TRUE(changed.ok()) << changed.status();
  Append(four, 4, 3, 2);
  // By the old list nobody opens it any more.
  const auto old = Log::Open(By(three_, 1));
  EXPECT_TRUE(absl::IsFailedPrecondition(old.status())) << old.status();

  const std::string others = cluster_.WriteList(3, {2, 3, 4}, 2);
  changed = Change(others, four);
  ASSERT_TRUE(changed.ok()) << changed.status();
  cluster_.Stop(1);
  Append(others, 2, 5, 1);
  // The same once more changes nothing, and says so by an epoch.
  changed = Change(others, four);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->end_lsn, Lsn(6));
}

TEST_F(ClusterMembersTest, WhatCannotBeIsRefusedBeforeAnybodyIsAsked) {
  Format(three_);
  Append(three_, 1, 0, 1);
  const auto same = Change(three_, "");
  EXPECT_TRUE(absl::IsInvalidArgument(same.status())) << same.status();
  const auto large = Change(cluster_.WriteList(2, {4}, 1), three_);
  EXPECT_TRUE(absl::IsFailedPrecondition(large.status())) << large.status();
  const auto wrong = Change(cluster_.WriteList(4, {1, 2, 3, 4}, 3),
                            cluster_.WriteList(3, {1, 2, 3}, 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong.status())) << wrong.status();
  EXPECT_THAT(wrong.status().message(), HasSubstr("has configuration 1"));
  Append(three_, 2, 1, 1);
}

}  // namespace
}  // namespace alpheus
