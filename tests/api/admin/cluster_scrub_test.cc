// SPDX-License-Identifier: Apache-2.0
// The nodes of a cluster, asked over TCP to scrub their replicas.
#include "api/admin/cluster_scrub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::HasSubstr;
using testing::TestCluster;

class ClusterScrubTest : public ::testing::Test {
 protected:
  ClusterScrubTest() {
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = cluster_.file();
    EXPECT_TRUE(Log::Format(options).ok());
  }

  LogOptions OptionsOfNode1() const {
    LogOptions options;
    options.replication.cluster_file = cluster_.file();
    options.replication.node = 1;
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    return options;
  }
  void AppendTwo() {
    const auto log = Log::Open(OptionsOfNode1());
    ASSERT_TRUE(log.ok()) << log.status();
    for (const char* text : {"one", "two"}) {
      ASSERT_TRUE((*log)->Append(text).ok());
    }
    ASSERT_TRUE((*log)->Close().ok());
  }
  std::vector<ScrubResult> ScrubAll(ClusterScrubOptions options = {}) {
    if (options.cluster_file.empty()) options.cluster_file = cluster_.file();
    auto scrubs = ScrubCluster(options);
    EXPECT_TRUE(scrubs.ok()) << scrubs.status();
    return scrubs.ok() ? *std::move(scrubs) : std::vector<ScrubResult>();
  }

  // Flips a bit in the first byte of `text` in the file.
  static void FlipFirst(const std::string& path, const std::string& text) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    const size_t at = bytes.find(text);
    ASSERT_NE(at, std::string::npos) << text;
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(text[0] ^ 1));
  }

  TestCluster cluster_{3};
};

TEST_F(ClusterScrubTest, AllNodesSayWhatTheyFound) {
  AppendTwo();
  int told = 0;
  ClusterScrubOptions options;
  options.timeout_ms = 60'000;
  options.progress = [&told](const ScrubResult&) { ++told; };
  const std::vector<ScrubResult> scrubs = ScrubAll(options);
  ASSERT_EQ(scrubs.size(), 3u);
  for (const ScrubResult& scrub : scrubs) {
    EXPECT_TRUE(scrub.status.ok()) << scrub.status;
    EXPECT_EQ(scrub.said.pass.records, 2u);
    EXPECT_EQ(scrub.said.pass.damaged, 0u);
    EXPECT_EQ(scrub.said.passes, 1u);
  }
  EXPECT_GE(told, 3);
}

