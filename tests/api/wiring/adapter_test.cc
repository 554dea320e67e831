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

// A caller who waits longer than the fabric would is not cut short by it.
TEST(AdapterTest, PatienceOfTheCallerIsTheFabrics) {
  EntropyRandom random;
  const auto cluster = TwoNodes("127.0.0.1", quorum::ClusterFabric::kTcp);
  const auto own = OpenAdapter(cluster, NodeId(1), random);
  ASSERT_TRUE(own.ok()) << own.status();
  const auto longer =
      OpenAdapter(cluster, NodeId(1), random, {.patience_ms = 120'000});
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ((*longer)->limits().retry_ns, 120'000'000'000);
  const auto shorter =
      OpenAdapter(cluster, NodeId(1), random, {.patience_ms = 1});
  ASSERT_TRUE(shorter.ok()) << shorter.status();
  EXPECT_EQ((*shorter)->limits().retry_ns, (*own)->limits().retry_ns);
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
