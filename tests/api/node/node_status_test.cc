// SPDX-License-Identifier: Apache-2.0
// A node's word of itself, while its thread runs.
#include "api/node/node_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "alpheus/log.h"
#include "api/node/node.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestCluster;

class NodeStatusTest : public ::testing::Test {
 protected:
  NodeStatus MustObserve(int node) {
    const std::optional<NodeStatus> status =
        cluster_.NodeOf(node).Observe(testing::kPatienceMs);
    EXPECT_TRUE(status.has_value());
    return status.value_or(NodeStatus());
  }
  void Format() {
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = cluster_.file();
    const auto id = Log::Format(options);
    ASSERT_TRUE(id.ok()) << id.status();
  }
  std::unique_ptr<Log> Open() {
    LogOptions options;
    options.replication.cluster_file = cluster_.file();
    options.replication.node = 1;
    options.replication.open_timeout_ms = 60'000;
    options.replication.gather_ms = 60'000;  // all of them
    options.replication.ack_timeout_ms = 60'000;
    auto log = Log::Open(options);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }

  TestCluster cluster_{3};
};

TEST_F(NodeStatusTest, ReplicaIsTold) {
  EXPECT_THAT(MustObserve(2).replicas, IsEmpty());
  Format();
  const std::unique_ptr<Log> log = Open();
  ASSERT_NE(log, nullptr);
  const auto lsn = log->Append("record");
  ASSERT_TRUE(lsn.ok()) << lsn.status();
  // Durable on two of three.
  const Deadline deadline = testing::InPatience();
  while (log->persisted_lsn(PersistedBy::kAllInSync) < *lsn) {
    ASSERT_TRUE(log->WaitDurable(*lsn).ok());
    ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()));
  }
  const NodeStatus status = MustObserve(2);
  ASSERT_THAT(status.replicas, SizeIs(1));
  const NodeStatus::Replica& replica = status.replicas.front();
  EXPECT_EQ(replica.log, "main");
  EXPECT_TRUE(replica.is_served);
  EXPECT_TRUE(replica.followed.in_session);
  EXPECT_EQ(replica.followed.log_epoch, log->report().epoch);
  EXPECT_EQ(replica.followed.persisted_lsn, *lsn);
  EXPECT_GE(status.connections, 1U);
  EXPECT_EQ(log->replication_status().nodes, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_THAT(log->replication_status().out_of_sync_nodes, IsEmpty());
}

// As at a node whose thread a medium keeps.
TEST_F(NodeStatusTest, NodeThatDoesNotRunTellsNothing) {
  cluster_.Stop(3);
  NodeOptions options;
  options.cluster_file = cluster_.file();
  options.node = 3;
  options.directory =
      std::filesystem::path(cluster_.ReplicaPath(3)).parent_path();
  const auto node = Node::Start(options);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_FALSE((*node)->Observe(/*patience_ms=*/1).has_value());
  (*node)->Stop();
  EXPECT_FALSE((*node)->Observe(testing::kPatienceMs).has_value())
      << "nobody waits for a node that has ended";
}

}  // namespace
}  // namespace alpheus
