// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/membership.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/base/random.h"
#include "quorum/membership/zookeeper/zookeeper_client.h"

namespace alpheus {
namespace {

using quorum::SessionState;

MembershipOptions OptionsOf(const quorum::PrimaryId& self) {
  MembershipOptions options;
  options.log_name = "main";
  options.self = self;
  return options;
}

quorum::ClusterConfiguration WithZookeeper() {
  quorum::ClusterConfiguration cluster;
  cluster.zookeeper.emplace().servers = {{"127.0.0.1", 1}};
  return cluster;
}

TEST(MembershipWiringTest, AClusterWithoutAServiceIsStatic) {
  EntropyRandom random;
  const auto membership = OpenMembership({}, OptionsOf({NodeId(1), 7}), random);
  ASSERT_TRUE(membership.ok()) << membership.status();
  EXPECT_EQ((*membership)->session().state, SessionState::kConnected);
}

TEST(MembershipWiringTest, AProcessThatCannotHaveBallotsIsRefused) {
  EntropyRandom random;
  for (const auto& cluster :
       {quorum::ClusterConfiguration(), WithZookeeper()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        OpenMembership(cluster, OptionsOf({NodeId(1), 0}), random).status()));
  }
}

// Its names led nowhere: ballots are counted up, and an operator is told why.
TEST(MembershipWiringTest, AServiceWithoutAServerIsAsNoneAndSaysSo) {
  EntropyRandom random;
  quorum::ClusterConfiguration cluster = WithZookeeper();
  cluster.zookeeper->servers.clear();
  cluster.zookeeper->warning = "nobody knows these names";
  const auto membership =
      OpenMembership(cluster, OptionsOf({NodeId(1), 7}), random);
  ASSERT_TRUE(membership.ok()) << membership.status();
  EXPECT_EQ((*membership)->session().state, SessionState::kConnected);
  EXPECT_EQ((*membership)->problem(),
            absl::UnavailableError("nobody knows these names"));
  const auto request = (*membership)->Ask({{Epoch(0), Epoch(0)}, {3, 2, 2}});
  EXPECT_EQ(request->Poll(), Polled::kDone);
}

// The others are used.
TEST(MembershipWiringTest, AServerThatWasLeftOutIsWarnedOf) {
  if (!quorum::HasZookeeperClient()) {
    GTEST_SKIP() << "skipped: built without libzookeeper-st-dev";
  }
  EntropyRandom random;
  quorum::ClusterConfiguration cluster = WithZookeeper();
  cluster.zookeeper->warning = "nobody knows one of these names";
  const auto membership =
      OpenMembership(cluster, OptionsOf({NodeId(1), 7}), random);
  ASSERT_TRUE(membership.ok()) << membership.status();
  EXPECT_EQ((*membership)->warning(), "nobody knows one of these names");
  EXPECT_TRUE((*membership)->problem().ok());
}

TEST(MembershipWiringTest, AClusterWithZookeeperLooksForIt) {
  EntropyRandom random;
  const auto membership =
      OpenMembership(WithZookeeper(), OptionsOf({NodeId(1), 7}), random);
  if (!quorum::HasZookeeperClient()) {
    EXPECT_TRUE(absl::IsUnimplemented(membership.status()));
    return;
  }
  ASSERT_TRUE(membership.ok()) << membership.status();
  (*membership)->Poll();
  EXPECT_EQ((*membership)->session().state, SessionState::kConnecting);
}

}  // namespace
}  // namespace alpheus
