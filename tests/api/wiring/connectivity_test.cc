// SPDX-License-Identifier: Apache-2.0
// Which logs of one process share an adapter, as a peer sees it: by the sockets
// of their connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/wiring/adapter.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/members/configuration.h"
#include "quorum/members/uuid_text.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/tcp/options.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "tests/replication/fabric/tcp/test_tls.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::testing {
namespace {

using fabric::ConnectionEvent;
using fabric::tcp::TcpFabric;
using fabric::tcp::TcpFabricOptions;

constexpr char kOneCluster[] = "9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a";
constexpr char kOtherCluster[] = "9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1b";

class ConnectivityTest : public ::testing::Test {
 protected:
  static quorum::ClusterConfiguration Cluster(const char* id = kOneCluster) {
    quorum::ClusterConfiguration cluster;
    cluster.cluster_id = *quorum::ParseUuid(id);
    return cluster;
  }
  // The peer encrypts if the clusters do.
  void Listen(const TestAuthority* authority = nullptr) {
    TcpFabricOptions options;
    options.limits.retry_ns = kPatienceNanos;
    if (authority != nullptr) {
      options.tls = Always(MakeTls(*authority, "URI:test://host/1"));
    }
    peer_ = std::make_unique<TcpFabric>(options, Clock::Real(), random_);
    address_ = *peer_->Listen("127.0.0.1:0");
  }
  // A log of this process connects to the peer.
  void Connect(const quorum::ClusterConfiguration& cluster, NodeId near) {
    auto opened = Connectivity::Open(cluster, near);
    ASSERT_TRUE(opened.ok()) << opened.status();
    fabric::Fabric& log = *(*opened)->fabric;
    ASSERT_TRUE(log.Connect(address_, "", InPatience()).ok());
    logs_.push_back(*std::move(opened));
    const Deadline end = InPatience();
    const size_t expected = requests_ + 1;
    while (requests_ < expected && !end.HasPassed(Clock::Real().NowNanos())) {
      for (const auto& one : logs_) {
        const auto events = Poll(*one->fabric);
        ASSERT_TRUE(events.empty()) << events.front().why;
      }
      for (const ConnectionEvent& event : Poll(*peer_)) {
        requests_ += event.kind == ConnectionEvent::Kind::kRequested ? 1 : 0;
      }
    }
    ASSERT_EQ(requests_, expected);
  }
  static std::vector<ConnectionEvent> Poll(fabric::Fabric& fabric) {
    std::array<fabric::Completion, 1> some;
    std::vector<ConnectionEvent> events;
    EXPECT_EQ(fabric.Poll(some, &events), 0u);
    return events;
  }
  uint64_t Sockets() { return peer_->counters().sockets; }

  EntropyRandom random_;
  std::unique_ptr<TcpFabric> peer_;
  std::string address_;
  std::vector<std::unique_ptr<Connectivity>> logs_;
  size_t requests_ = 0;
};

TEST_F(ConnectivityTest, LogsOfOneMemberOfAClusterShareAnAdapter) {
  Listen();
  for (int log = 0; log < 3; ++log) Connect(Cluster(), NodeId(1));
  EXPECT_EQ(Sockets(), 1u);
  // A later list of the same members is no other cluster.
  quorum::ClusterConfiguration later = Cluster();
  later.id = 2;
  Connect(later, NodeId(1));
  EXPECT_EQ(Sockets(), 1u);
}

TEST_F(ConnectivityTest, OtherMembersAndClustersHaveTheirOwn) {
  Listen();
  Connect(Cluster(), NodeId(1));
  Connect(Cluster(), NodeId(2));
  EXPECT_EQ(Sockets(), 2u);
  Connect(Cluster(), NodeId(0));
  EXPECT_EQ(Sockets(), 3u);
  Connect(Cluster(kOtherCluster), NodeId(1));
  EXPECT_EQ(Sockets(), 4u);
  Connect(Cluster(), NodeId(2));
  EXPECT_EQ(Sockets(), 4u);
}

// The adapter goes with its last log; the next log gets another one.
TEST_F(ConnectivityTest, AdapterGoesWithItsLastLog) {
  Listen();
  Connect(Cluster(), NodeId(1));
  Connect(Cluster(), NodeId(1));
  logs_.pop_back();
  Connect(Cluster(), NodeId(1));
  EXPECT_EQ(Sockets(), 1u);
  logs_.clear();
  const Deadline end = InPatience();
  while (Sockets() > 0 && !end.HasPassed(Clock::Real().NowNanos())) {
    Poll(*peer_);
  }
  EXPECT_EQ(Sockets(), 0u);
  Connect(Cluster(), NodeId(1));
  EXPECT_EQ(Sockets(), 1u);
}

// Each file makes a difference: also that there is none.
TEST_F(ConnectivityTest, LogsWithOtherCertificatesHaveTheirOwn) {
  const TestAuthority& authority = TestNodeAuthority();
  const TestCertificate own = authority.IssueFor(
      absl::StrCat("URI:alpheus://", kOneCluster, "/node/1"));
  const TempDirectory directory;
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory.File(name)) << text;
    std::filesystem::permissions(directory.File(name),
                                 std::filesystem::perms::owner_read);
    return directory.File(name);
  };
  Listen(&authority);
  quorum::ClusterConfiguration cluster = Cluster();
  cluster.encryption = {
      .authorities_file = put("authorities.pem", authority.certificate()),
      .certificate_file = put("node.pem", own.certificate),
      .key_file = put("node.key", own.key)};
  Connect(cluster, NodeId(1));
  Connect(cluster, NodeId(1));
  EXPECT_EQ(Sockets(), 1u);
  cluster.encryption->revoked_file = put("revoked.pem", authority.Revoke({}));
  Connect(cluster, NodeId(1));
  EXPECT_EQ(Sockets(), 2u);
  cluster.encryption->authorities_file =
      put("same.pem", authority.certificate());
  Connect(cluster, NodeId(1));
  EXPECT_EQ(Sockets(), 3u);
  cluster.encryption->certificate_file = put("copy.pem", own.certificate);
  Connect(cluster, NodeId(1));
  EXPECT_EQ(Sockets(), 4u);
  cluster.encryption->key_file = put("copy.key", own.key);
  Connect(cluster, NodeId(1));
  Connect(cluster, NodeId(1));
  EXPECT_EQ(Sockets(), 5u);
}

}  // namespace
}  // namespace alpheus::testing
