// SPDX-License-Identifier: Apache-2.0
// The verdict on a cluster's log, from what its replicas say.
#include "tools/cli/reports/cluster_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "log/format/epoch_table.h"
#include "nlohmann/json.hpp"

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

cli::ClusterStatus StatusOfThree() {
  cli::ClusterStatus status;
  status.log = "main";
  status.cluster_file = "cluster.toml";
  status.replica_count = 3;
  status.write_quorum = 2;
  status.read_quorum = 2;
  for (uint64_t node = 1; node <= 3; ++node) {
    ReplicaReading replica;
    replica.node = node;
    replica.info.emplace();
    replica.standing.emplace();
    replica.answered = true;
    status.replicas.push_back(replica);
    status.in_sync.push_back(true);
  }
  return status;
}

TEST(ClusterStatusTest, FullTableOfOpeningsIsNotGood) {
  cli::ClusterStatus status = StatusOfThree();
  status.epoch_count = kEpochTableCapacity - 1;
  EXPECT_EQ(status.Verdict(), absl::OkStatus());
  EXPECT_EQ(status.ToJson()["can_be_opened"], true);
  status.epoch_count = kEpochTableCapacity;
  EXPECT_TRUE(absl::IsResourceExhausted(status.Verdict()));
  EXPECT_TRUE(absl::IsResourceExhausted(status.VerdictOfAll()));
  EXPECT_EQ(status.ToJson()["can_be_opened"], false);
  EXPECT_THAT(status.ToText(), HasSubstr("The table of openings is full"));
}

TEST(ClusterStatusTest, OnlyWhatNobodyReachesIsToBeStarted) {
  cli::ClusterStatus status = StatusOfThree();
  for (const size_t i : {0u, 1u, 2u}) {
    status.replicas[i].info.reset();
    status.replicas[i].standing.reset();
    status.replicas[i].status = absl::UnauthenticatedError("another key");
  }
  EXPECT_THAT(std::string(status.CanBeOpened().message()),
              AllOf(HasSubstr("nodes 1, 2, 3 answer, and the fault there"),
                    Not(HasSubstr("start")), Not(HasSubstr("append"))));
  status.replicas[2].answered = false;
  EXPECT_THAT(std::string(status.CanBeOpened().message()),
              HasSubstr("start 1 more node; nodes 1, 2 answer"));
  for (ReplicaReading& replica : status.replicas) replica.answered = false;
  EXPECT_THAT(std::string(status.CanBeOpened().message()),
              HasSubstr("serve 0: start 2 more nodes"));
}

TEST(ClusterStatusTest, CertificatesAreShownAndOldOnesWarnedOf) {
  constexpr int64_t kDay = 24 * 3'600;
  constexpr int64_t kNow = 20'000 * kDay;  // 2024-10-04
  cli::ClusterStatus status = StatusOfThree();
  status.replicas[0].standing->certificate_end_s = kNow + 15 * kDay;
  status.replicas[1].standing->certificate_end_s = kNow + 14 * kDay;
  EXPECT_THAT(status.CertificateWarnings(kNow),
              ElementsAre(AllOf(HasSubstr("node 2 expires at 2024-10-18"),
                                HasSubstr("others refuse the node"))));
  EXPECT_THAT(status.CertificateWarnings(kNow + 14 * kDay),
              ElementsAre(HasSubstr("node 1 expires at 2024-10-19"),
                          HasSubstr("node 2 has expired at 2024-10-18")));
  EXPECT_THAT(status.ToText(),
              AllOf(HasSubstr("its certificate is good until 2024-10-19"),
                    HasSubstr("its certificate is good until 2024-10-18")));
  const auto json = status.ToJson();
  EXPECT_EQ(json["replicas"][0]["certificate_end_s"], kNow + 15 * kDay);
  EXPECT_EQ(json["replicas"][2]["certificate_end_s"], nullptr);
  // Another matter than the log's.
  EXPECT_EQ(status.Verdict(), absl::OkStatus());
}

TEST(ClusterStatusTest, NoCertificateNoWord) {
  const cli::ClusterStatus status = StatusOfThree();
  EXPECT_THAT(status.ToText(), Not(HasSubstr("certificate")));
  EXPECT_TRUE(status.CertificateWarnings(int64_t{1} << 40).empty());
}

TEST(ClusterStatusTest, WhatBecameOfAPrimaryIsInTheNextStatus) {
  cli::ClusterStatus before;
  before.primary = 2;
  before.newest = Epoch(7);
  cli::ClusterStatus after = before;
  EXPECT_EQ(cli::WhatBecameOfPrimary(before, after),
            "node 2 goes on writing the log");
  after.newest = Epoch(8);
  EXPECT_EQ(cli::WhatBecameOfPrimary(before, after),
            "the primary of node 2 was ended");
  after = before;
  after.primary = 0;
  EXPECT_EQ(cli::WhatBecameOfPrimary(before, after),
            "the primary of node 2 was ended");
}

}  // namespace
}  // namespace alpheus::testing
