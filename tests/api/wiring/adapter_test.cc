// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/base/random.h"
#include "replication/fabric/tcp/tcp_fabric.h"

namespace alpheus {
namespace {

using ::testing::HasSubstr;

quorum::ClusterConfiguration TwoNodes(const char* host,
                                      quorum::ClusterFabric fabric) {
  quorum::ClusterConfiguration cluster;
  cluster.members = {{NodeId(1), {host, 7400}}, {NodeId(2), {host, 7401}}};
  cluster.fabric = fabric;
  return cluster;
}

TEST(AdapterTest, SocketsAreTheDefault) {
  EntropyRandom random;
  const auto fabric = OpenAdapter(
      TwoNodes("127.0.0.1", quorum::ClusterFabric::kTcp), NodeId(1), random);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_NE(dynamic_cast<fabric::tcp::TcpFabric*>(fabric->get()), nullptr);
}

// With adapters or without: none of them leads to loopback's addresses of a
// network that no machine has.
TEST(AdapterTest, WithoutAnAdapterThatLeadsToAMemberItIsSaid) {
  EntropyRandom random;
  const auto fabric = OpenAdapter(
      TwoNodes("192.0.2.1", quorum::ClusterFabric::kVerbs), NodeId(2), random);
  EXPECT_EQ(fabric.status().code(), absl::StatusCode::kUnavailable)
      << fabric.status();
  EXPECT_THAT(std::string(fabric.status().message()),
              ::testing::AnyOf(HasSubstr("no adapter with RDMA of this machine "
                                         "leads to 192.0.2.1:7401"),
                               HasSubstr("Is the module rdma_ucm loaded?")));
}

TEST(AdapterTest, NamesAreNotLookedUp) {
  EntropyRandom random;
  const auto fabric = Connectivity::Open(
      TwoNodes("localhost", quorum::ClusterFabric::kVerbs), NodeId(1));
  EXPECT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument)
      << fabric.status();
}

}  // namespace
}  // namespace alpheus
