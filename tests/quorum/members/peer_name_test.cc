// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/peer_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;

constexpr Uuid kCluster{0x9f0c5f5e6a0b4c0e, 0x8f5a2d1f6d6f4b1a};
constexpr Uuid kOther{1, 2};
constexpr char kNode3[] =
    "alpheus://9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a/node/3";
constexpr char kOperator[] =
    "alpheus://9F0C5F5E6A0B4C0E8F5A2D1F6D6F4B1A/operator";

TEST(PeerNameTest, NodesAndOperatorsHaveNames) {
  const auto node = ParsePeerName(kNode3);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(*node, (PeerName{kCluster, NodeId(3)}));
  EXPECT_FALSE(node->is_operator());
  const auto person = ParsePeerName(kOperator);
  ASSERT_TRUE(person.ok()) << person.status();
  EXPECT_EQ(person->cluster_id, kCluster);
  EXPECT_TRUE(person->is_operator());
}

TEST(PeerNameTest, OtherFormsAreRefused) {
  const std::string cluster = "alpheus://9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a";
  for (const std::string& uri :
       {std::string(), std::string("node/3"), cluster, cluster + "/",
        cluster + "/node", cluster + "/node/", cluster + "/node/0",
        cluster + "/node/65536", cluster + "/node/03", cluster + "/node/3/",
        cluster + "/node/+3", cluster + "/node/ 3", cluster + "/Operator",
        cluster + "/operator/1", "https" + cluster.substr(7) + "/node/3",
        std::string("alpheus:///node/3"), std::string("alpheus://1/node/3"),
        "alpheus://" + std::string(32, '0') + "/node/3"}) {
    const auto parsed = ParsePeerName(uri);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << uri;
    EXPECT_THAT(std::string(parsed.status().message()),
                HasSubstr("Expected alpheus://CLUSTER_ID/node/NUMBER"));
  }
}

TEST(PeerNameTest, NodeIsItselfAlone) {
  EXPECT_TRUE(CheckIsNode(kNode3, kCluster, NodeId(3)).ok());
  const absl::Status other = CheckIsNode(kNode3, kCluster, NodeId(2));
  EXPECT_TRUE(absl::IsPermissionDenied(other));
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("is that of node 3, not of node 2"));
  const absl::Status person = CheckIsNode(kOperator, kCluster, NodeId(3));
  EXPECT_TRUE(absl::IsPermissionDenied(person));
  EXPECT_THAT(std::string(person.message()), HasSubstr("of an operator"));
}

TEST(PeerNameTest, OperatorActsAsAnyNode) {
  EXPECT_TRUE(CheckActsAs(kNode3, kCluster, NodeId(3)).ok());
  EXPECT_TRUE(CheckActsAs(kOperator, kCluster, NodeId(3)).ok());
  const absl::Status other = CheckActsAs(kNode3, kCluster, NodeId(1));
  EXPECT_TRUE(absl::IsPermissionDenied(other));
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("is that of node 3, and it acts as node 1"));
}

TEST(PeerNameTest, NamesAreOfOneCluster) {
  for (const char* uri : {kNode3, kOperator}) {
    EXPECT_TRUE(CheckIsOfCluster(uri, kCluster).ok());
    for (const absl::Status& refused :
         {CheckIsOfCluster(uri, kOther), CheckIsNode(uri, kOther, NodeId(3)),
          CheckActsAs(uri, kOther, NodeId(3))}) {
      EXPECT_TRUE(absl::IsPermissionDenied(refused));
      EXPECT_THAT(std::string(refused.message()), HasSubstr("another cluster"));
    }
  }
}

TEST(PeerNameTest, FabricWithoutNamesProvesNothing) {
  EXPECT_TRUE(CheckIsOfCluster("", kCluster).ok());
  EXPECT_TRUE(CheckIsNode("", kCluster, NodeId(3)).ok());
  EXPECT_TRUE(CheckActsAs("", kCluster, NodeId(3)).ok());
}

}  // namespace
}  // namespace alpheus::quorum
