// SPDX-License-Identifier: Apache-2.0
#include "recovery/log_creation.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/core/format_region.h"
#include "replication/fabric/sim/sim_network.h"
#include "tests/testing/scripted_replica.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;

// Three members without a replica; host 3 creates.
struct Members {
  SimNetwork network{SimOptions{.hosts = 4}};
  ModelPersistence memory{4096};
  Random random{1};
  std::map<int, Format> formatted;
  int refuses = 0;  // node
  std::vector<std::unique_ptr<ScriptedReplica>> servers;

  Members() {
    for (int node = 1; node <= 3; ++node) {
      Fabric& fabric = network.fabric(node - 1);
      EXPECT_TRUE(fabric.Listen(SimNetwork::Address(node - 1, 1)).ok());
      servers.push_back(std::make_unique<ScriptedReplica>(
          fabric, NodeId(static_cast<uint64_t>(node)), memory, nullptr,
          [this, node](const Format& format) -> absl::Status {
            if (node == refuses) return absl::ResourceExhaustedError("full");
            formatted[node] = format;
            return absl::OkStatus();
          }));
    }
  }

  LogCreationOptions Options() {
    LogCreationOptions options;
    options.cluster_id = {1, 2};
    options.log_id = {3, 4};
    options.self = {NodeId(9), 1};
    options.sizes = {3, 2, 2};
    for (uint64_t node = 1; node <= 3; ++node) {
      options.peers.push_back(
          {NodeId(node), SimNetwork::Address(static_cast<int>(node) - 1, 1)});
    }
    options.region_bytes = 1 << 20;
    options.log_name = "test";
    options.step_timeout_ns = 5'000'000;
    return options;
  }

  std::unique_ptr<LogCreation> Create(const LogCreationOptions& options) {
    auto creation = *LogCreation::Start(network.fabric(3), network.clock(),
                                        random, options);
    while (!creation->Poll()) {
      if (!network.Step()) network.Run(100'000);
      Completion completions[16];
      std::vector<ConnectionEvent> events;
      for (int host = 0; host < 4; ++host) {
        if (!network.IsUp(host)) continue;
        events.clear();
        const size_t n = network.fabric(host).Poll(completions, &events);
        for (const ConnectionEvent& event : events) {
          if (host == 3) {
            creation->Take(event);
          } else {
            servers[host]->Take(event);
          }
        }
        for (size_t i = 0; i < n; ++i) {
          if (host == 3) {
            creation->Take(completions[i]);
          } else {
            servers[host]->Take(completions[i]);
          }
        }
      }
    }
    return creation;
  }
};

TEST(LogCreationTest, AllMembersGetOneConfiguration) {
  Members members;
  const auto creation = members.Create(members.Options());
  ASSERT_TRUE(creation->status().ok()) << creation->status();
  ASSERT_EQ(members.formatted.size(), 3u);
  const Configuration& configuration = creation->configuration();
  EXPECT_EQ(configuration.id, 1u);
  EXPECT_EQ(configuration.replica_count, 3u);
  EXPECT_EQ(configuration.write_quorum, 2u);
  ASSERT_EQ(configuration.members.size(), 3u);
  EXPECT_NE(configuration.members[0].incarnation,
            configuration.members[1].incarnation);
  for (const auto& [node, format] : members.formatted) {
    EXPECT_EQ(format.configuration, configuration);
    EXPECT_EQ(format.region_bytes, uint64_t{1} << 20);
  }
}

TEST(LogCreationTest, MemberThatCannotBeReachedLeavesNothing) {
  Members members;
  members.servers[1].reset();
  members.network.Crash(1);
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(creation->status().ToString(),
              HasSubstr("Nothing was formatted"));
  EXPECT_TRUE(members.formatted.empty());
}

TEST(LogCreationTest, MemberThatFailsIsNamedAndSoAreTheOthers) {
  Members members;
  members.refuses = 2;
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(absl::IsResourceExhausted(creation->status()))
      << creation->status();
  EXPECT_THAT(creation->status().ToString(), HasSubstr("node 2"));
  EXPECT_THAT(creation->status().ToString(),
              HasSubstr("It exists on node 1 at sim:0:1, node 3 at sim:2:1"));
}

TEST(LogCreationTest, LogThatExistsIsNotFormatted) {
  Members members;
  ModelPersistence pmem((*Layout::ForRing(1024, 102)).region_bytes);
  FormatIdentity identity;
  identity.node = NodeId(2);
  identity.cluster_id = {1, 2};
  identity.log_id = {3, 4};
  identity.configuration.members = {{NodeId(2), 1}};
  ASSERT_TRUE(
      FormatRegion(pmem, pmem.region(), *Layout::ForRing(1024, 102), identity)
          .ok());
  const auto replica =
      *Replica<ModelPersistence>::Open(pmem, pmem.region(), {.name = "two"});
  members.servers[1]->SetReplica(replica.get());
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(absl::IsAlreadyExists(creation->status())) << creation->status();
  EXPECT_TRUE(members.formatted.empty());
}

TEST(LogCreationTest, SilentMemberIsNotWaitedForForEver) {
  Members members;
  members.servers[2]->on_request = [](const Message&) { return false; };
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(creation->status().ToString(), HasSubstr("is unknown"));
}

TEST(LogCreationTest, MembersMustBeN) {
  Members members;
  LogCreationOptions options = members.Options();
  options.peers.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(
      LogCreation::Start(members.network.fabric(3), members.network.clock(),
                         members.random, options)
          .status()));
}

TEST(LogCreationTest, SizeThatNoReplicatedLogHasIsRefused) {
  Members members;
  for (const uint64_t bytes : {uint64_t{300} << 30, uint64_t{4096}}) {
    LogCreationOptions options = members.Options();
    options.region_bytes = bytes;
    const auto creation =
        LogCreation::Start(members.network.fabric(3), members.network.clock(),
                           members.random, options);
    EXPECT_TRUE(absl::IsInvalidArgument(creation.status()))
        << creation.status();
  }
  EXPECT_TRUE(members.formatted.empty());
}

}  // namespace
}  // namespace alpheus::testing
