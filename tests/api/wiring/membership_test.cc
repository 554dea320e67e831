// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/membership.h"

#include <gtest/gtest.h>

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
