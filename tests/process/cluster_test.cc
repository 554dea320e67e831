// SPDX-License-Identifier: Apache-2.0
// The cluster that other tests rely on: does it see what becomes of its nodes?
// Scripts stand in for `alpheusd` where a node is to misbehave.
#include "tools/nemesis/processes/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "log/base/clock.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::demo {
namespace {

using ::testing::HasSubstr;

class ClusterOfScriptsTest : public ::testing::Test {
 protected:
  // A cluster whose nodes run this ("$4" is the node's number).
  void MakeCluster(const std::string& script) {
    const std::string path = directory_.File("alpheusd");
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    ClusterOptions options;
    options.alpheus = "/bin/echo";
    options.alpheusd = path;
    options.directory = directory_.path();
    auto cluster = Cluster::Create(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  const alpheus::testing::TempDirectory directory_;
  std::unique_ptr<Cluster> cluster_;
};

constexpr char kHonest[] =
    "echo node $4 listens on somewhere >&2; trap 'exit 0' TERM; "
    "while :; do read line || kill -STOP $$; done";

TEST_F(ClusterOfScriptsTest, NodesStartAndEnd) {
  ASSERT_NO_FATAL_FAILURE(MakeCluster(kHonest));
  ASSERT_TRUE(cluster_->StartAll().ok());
  EXPECT_TRUE(cluster_->CheckHealth().ok());
  cluster_->Kill(1);
  EXPECT_FALSE(cluster_->is_running(1));
  EXPECT_TRUE(cluster_->CheckHealth().ok()) << "it was told to end";
  ASSERT_TRUE(cluster_->Start(1).ok());
  cluster_->Pause(2);
  EXPECT_TRUE(cluster_->is_paused(2));
  ASSERT_TRUE(cluster_->StartAll().ok());
  EXPECT_FALSE(cluster_->is_paused(2));
  cluster_->Pause(3);
  cluster_->Kill(3);
  EXPECT_FALSE(cluster_->is_paused(3));
  EXPECT_THAT(cluster_->Story(), HasSubstr("node 1 listens on"));
}

TEST_F(ClusterOfScriptsTest, NodeThatEndsInsteadOfListeningIsQuoted) {
  ASSERT_NO_FATAL_FAILURE(MakeCluster("echo no such disk >&2; exit 3"));
  const absl::Status started = cluster_->Start(2);
  EXPECT_TRUE(absl::IsDataLoss(started)) << started;
  EXPECT_THAT(std::string(started.message()), HasSubstr("no such disk"));
  EXPECT_THAT(std::string(started.message()), HasSubstr("exit status 3"));
}

TEST_F(ClusterOfScriptsTest, NodeThatEndsByItselfIsNoticed) {
  ASSERT_NO_FATAL_FAILURE(
      MakeCluster("echo node $4 listens on somewhere >&2; "
                  "[ $4 = 2 ] && exit 5; read line"));
  ASSERT_TRUE(cluster_->StartAll().ok());
  absl::Status health = absl::OkStatus();
  const Deadline end = alpheus::testing::InPatience();
  while (health.ok() && !end.HasPassed(Clock::Real().NowNanos())) {
    health = cluster_->CheckHealth();
  }
  EXPECT_TRUE(absl::IsDataLoss(health)) << health;
  EXPECT_THAT(std::string(health.message()), HasSubstr("node 2"));
}

TEST_F(ClusterOfScriptsTest, NodeThatEndsBadlyWhenAskedToIsAnError) {
  ASSERT_NO_FATAL_FAILURE(
      MakeCluster("trap 'exit 6' TERM; echo node $4 listens on somewhere >&2; "
                  "while :; do read line; done"));
  ASSERT_TRUE(cluster_->Start(1).ok());
  const absl::Status ended = cluster_->Terminate(1);
  EXPECT_TRUE(absl::IsDataLoss(ended)) << ended;
  EXPECT_FALSE(cluster_->is_running(1));
}

TEST_F(ClusterOfScriptsTest, FileNamesQuorumsAndAddresses) {
  ASSERT_NO_FATAL_FAILURE(MakeCluster(kHonest));
  EXPECT_EQ(cluster_->write_quorum(), 2);
  EXPECT_EQ(cluster_->read_quorum(), 2);
  EXPECT_EQ(cluster_->spare_count(), 1);
  EXPECT_NE(cluster_->address(1), cluster_->address(2));
  const auto output = cluster_->MustSucceed("cat", {"--json"});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(*output, "cat --cluster " + cluster_->file() + " --json\n");
}

}  // namespace
}  // namespace alpheus::demo
