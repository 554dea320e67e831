// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quorum/arithmetic/ballot.h"

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;

ClusterMember NodeAt(uint64_t node, uint16_t port, bool may_be_primary = true) {
  return {NodeId(node), {"host", port}, may_be_primary};
}

ClusterOptions ThreeNodes() {
  ClusterOptions options;
  options.cluster_id = {1, 2};
  options.members = {NodeAt(1, 7401), NodeAt(2, 7402), NodeAt(3, 7403)};
  return options;
}

ClusterConfiguration Three() { return *MakeClusterConfiguration(ThreeNodes()); }

void ExpectRefused(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(ConfigurationTest, DefaultsAreMajorities) {
  const ClusterConfiguration cluster = Three();
  EXPECT_EQ(cluster.cluster_id, (Uuid{1, 2}));
  EXPECT_EQ(cluster.id, 1u);
  EXPECT_EQ(cluster.sizes, (QuorumSizes{3, 2, 2}));
}

TEST(ConfigurationTest, GivenSizesAreTaken) {
  ClusterOptions options = ThreeNodes();
  options.configuration_id = 7;
  options.write_quorum = 1;
  options.read_quorum = 3;
  const auto cluster = MakeClusterConfiguration(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->id, 7u);
  EXPECT_EQ(cluster->sizes, (QuorumSizes{3, 1, 3}));
}

// CF4 (configuration.h).
TEST(ConfigurationTest, OrderOfTheListMeansNothing) {
  ClusterOptions options = ThreeNodes();
  std::swap(options.members[0], options.members[2]);
  EXPECT_EQ(*MakeClusterConfiguration(options), Three());
}

// CF1 (configuration.h); the arithmetic is tested in quorum_test.
TEST(ConfigurationTest, SizesThatDoNotFitAreRefused) {
  ClusterOptions options = ThreeNodes();
  options.write_quorum = 4;
  ExpectRefused(MakeClusterConfiguration(options).status(), "W = 4 of N = 3");
  options.write_quorum = 2;
  options.read_quorum = 1;
  ExpectRefused(MakeClusterConfiguration(options).status(),
                "R + W = 1 + 2 with N = 3");
  options.members.clear();
  ExpectRefused(MakeClusterConfiguration(options).status(), "N = 0 replicas");
}

// CF2, CF3 (configuration.h).
TEST(ConfigurationTest, MembersThatClashAreRefused) {
  const struct {
    std::vector<ClusterMember> members;
    const char* message;
  } cases[] = {
      {{NodeAt(0, 1)}, "member with node 0; it must be 1 to 65535"},
      {{NodeAt(kBallotNodeMax + 1, 1)}, "member with node 65536"},
      {{NodeAt(1, 1), NodeAt(2, 2), NodeAt(1, 3)},
       "node 1 is a member twice, at host:1 and host:3"},
      {{NodeAt(1, 1), NodeAt(2, 2), NodeAt(3, 2)},
       "nodes 2 and 3 share the address host:2"},
      {{NodeAt(1, 1, false), NodeAt(2, 2, false)}, "no member may be primary"},
  };
  for (const auto& c : cases) {
    ClusterOptions options = ThreeNodes();
    options.members = c.members;
    ExpectRefused(MakeClusterConfiguration(options).status(), c.message);
  }
}

TEST(ConfigurationTest, OnePossiblePrimaryIsEnough) {
  ClusterOptions options = ThreeNodes();
  options.members[0].may_be_primary = false;
  options.members[2].may_be_primary = false;
  EXPECT_TRUE(MakeClusterConfiguration(options).ok());
}

TEST(ConfigurationTest, IdsOfZeroAreRefused) {
  ClusterOptions options = ThreeNodes();
  options.configuration_id = 0;
  ExpectRefused(MakeClusterConfiguration(options).status(),
                "configuration id is 0");
  options.cluster_id = {};
  ExpectRefused(MakeClusterConfiguration(options).status(),
                "cluster id is zero");
}

TEST(ConfigurationTest, LargestConfigurationFitsASuperline) {
  ClusterOptions options = ThreeNodes();
  options.members.clear();
  for (uint64_t node = 1; node <= kMembersMax; ++node) {
    options.members.push_back(NodeAt(node, static_cast<uint16_t>(node)));
  }
  const auto cluster = MakeClusterConfiguration(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Superline superline;
  superline.configuration = {{cluster->id,
                              cluster->sizes.replica_count,
                              cluster->sizes.write_quorum,
                              {}}};
  for (const ClusterMember& member : cluster->members) {
    superline.configuration.members.push_back({member.node, ~uint64_t{0}});
  }
  EXPECT_EQ(DecodeSuperline(EncodeSuperline(superline))->configuration,
            superline.configuration);
}

}  // namespace
}  // namespace alpheus::quorum