// Nodes scrub on by themselves.
TEST_F(ClusterScrubTest, CallerMayWaitNoMore) {
  AppendTwo();
  const std::vector<ScrubResult> scrubs =
      ScrubAll({.timeout_ms = 60'000, .gives_up = [] { return true; }});
  ASSERT_EQ(scrubs.size(), 3u);
  for (const ScrubResult& scrub : scrubs) {
    EXPECT_TRUE(absl::IsCancelled(scrub.status)) << scrub.status;
    EXPECT_THAT(std::string(scrub.status.message()),
                HasSubstr("scrubs on by itself"));
  }
}

// The replica of a primary that runs is scrubbed by it, and its node tells.
TEST_F(ClusterScrubTest, ReplicaOfARunningPrimaryIsScrubbedToo) {
  LogOptions options = OptionsOfNode1();
  options.path = cluster_.ReplicaPath(1);
  const auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  for (const char* text : {"one", "two"}) {
    ASSERT_TRUE((*log)->Append(text).ok());
  }
  FlipFirst(options.path, "two");
  std::vector<ScrubResult> scrubs;
  // Its node hears of it soon.
  do {
    scrubs = ScrubAll({.timeout_ms = 60'000});
    ASSERT_EQ(scrubs.size(), 3u);
  } while (absl::IsUnavailable(scrubs[0].status));
  EXPECT_TRUE(scrubs[0].status.ok()) << scrubs[0].status;
  EXPECT_EQ(scrubs[0].said.pass.records, 2u);
  EXPECT_EQ(scrubs[0].said.total.repaired, 1u);
  EXPECT_EQ(scrubs[1].said.total.repaired, 0u);
  const ReplicationStatus status = (*log)->replication_status();
  EXPECT_EQ(status.repaired_records, 1u);
  EXPECT_EQ(status.scrub_passes, scrubs[0].said.passes);
  ASSERT_TRUE((*log)->Close().ok());
}

// Two nodes: all that there is beside the damaged replica is the one that the
// primary has. One record is larger than what is shown at once.
TEST_F(ClusterScrubTest, BackupIsRepairedFromTheReplicaOfARunningPrimary) {
  TestCluster two(2);
  FormatOptions format;
  format.region_bytes = 512 * 1024;
  format.cluster_file = two.file();
  ASSERT_TRUE(Log::Format(format).ok());
  LogOptions options = OptionsOfNode1();
  options.replication.cluster_file = two.file();
  options.path = two.ReplicaPath(1);
  const auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  const std::string large = "large" + std::string(100'000, 'l') + "end";
  for (const std::string& text :
       {std::string("one"), large, std::string("three")}) {
    ASSERT_TRUE((*log)->Append(text).ok());
  }
  for (const std::string text : {"one", "llend", "three"}) {
    FlipFirst(two.ReplicaPath(2), text);
  }
  std::vector<ScrubResult> scrubs;
  // Node 1 hears of its primary soon.
  do {
    scrubs =
        ScrubAll({.cluster_file = two.file(), .node = 2, .timeout_ms = 60'000});
    ASSERT_EQ(scrubs.size(), 1u);
  } while (scrubs[0].said.total.repaired == 0);
  EXPECT_TRUE(scrubs[0].status.ok()) << scrubs[0].status;
  EXPECT_EQ(scrubs[0].said.pass.damaged, 3u);
  EXPECT_EQ(scrubs[0].said.pass.repaired, 3u);
  // The log goes on, and its own replica is scrubbed as before.
  ASSERT_TRUE((*log)->Append("four").ok());
  scrubs = ScrubAll({.cluster_file = two.file(), .timeout_ms = 60'000});
  ASSERT_EQ(scrubs.size(), 2u);
  for (const ScrubResult& scrub : scrubs) {
    EXPECT_TRUE(scrub.status.ok()) << scrub.status;
    EXPECT_EQ(scrub.said.pass.records, 4u);
    EXPECT_EQ(scrub.said.pass.damaged, 0u);
  }
  ASSERT_TRUE((*log)->Close().ok());
}

// One pass behind the other, while a ring that is used again many times is
// written and cleaned by several threads.
TEST_F(ClusterScrubTest, WritersAndCleanersDisturbNoScrub) {
  constexpr int kThreads = 3;
  constexpr int kRecordsEach = 1'000;
  LogOptions options = OptionsOfNode1();
  options.path = cluster_.ReplicaPath(1);
  options.replication.scrub_bytes_per_second = uint64_t{1} << 30;
  options.replication.scrub_interval_s = 0;
  const auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&log, t] {
      const std::string text(100 + 300 * t, 'x');
      for (int i = 0; i < kRecordsEach; ++i) {
        // Waits for whoever has appended, and not cleaned yet.
        ForceOptions force;
        force.deadline = Deadline::In(std::chrono::minutes(1));
        const absl::StatusOr<Lsn> lsn = (*log)->Append(text, force);
        ASSERT_TRUE(lsn.ok()) << lsn.status();
        ASSERT_TRUE((*log)->Cleanup(*lsn).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t passes = (*log)->replication_status().scrub_passes;
  while ((*log)->replication_status().scrub_passes < passes + 2) {
    ASSERT_TRUE((*log)->Append("more").ok());
    ASSERT_TRUE((*log)->CleanupAll().ok());
  }
  const ReplicationStatus status = (*log)->replication_status();
  EXPECT_GT(status.scrubbed_records, 0u);
  EXPECT_EQ(status.damaged_records, 0u);
  ASSERT_TRUE((*log)->Close().ok());
}

TEST_F(ClusterScrubTest, OneNodeAloneIsAsked) {
  const std::vector<ScrubResult> scrubs =
      ScrubAll({.node = 2, .timeout_ms = 60'000});
  ASSERT_EQ(scrubs.size(), 1u);
  EXPECT_EQ(scrubs[0].node, 2u);
  EXPECT_TRUE(scrubs[0].status.ok()) << scrubs[0].status;
  EXPECT_TRUE(scrubs[0].said.is_empty);
}

TEST_F(ClusterScrubTest, NodeThatIsNotThereIsNamedAndTheOthersAreScrubbed) {
  AppendTwo();
  cluster_.Stop(2);
  const std::vector<ScrubResult> scrubs = ScrubAll({.timeout_ms = 60'000});
  ASSERT_EQ(scrubs.size(), 3u);
  EXPECT_TRUE(scrubs[0].status.ok()) << scrubs[0].status;
  EXPECT_TRUE(absl::IsUnavailable(scrubs[1].status)) << scrubs[1].status;
  EXPECT_EQ(scrubs[2].said.pass.records, 2u);
}

// Somebody listens there and says nothing.
TEST_F(ClusterScrubTest, NodeThatIsSilentIsAbandoned) {
  AppendTwo();
  EntropyRandom random;
  fabric::tcp::TcpFabric mute(fabric::tcp::TcpFabricOptions(), Clock::Real(),
                              random);
  const auto address = mute.Listen("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  std::ifstream in(cluster_.file());
  std::string text((std::istreambuf_iterator<char>(in)),
                   std::istreambuf_iterator<char>());
  text.replace(text.rfind("address = "), std::string::npos,
               absl::StrCat("address = \"", *address, "\"\n"));
  const testing::TempDirectory directory;
  const std::string file = directory.File("mute.toml");
  std::ofstream(file) << text;
  const std::vector<ScrubResult> scrubs =
      ScrubAll({.cluster_file = file, .node = 3, .timeout_ms = 200});
  ASSERT_EQ(scrubs.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(scrubs[0].status)) << scrubs[0].status;
  EXPECT_THAT(std::string(scrubs[0].status.message()), HasSubstr(*address));
}

TEST_F(ClusterScrubTest, WhatIsNotThereIsRefused) {
  const auto node = ScrubCluster({.cluster_file = cluster_.file(), .node = 9});
  EXPECT_TRUE(absl::IsNotFound(node.status())) << node.status();
  const auto file = ScrubCluster({.cluster_file = "/nonexistent"});
  EXPECT_FALSE(file.ok());
  const auto name =
      ScrubCluster({.cluster_file = cluster_.file(), .log_name = "../x"});
  EXPECT_TRUE(absl::IsInvalidArgument(name.status())) << name.status();
  for (const ScrubResult& scrub :
       ScrubAll({.log_name = "nosuch", .timeout_ms = 60'000})) {
    EXPECT_TRUE(absl::IsNotFound(scrub.status)) << scrub.status;
  }
}

}  // namespace
}  // namespace alpheus
