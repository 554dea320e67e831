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

TEST(ConfigurationTest, PersistedPartHasEveryIncarnation) {
  const std::vector<Member> formatted{
      {NodeId(3), 33}, {NodeId(1), 11}, {NodeId(2), 22}};
  const auto configuration = PersistedConfiguration(Three(), formatted);
  ASSERT_TRUE(configuration.ok()) << configuration.status();
  EXPECT_EQ(
      *configuration,
      (Configuration{
          {1, 3, 2, {{NodeId(1), 11}, {NodeId(2), 22}, {NodeId(3), 33}}}}));
}

TEST(ConfigurationTest, LargestConfigurationFitsASuperline) {
  ClusterOptions options = ThreeNodes();
  options.members.clear();
  std::vector<Member> formatted;
  for (uint64_t node = 1; node <= kMembersMax; ++node) {
    options.members.push_back(NodeAt(node, static_cast<uint16_t>(node)));
    formatted.push_back({NodeId(node), node});
  }
  Superline superline;
  superline.configuration =
      *PersistedConfiguration(*MakeClusterConfiguration(options), formatted);
  EXPECT_EQ(DecodeSuperline(EncodeSuperline(superline))->configuration,
            superline.configuration);
}

TEST(ConfigurationTest, FormattedReplicasMustBeThoseOfTheMembers) {
  const Member one{NodeId(1), 11};
  const Member two{NodeId(2), 22};
  const struct {
    std::vector<Member> formatted;
    const char* message;
  } cases[] = {
      {{one, two}, "2 formatted replicas for 3 members"},
      {{one, two, {NodeId(4), 44}}, "no formatted replica of member 3"},
      {{one, two, two}, "no formatted replica of member 3"},
      {{one, two, {NodeId(3), 0}}, "replica of member 3 has incarnation 0"},
  };
  for (const auto& c : cases) {
    ExpectRefused(PersistedConfiguration(Three(), c.formatted).status(),
                  c.message);
  }
}

// P-H17: the file of one node, brought to another one.
TEST(ConfigurationTest, CopiedReplicaIsRefused) {
  const std::vector<Member> formatted{
      {NodeId(1), 11}, {NodeId(2), 22}, {NodeId(3), 11}};
  ExpectRefused(PersistedConfiguration(Three(), formatted).status(),
                "members 1 and 3 share the incarnation b");
}

// P-A5, P-H18: either side may be the one that is behind.
TEST(ConfigurationTest, OlderConfigurationIsRefused) {
  const Configuration first{{1, 1, 1, {{NodeId(1), 11}}}};
  const Configuration second{{2, 1, 1, {{NodeId(1), 11}}}};
  EXPECT_TRUE(CheckPeerConfiguration(first, first).ok());
  const absl::Status own_is_older = CheckPeerConfiguration(first, second);
  EXPECT_EQ(own_is_older.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(own_is_older.message()),
              HasSubstr("configuration 1 of this node is older than 2"));
  const absl::Status peer_is_older = CheckPeerConfiguration(second, first);
  EXPECT_EQ(peer_is_older.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(peer_is_older.message()),
              HasSubstr("configuration 1 of the peer is older than 2"));
}

TEST(ConfigurationTest, TwoConfigurationsUnderOneIdAreRefused) {
  const Configuration here{{1, 1, 1, {{NodeId(1), 11}}}};
  const Configuration there{{1, 1, 1, {{NodeId(1), 12}}}};
  ExpectRefused(CheckPeerConfiguration(here, there),
                "two configurations with id 1 differ");
}

}  // namespace
}  // namespace alpheus::quorum
