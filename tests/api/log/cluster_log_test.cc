// SPDX-License-Identifier: Apache-2.0
// The public log on the nodes of a cluster, over TCP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/cluster_reader.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "api/log/log_engine.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "quorum/members/cluster_key.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TempDirectory;
using testing::TestCluster;
using Code = absl::StatusCode;

class ClusterLogTest : public ::testing::Test {
 protected:
  void Format(TestCluster& cluster, const std::string& log = "main",
              uint64_t bytes = 256 * 1024) {
    FormatOptions options;
    options.region_bytes = bytes;
    options.cluster_file = cluster.file();
    options.log_name = log;
    const auto id = Log::Format(options);
    ASSERT_TRUE(id.ok()) << id.status();
  }

  static LogOptions OptionsOf(const TestCluster& cluster, int node) {
    LogOptions options;
    options.replication.cluster_file = cluster.file();
    options.replication.node = node;
    // Busy machines are slow, and an absent node is known at once.
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    return options;
  }

  static std::unique_ptr<Log> MustOpen(const LogOptions& options) {
    auto log = Log::Open(options);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }

  static std::vector<std::string> Recovered(const Log& log) {
    std::vector<std::string> payloads;
    EXPECT_TRUE(log.ForEachRecovered([&](const RecoveredRecord& record) {
                     payloads.emplace_back(AsText(record.payload));
                     return absl::OkStatus();
                   })
                    .ok());
    return payloads;
  }

  // Flips a bit of its payload in the node's file.
  static void DamageFirstRecord(TestCluster& cluster, int node) {
    cluster.Stop(node);
    const std::string path = cluster.ReplicaPath(node);
    uint64_t offset = 0;
    {
      auto reader = LogReader::Open(path);
      ASSERT_TRUE(reader.ok()) << reader.status();
      ASSERT_TRUE((*reader)
                      ->ForEach([&](const ReaderRecord& record) {
                        if (record.lsn == Lsn(1)) offset = record.offset;
                        return absl::OkStatus();
                      })
                      .ok());
    }
    auto bytes = testing::ReadFile(path);
    bytes[offset + 70] ^= std::byte{1};
    testing::WriteFile(path, bytes);
    cluster.Start(node);
  }

  static std::vector<std::string> Durable(const TestCluster& cluster) {
    std::vector<std::string> payloads;
    const auto reader = ClusterReader::Open({.cluster_file = cluster.file()});
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return payloads;
    const absl::Status read =
        (*reader)->ForEachDurable([&](const ReaderRecord& record) {
          EXPECT_EQ(record.state, RecordState::kDurable);
          payloads.emplace_back(AsText(record.payload));
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read;
    return payloads;
  }
};

// A node that is down has no plan, and one that joins has another session.
TEST_F(ClusterLogTest, PlanNamesEachReplicaAndWhatPersistsARecordThere) {
  TestCluster cluster(3);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  options.replication.gather_ms = 60'000;
  const auto log = MustOpen(options);
  ASSERT_NE(log, nullptr);
  const DurabilityPlan plan = log->durability_plan();
  EXPECT_EQ(plan.replicas, 3u);
  EXPECT_EQ(plan.write_quorum, 2u);
  ASSERT_EQ(plan.members.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const ReplicaDurability& member = plan.members[i];
    EXPECT_EQ(member.node, i + 1);
    EXPECT_EQ(member.address, cluster.AddressOf(static_cast<int>(i) + 1));
    EXPECT_TRUE(member.in_sync);
    EXPECT_EQ(member.is_own, i == 0);
  }
  EXPECT_EQ(plan.members[0].medium, DurabilityMedium::kFile);
  EXPECT_THAT(plan.members[0].steps, ElementsAre("msync"));
  // Over TCP, into a plain file: the backup's program persists.
  EXPECT_EQ(plan.members[1].medium, DurabilityMedium::kUnknown);
  EXPECT_EQ(plan.members[1].platform, "dmp,ddio,dram,tcp");
  EXPECT_THAT(plan.members[1].steps,
              ElementsAre("rq:writeimm(a)", "rsp:receive(&a)", "rsp:flush(&a)",
                          "rsp:send(ack)", "rq:receive(ack)"));
  EXPECT_THAT(plan.members[1].row, HasSubstr("Table 2"));
  cluster.Stop(3);
  ASSERT_TRUE(log->Append("without node 3").ok());
  const Deadline end = testing::InPatience();
  while (log->durability_plan().members[2].in_sync &&
         !end.HasPassed(Clock::Real().NowNanos())) {
    ASSERT_TRUE(log->Append("until it is missed").ok());
  }
  ReplicaDurability away;
  away.node = 3;
  away.address = cluster.AddressOf(3);
  EXPECT_EQ(log->durability_plan().members[2], away);
  EXPECT_EQ(log->durability_plan().members[1], plan.members[1]);
  cluster.Start(3);
  while (!log->durability_plan().members[2].in_sync &&
         !end.HasPassed(Clock::Real().NowNanos())) {
  }
  EXPECT_EQ(log->durability_plan(), plan);
  ASSERT_TRUE(log->Close().ok());
}

// A primary without a replica is none of the members.
TEST_F(ClusterLogTest, EpochsNameTheNodesThatOpenedThem) {
  TestCluster cluster(3);
  Format(cluster);
  std::vector<LogEpoch> epochs;
  for (const int node : {2, 3}) {
    const auto log = MustOpen(OptionsOf(cluster, node));
    ASSERT_NE(log, nullptr);
    for (const ReplicaDurability& member : log->durability_plan().members) {
      EXPECT_FALSE(member.is_own);
    }
    ASSERT_TRUE(log->Append("one").ok());
    epochs = log->epochs();
    ASSERT_TRUE(log->Close().ok());
  }
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_EQ(epochs[0].node, 2u);
  EXPECT_EQ(epochs[0].start_lsn, Lsn(1));
  EXPECT_EQ(epochs[0].end_lsn, Lsn(1));
  EXPECT_EQ(epochs[1].node, 3u);
  EXPECT_EQ(epochs[1].start_lsn, Lsn(2));
  EXPECT_EQ(epochs[1].end_lsn, Lsn(2));
  EXPECT_LT(epochs[0].epoch, epochs[1].epoch);
}

TEST_F(ClusterLogTest, AppendedRecordsAreRecoveredByAnyNode) {
  TestCluster cluster(3);
  Format(cluster);
  {
    const auto log = MustOpen(OptionsOf(cluster, 1));
    ASSERT_NE(log, nullptr);
    EXPECT_THAT(Recovered(*log), IsEmpty());
    ASSERT_TRUE(log->Append("one").ok());
    ASSERT_TRUE(log->Append("two").ok());
    EXPECT_EQ(log->durable_lsn(), Lsn(2));
    ASSERT_TRUE(log->Close().ok());
  }
  const int64_t before = Clock::Real().NowNanos();
  const auto log = MustOpen(OptionsOf(cluster, 2));
  ASSERT_NE(log, nullptr);
  const OpeningMoments& moments = log->report().moments;
  EXPECT_GE(moments.began_ns, before);
  EXPECT_GE(moments.promised_ns, moments.began_ns);
  EXPECT_GE(moments.chosen_ns, moments.promised_ns);
  EXPECT_GE(moments.installed_ns, moments.chosen_ns);
  EXPECT_GE(moments.opened_ns, moments.installed_ns);
  EXPECT_LE(moments.opened_ns, Clock::Real().NowNanos());
  EXPECT_THAT(Recovered(*log), ElementsAre("one", "two"));
  EXPECT_EQ(log->report().records, 2u);
  EXPECT_EQ(log->report().payload_bytes, 6u);
  EXPECT_THAT(log->report().absent_members, IsEmpty());
  EXPECT_GT(log->report().epoch, log->report().previous_epoch);
  EXPECT_THAT(Durable(cluster), ElementsAre("one", "two"));
}

TEST_F(ClusterLogTest, OwnReplicaIsTakenFromItsNodeAndGivenBack) {
  TestCluster cluster(3);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  {
    const auto log = MustOpen(options);
    ASSERT_NE(log, nullptr);
    ASSERT_TRUE(log->Append("mine").ok());
    // Two backups and the own replica.
    EXPECT_THAT(log->report().absent_members, IsEmpty());
    // Before the node has heard who holds it, and then.
    for (;;) {
      const auto status = ClusterReader::Open(
          {.cluster_file = cluster.file(), .node = 1, .timeout_ms = 60'000});
      ASSERT_EQ(status.status().code(), Code::kUnavailable);
      const std::string why(status.status().message());
      if (why.find("a process of its machine") != std::string::npos) break;
      std::this_thread::yield();
    }
  }
  // All three hold it; node 1 serves its file again, once it has looked.
  auto reader = LogReader::Open(cluster.ReplicaPath(1));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const VerifyReport report = (*reader)->Verify();
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.data_records, 1u);
  for (;;) {
    const auto node = ClusterReader::Open(
        {.cluster_file = cluster.file(), .node = 1, .timeout_ms = 60'000});
    if (node.ok() && (*node)->replicas()[0].status.ok()) break;
    ASSERT_TRUE(absl::IsUnavailable(node.status())) << node.status();
    std::this_thread::yield();
  }
  const auto log = MustOpen(OptionsOf(cluster, 2));
  ASSERT_NE(log, nullptr);
  EXPECT_THAT(Recovered(*log), ElementsAre("mine"));
  EXPECT_THAT(log->report().absent_members, IsEmpty());
}

// The primary may have run too short a time for its node to hear of it.
TEST_F(ClusterLogTest, ReplicaOfAPrimaryThatEndedIsServedAtOnce) {
  TestCluster cluster(3);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_NE(MustOpen(options), nullptr);
    const auto status = ClusterReader::Open(
        {.cluster_file = cluster.file(), .node = 1, .timeout_ms = 60'000});
    ASSERT_TRUE(status.ok()) << status.status();
  }
}

// P-A7: with one member lost the replica of a primary that runs is needed.
TEST_F(ClusterLogTest, PrimaryStepsDownForWhoOpensTheLog) {
  TestCluster cluster(3);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  const auto first = MustOpen(options);
  ASSERT_NE(first, nullptr);
  ASSERT_TRUE(first->Append("on three").ok());
  cluster.Stop(2);
  ASSERT_TRUE(first->Append("on two").ok());
  // A reader deposes nobody.
  EXPECT_THAT(Durable(cluster), Contains("on three"));
  ASSERT_TRUE(first->Append("and on").ok());
  const auto next = MustOpen(OptionsOf(cluster, 3));
  ASSERT_NE(next, nullptr);
  EXPECT_THAT(Recovered(*next), ElementsAre("on three", "on two", "and on"));
  EXPECT_EQ(first->Append("too late").status().code(), Code::kAborted);
  ASSERT_TRUE(next->Append("in the next epoch").ok());
  EXPECT_FALSE(first->Close().ok());
}

// With one replica nobody else ends the primary before.
TEST_F(ClusterLogTest, DeposedPrimaryWritesNothingMore) {
  TestCluster cluster(1);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  const auto first = MustOpen(options);
  ASSERT_NE(first, nullptr);
  ASSERT_TRUE(first->Append("one").ok());
  auto open = first->Reserve(3);
  ASSERT_TRUE(open.ok());
  {
    const auto next = MustOpen(OptionsOf(cluster, 1));
    ASSERT_NE(next, nullptr);
    EXPECT_THAT(Recovered(*next), ElementsAre("one"));
    ASSERT_TRUE(next->Append("two").ok());
    // At the place of the next epoch's record.
    std::ranges::fill(open->payload(), std::byte{'x'});
    open->Abort();
    const absl::Status ended = first->Append("lost").status();
    EXPECT_EQ(ended.code(), Code::kAborted);
    EXPECT_THAT(std::string(ended.message()),
                AllOf(HasSubstr("node 1, process"), HasSubstr("opens epoch"),
                      HasSubstr("after LSN 1")));
    EXPECT_EQ(first->durable_lsn(), Lsn(1));
    ASSERT_TRUE(next->Close().ok());
  }
  const auto third = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(third, nullptr);
  EXPECT_THAT(Recovered(*third), ElementsAre("one", "two"));
}

// Records that a deposed primary reads may be of the next one's log.
TEST_F(ClusterLogTest, ReleasedReplicaIsNotRead) {
  TestCluster cluster(1);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  {
    const auto log = MustOpen(options);
    ASSERT_NE(log, nullptr);
    ASSERT_TRUE(log->Append("one").ok());
    ASSERT_TRUE(log->Append("two").ok());
    ASSERT_TRUE(log->Close().ok());
  }
  const auto first = MustOpen(options);
  ASSERT_NE(first, nullptr);
  const auto tail = first->Tail(Lsn(1));
  ASSERT_TRUE(tail.ok()) << tail.status();
  EXPECT_TRUE(first->CheckPayloads().ok());
  std::unique_ptr<Log> next;
  const absl::Status read =
      first->ForEachRecovered([&](const RecoveredRecord& record) {
        if (record.lsn == Lsn(1)) next = MustOpen(OptionsOf(cluster, 1));
        return absl::OkStatus();
      });
  EXPECT_EQ(read.code(), Code::kAborted) << read;
  EXPECT_EQ((*tail)->Next().status().code(), Code::kAborted);
  EXPECT_EQ(first->CheckPayloads().code(), Code::kAborted);
  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(next->CheckPayloads().ok());
}

TEST_F(ClusterLogTest, ReplicaThatAnotherProcessHasIsNamed) {
  TestCluster cluster(1);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  const auto first = MustOpen(options);
  ASSERT_NE(first, nullptr);
  options.replication.open_timeout_ms = 1;
  const absl::Status refused = Log::Open(options).status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr(options.path + ": another process"),
                    HasSubstr(absl::StrCat("(process ", getpid(), ")")),
                    HasSubstr("alpheusd of node 1"),
                    HasSubstr("open the log without a file")));
  EXPECT_TRUE(first->Append("one").ok());
}

// Goal: the file of another node, or of another log, is found out at once, and
// not when nobody lets go of it.
TEST_F(ClusterLogTest, FileOfAnotherNodeIsNamedAtOnce) {
  TestCluster cluster(2);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 2);
  options.path = cluster.ReplicaPath(1);  // node 1 serves it
  const absl::Status other_node = Log::Open(options).status();
  EXPECT_EQ(other_node.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(other_node.message()),
              AllOf(HasSubstr(options.path + ": is the replica of node 1, "
                                             "expected that of node 2"),
                    HasSubstr("main.alpheus in the directory of node 2")));
  options.path = cluster.ReplicaPath(2);
  options.replication.log_name = "other";
  const absl::Status other_log = Log::Open(options).status();
  EXPECT_EQ(other_log.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(other_log.message()),
              HasSubstr(options.path + ": is not a replica of log other"));
}

TEST_F(ClusterLogTest, NodeThatIsAwayIsNamedOnce) {
  TestCluster cluster(3);
  Format(cluster);
  cluster.Stop(3);
  const auto log = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(log, nullptr);
  ASSERT_TRUE(log->Append("one").ok());
  const auto is_named_once =
      ElementsAre(AllOf(HasSubstr("node 3"), Not(HasSubstr("node 3: node 3"))));
  EXPECT_THAT(log->report().absent_members, is_named_once);
  // Once it was tried to let it join.
  ReplicationStatus status;
  do {
    status = log->replication_status();
  } while (status.failed_joins == 0);
  EXPECT_THAT(status.out_of_sync, is_named_once);
}

TEST_F(ClusterLogTest, PrimaryTellsANodeThatWasStartedAgain) {
  TestCluster cluster(3);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  const auto first = MustOpen(options);
  ASSERT_NE(first, nullptr);
  ASSERT_TRUE(first->Append("one").ok());
  cluster.Stop(1);
  cluster.Stop(2);
  cluster.Start(1);
  const auto next = MustOpen(OptionsOf(cluster, 3));
  ASSERT_NE(next, nullptr);
  EXPECT_THAT(Recovered(*next), ElementsAre("one"));
  EXPECT_EQ(first->Append("too late").status().code(), Code::kAborted);
}

TEST_F(ClusterLogTest, MinorityMayGoAndMajorityMayNot) {
  TestCluster cluster(3);
  Format(cluster);
  const auto log = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(log, nullptr);
  ASSERT_TRUE(log->Append("all").ok());
  cluster.Stop(2);
  ASSERT_TRUE(log->Append("two left").ok());
  cluster.Stop(3);
  const auto unknown = log->Append("one left");
  EXPECT_EQ(unknown.status().code(), Code::kAborted) << unknown.status();
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("outcome"));
  // P-H20: nothing is durable any more in this epoch, whoever comes back.
  cluster.Start(2);
  cluster.Start(3);
  EXPECT_FALSE(log->Append("later").ok());
  EXPECT_EQ(log->durable_lsn(), Lsn(2));
  const auto next = MustOpen(OptionsOf(cluster, 3));
  ASSERT_NE(next, nullptr);
  const std::vector<std::string> recovered = Recovered(*next);
  ASSERT_GE(recovered.size(), 2u);
  EXPECT_EQ(recovered[0], "all");
  EXPECT_EQ(recovered[1], "two left");
  EXPECT_LE(recovered.size(), 3u);
}

// P-A5.
TEST_F(ClusterLogTest, MemberThatReconnectsJoinsAndCounts) {
  TestCluster cluster(3);
  Format(cluster);
  const auto log = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(log, nullptr);
  const auto await = [&](uint32_t in_sync) {
    while (log->replication_status().in_sync != in_sync) {
      std::this_thread::yield();
    }
  };
  ASSERT_TRUE(log->Append("all").ok());
  await(3);
  EXPECT_THAT(log->replication_status().out_of_sync, IsEmpty());
  cluster.Stop(3);
  ASSERT_TRUE(log->Append("without node 3").ok());
  await(2);
  const ReplicationStatus status = log->replication_status();
  EXPECT_EQ(status.replicas, 3u);
  EXPECT_EQ(status.write_quorum, 2u);
  EXPECT_THAT(status.out_of_sync, ElementsAre(HasSubstr("node 3: ")));
  EXPECT_THAT(status.ToString(), HasSubstr("2 of 3 replicas are in sync"));
  cluster.Start(3);
  await(3);
  EXPECT_EQ(log->replication_status().joins, 1u);
  cluster.Stop(2);
  ASSERT_TRUE(log->Append("without node 2").ok());
  ASSERT_TRUE(log->Close().ok());
  const auto reader = LogReader::Open(cluster.ReplicaPath(3));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const VerifyReport report = (*reader)->Verify();
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.data_records, 3u);
}

TEST_F(ClusterLogTest, LocalLogKeepsItself) {
  const TempDirectory directory;
  const std::string path = directory.File("log");
  ASSERT_TRUE(Log::Format({.path = path, .region_bytes = 256 * 1024}).ok());
  LogOptions options;
  options.path = path;
  const auto log = MustOpen(options);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->replication_status(), ReplicationStatus());
}

TEST_F(ClusterLogTest, TooFewNodesOpenNothing) {
  TestCluster cluster(3);
  Format(cluster);
  cluster.Stop(1);
  cluster.Stop(2);
  LogOptions options = OptionsOf(cluster, 1);
  options.replication.open_timeout_ms = 200;
  const auto log = Log::Open(options);
  EXPECT_EQ(log.status().code(), Code::kUnavailable) << log.status();
  EXPECT_THAT(std::string(log.status().message()), HasSubstr("node 1"));
  cluster.Start(2);
  EXPECT_NE(MustOpen(OptionsOf(cluster, 1)), nullptr);
}

TEST_F(ClusterLogTest, NewPrimaryEndsTheOldOne) {
  TestCluster cluster(3);
  Format(cluster);
  const auto old = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(old, nullptr);
  ASSERT_TRUE(old->Append("of the old one").ok());
  const auto next = MustOpen(OptionsOf(cluster, 2));
  ASSERT_NE(next, nullptr);
  ASSERT_TRUE(next->Append("of the new one").ok());
  const absl::Status ended = old->Append("too late").status();
  EXPECT_EQ(ended.code(), Code::kAborted);
  EXPECT_THAT(
      std::string(ended.message()),
      AllOf(HasSubstr("node 2, process"),
            HasSubstr(absl::StrCat("opens epoch ", next->report().epoch.value)),
            Not(HasSubstr("broke"))));
  EXPECT_FALSE(old->Close().ok());
  ASSERT_TRUE(next->Append("and on").ok());
  EXPECT_THAT(Durable(cluster),
              ElementsAre("of the old one", "of the new one", "and on"));
}

// Whether its node or its backups say it first, or what is on its way.
TEST_F(ClusterLogTest, OvertakenPrimaryNamesTheNextOne) {
  TestCluster cluster(3);
  Format(cluster);
  std::unique_ptr<Log> log;
  for (int i = 0; i < 12; ++i) {
    const uint32_t node = i % 3 + 1;
    LogOptions options = OptionsOf(cluster, node);
    if (i % 2 == 0) options.path = cluster.ReplicaPath(node);
    options.replication.batches_max = 1 + i % 4;
    const std::unique_ptr<Log> old = std::move(log);
    std::string said;
    std::thread writer([&] {
      if (old == nullptr) return;
      for (;;) {
        const absl::Status status = old->Append("on and on").status();
        said = status.ToString();
        if (!status.ok()) break;
        old->CleanupThrough(old->durable_lsn()).IgnoreError();
      }
    });
    log = MustOpen(options);
    writer.join();
    ASSERT_NE(log, nullptr);
    ASSERT_TRUE(log->Append("first").ok());
    // Else who takes its node's replica ends the old one before its promise.
    while (log->replication_status().in_sync != 3) std::this_thread::yield();
    if (old == nullptr) continue;
    EXPECT_THAT(said, AllOf(HasSubstr("ABORTED"),
                            HasSubstr(absl::StrCat("node ", node, ", process")),
                            HasSubstr("opens epoch")));
  }
}

// Before there is a promise.
TEST_F(ClusterLogTest, PrimaryNamesWhoTakesTheReplicaThatItNeeds) {
  TestCluster cluster(3);
  Format(cluster);
  const auto old = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(old, nullptr);
  cluster.Stop(2);
  ASSERT_TRUE(old->Append("on two").ok());
  LogOptions options = OptionsOf(cluster, 3);
  options.path = cluster.ReplicaPath(3);
  const auto next = MustOpen(options);
  ASSERT_NE(next, nullptr);
  EXPECT_THAT(std::string(old->Append("too late").status().message()),
              AnyOf(HasSubstr("another process of its machine takes this "
                              "replica"),
                    HasSubstr("opens epoch")));
}

TEST_F(ClusterLogTest, NodeKeepsSeveralLogs) {
  TestCluster cluster(3);
  Format(cluster, "first");
  Format(cluster, "second");
  LogOptions first = OptionsOf(cluster, 1);
  first.replication.log_name = "first";
  LogOptions second = OptionsOf(cluster, 2);
  second.replication.log_name = "second";
  const auto one = MustOpen(first);
  const auto two = MustOpen(second);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(one->Append("1").ok());
    ASSERT_TRUE(two->Append("2").ok());
  }
  EXPECT_EQ(one->durable_lsn(), Lsn(10));
  EXPECT_EQ(two->durable_lsn(), Lsn(10));
}

// The head reaches the backups, so that their rings can be used again.
TEST_F(ClusterLogTest, RingIsUsedManyTimesOver) {
  TestCluster cluster(3);
  Format(cluster, "main", 256 * 1024);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  auto log = MustOpen(options);
  ASSERT_NE(log, nullptr);
  const std::string payload(3000, 'x');
  Lsn last;
  for (int i = 0; i < 400; ++i) {
    const auto lsn = log->Append(
        payload, {.deadline = Deadline::In(std::chrono::minutes(1))});
    ASSERT_TRUE(lsn.ok()) << lsn.status();
    last = *lsn;
    if (i % 10 == 9) {
      ASSERT_TRUE(log->CleanupThrough(last - 5).ok());
    }
  }
  ASSERT_TRUE(log->Close().ok());
  log.reset();
  log = MustOpen(OptionsOf(cluster, 2));
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->report().end_lsn, last);
  EXPECT_LE(log->report().records, 160u);
}

// A PAD of nearly half the ring and a record of the other half are on their way
// at once; nobody is behind because of that.
TEST_F(ClusterLogTest, LargestRecordsGoRoundTheRing) {
  TestCluster cluster(3);
  Format(cluster);
  const auto log = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(log, nullptr);
  const std::string large(log->payload_bytes_max(), 'x');
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(log->Append("small").ok());
    const auto lsn =
        log->Append(large, {.deadline = Deadline::In(std::chrono::minutes(1))});
    ASSERT_TRUE(lsn.ok()) << lsn.status();
    ASSERT_TRUE(log->CleanupAll().ok());
  }
}

TEST_F(ClusterLogTest, EachOrderOfFlushingWorks) {
  TestCluster cluster(2);
  Format(cluster);
  for (const FlushOrder order :
       {FlushOrder::kRemoteFirst, FlushOrder::kLocalFirst,
        FlushOrder::kParallel}) {
    LogOptions options = OptionsOf(cluster, 1);
    options.path = cluster.ReplicaPath(1);
    options.replication.flush_order = order;
    const auto log = MustOpen(options);
    ASSERT_NE(log, nullptr);
    ASSERT_TRUE(log->Append("record").ok());
  }
}

TEST_F(ClusterLogTest, ManyThreadsAppend) {
  TestCluster cluster(3);
  Format(cluster, "main", 1 << 20);
  const auto log = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(log, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(log->Append("record " + std::to_string(i)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log->durable_lsn(), Lsn(200));
  ASSERT_TRUE(log->Close().ok());
  EXPECT_EQ(Durable(cluster).size(), 200u);
}

TEST_F(ClusterLogTest, BadOptionsAreNamed) {
  TestCluster cluster(1);
  const auto code_of = [](const LogOptions& options) {
    return Log::Open(options).status().code();
  };
  LogOptions options = OptionsOf(cluster, 7);
  EXPECT_EQ(code_of(options), Code::kInvalidArgument);
  options = OptionsOf(cluster, 1);
  options.replication.log_name = "../main";
  EXPECT_EQ(code_of(options), Code::kInvalidArgument);
  options = OptionsOf(cluster, 1);
  options.replication.batches_max = 0;
  EXPECT_EQ(code_of(options), Code::kInvalidArgument);
  options = OptionsOf(cluster, 1);
  options.idle_force_us = 0;
  EXPECT_EQ(code_of(options), Code::kInvalidArgument);
  options.idle_force_us = 1'000'000;
  EXPECT_EQ(code_of(options), Code::kInvalidArgument);
  options = OptionsOf(cluster, 1);
  options.replication.ack_timeout_ms = 0;
  EXPECT_EQ(code_of(options), Code::kInvalidArgument);
  options = OptionsOf(cluster, 1);
  options.replication.cluster_file = cluster.file() + "x";
  EXPECT_EQ(code_of(options), Code::kNotFound);
  // No such log.
  options = OptionsOf(cluster, 1);
  options.replication.open_timeout_ms = 200;
  EXPECT_FALSE(Log::Open(options).ok());
}

// Cluster files as unauthenticated clients would write them: without the key,
// with another.
std::vector<std::string> FilesWithoutTheKey(const TestCluster& cluster,
                                            const TempDirectory& directory) {
  std::ifstream in(cluster.file());
  const std::string text((std::istreambuf_iterator<char>(in)),
                         std::istreambuf_iterator<char>());
  const std::string line =
      absl::StrCat("key_file = \"", cluster.key_file(), "\"");
  const size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos);
  std::ofstream(directory.File("keyless.toml"))
      << std::string(text).replace(at, line.size(), "");
  std::ofstream(directory.File("other.toml"))
      << std::string(text).replace(at, line.size(), "key_file = \"other.key\"");
  EntropyRandom random;
  EXPECT_TRUE(
      quorum::MakeClusterKeyFile(directory.File("other.key"), random).ok());
  return {directory.File("keyless.toml"), directory.File("other.toml")};
}

// They may know all but the key; the log goes on as if they were not there.
TEST_F(ClusterLogTest, UnauthenticatedClientsAreRefusedAndDisturbNobody) {
  TestCluster cluster(3);
  Format(cluster);
  const auto log = MustOpen(OptionsOf(cluster, 1));
  ASSERT_NE(log, nullptr);
  const TempDirectory directory;
  for (const std::string& file : FilesWithoutTheKey(cluster, directory)) {
    ASSERT_TRUE(log->Append("before").ok());
    LogOptions options = OptionsOf(cluster, 2);
    options.replication.cluster_file = file;
    const absl::Status opened = Log::Open(options).status();
    EXPECT_TRUE(absl::IsUnavailable(opened)) << opened;
    EXPECT_THAT(std::string(opened.message()), HasSubstr("key_file"));
    FormatOptions format;
    format.cluster_file = file;
    format.log_name = "theirs";
    const absl::Status formatted = Log::Format(format).status();
    EXPECT_TRUE(absl::IsUnauthenticated(formatted)) << formatted;
    const absl::Status read =
        ClusterReader::Open({.cluster_file = file}).status();
    EXPECT_TRUE(absl::IsUnauthenticated(read)) << read;
    ASSERT_TRUE(log->Append("after").ok());
  }
  EXPECT_TRUE(log->Close().ok());
  EXPECT_THAT(Durable(cluster),
              ElementsAre("before", "after", "before", "after"));
  // Each node told once of each kind of refusal, however often they came.
  const std::string told = cluster.Reported();
  size_t count = 0;
  for (size_t at = 0; (at = told.find("UNAUTHENTICATED", at)) != told.npos;) {
    ++count;
    ++at;
  }
  EXPECT_GE(count, 3u) << told;
  EXPECT_LE(count, 6u) << told;
}

TEST_F(ClusterLogTest, LogIsFormattedOnce) {
  TestCluster cluster(3);
  Format(cluster);
  FormatOptions options;
  options.cluster_file = cluster.file();
  EXPECT_EQ(Log::Format(options).status().code(), Code::kAlreadyExists);
  options.log_name = "a b";
  EXPECT_EQ(Log::Format(options).status().code(), Code::kInvalidArgument);
  options.log_name = "other";
  options.region_bytes = 1;
  EXPECT_EQ(Log::Format(options).status().code(), Code::kInvalidArgument);
  options.region_bytes = 1 << 20;
  cluster.Stop(3);
  EXPECT_EQ(Log::Format(options).status().code(), Code::kUnavailable);
}

// LC1 (log_creation.h). Replicas that a cut-off creation left are in nobody's
// way: the same command makes the log, whatever the size. Once opened, the log
// stays.
TEST_F(ClusterLogTest, HalfMadeLogIsMadeAgain) {
  TestCluster cluster(3);
  Format(cluster);
  cluster.Stop(3);
  const std::string path = cluster.ReplicaPath(3);
  std::filesystem::rename(path, path + "-old");
  cluster.Start(3);
  Format(cluster, "main", 512 * 1024);
  for (int node = 1; node <= 3; ++node) {
    EXPECT_EQ(std::filesystem::file_size(cluster.ReplicaPath(node)),
              512u * 1024);
  }
  FormatOptions options;
  options.cluster_file = cluster.file();
  options.region_bytes = 256 * 1024;
  EXPECT_EQ(Log::Format(options).status().code(), Code::kAlreadyExists);
  // The replicas come from two creations, so nobody could open the log.
  cluster.Stop(3);
  std::filesystem::rename(path + "-old", path);
  cluster.Start(3);
  Format(cluster);
  {
    const auto log = MustOpen(OptionsOf(cluster, 1));
    ASSERT_NE(log, nullptr);
    ASSERT_TRUE(log->Append("record").ok());
    ASSERT_TRUE(log->Close().ok());
  }
  cluster.Stop(3);
  std::filesystem::remove(path);
  cluster.Start(3);
  EXPECT_EQ(Log::Format(options).status().code(), Code::kAlreadyExists);
  EXPECT_THAT(Durable(cluster), ElementsAre("record"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ClusterLogTest, ReaderNamesWhoIsMissing) {
  TestCluster cluster(3);
  Format(cluster);
  {
    const auto log = MustOpen(OptionsOf(cluster, 1));
    ASSERT_NE(log, nullptr);
    ASSERT_TRUE(log->Append("record").ok());
  }
  cluster.Stop(2);
  const auto reader = ClusterReader::Open({.cluster_file = cluster.file()});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->replicas()[0].status.ok());
  EXPECT_EQ((*reader)->replicas()[1].status.code(), Code::kUnavailable);
  EXPECT_EQ((*reader)->durable_lsn(), Lsn(1));
  EXPECT_EQ((*reader)->write_quorum(), 2u);
  EXPECT_EQ((*reader)->reader(1), nullptr);
  cluster.Stop(1);
  cluster.Stop(3);
  EXPECT_EQ(
      ClusterReader::Open({.cluster_file = cluster.file()}).status().code(),
      Code::kUnavailable);
  EXPECT_EQ(ClusterReader::Open({.cluster_file = cluster.file(), .node = 9})
                .status()
                .code(),
            Code::kNotFound);
}

TEST_F(ClusterLogTest, DamagedReplicaIsRepairedFromAnother) {
  TestCluster cluster(3);
  Format(cluster);
  {
    const auto log = MustOpen(OptionsOf(cluster, 1));
    ASSERT_NE(log, nullptr);
    ASSERT_TRUE(log->Append(std::string(100, 'a')).ok());
    ASSERT_TRUE(log->Append(std::string(100, 'b')).ok());
  }
  ASSERT_NO_FATAL_FAILURE(DamageFirstRecord(cluster, 2));
  const auto damaged = ClusterReader::Open({.cluster_file = cluster.file()});
  ASSERT_TRUE(damaged.ok());
  const absl::Status& found = (*damaged)->replicas()[1].status;
  EXPECT_EQ(found.code(), Code::kDataLoss);
  EXPECT_THAT(std::string(found.message()),
              HasSubstr("`alpheus scrub --cluster FILE --log NAME` repairs "
                        "this replica from the others"));
  EXPECT_THAT(Durable(cluster).size(), 2u);
  const auto log = MustOpen(OptionsOf(cluster, 3));
  ASSERT_NE(log, nullptr);
  EXPECT_THAT(log->report().absent_members, IsEmpty());
  EXPECT_EQ(log->report().records, 2u);
  const auto repaired = ClusterReader::Open({.cluster_file = cluster.file()});
  ASSERT_TRUE(repaired.ok());
  EXPECT_TRUE((*repaired)->replicas()[1].status.ok())
      << (*repaired)->replicas()[1].status;
}

// P-C8. The record lies some MiB before the place, where the report of node 1
// begins. A process without a replica gets it from there, and finds the damage.
// Its next try has whole reports. A candidate leaves other failures to the
// election, and yet makes this second try.
TEST_F(ClusterLogTest, DamageThatNoReportNamesIsLookedForByTheNextTry) {
  TestCluster cluster(3);
  Format(cluster, "main", uint64_t{16} << 20);
  constexpr size_t kRecords = 8;
  {
    const auto log = MustOpen(OptionsOf(cluster, 1));
    ASSERT_NE(log, nullptr);
    const std::string payload(size_t{1} << 20, 'x');
    for (size_t i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(log->Append(payload).ok());
    }
    ASSERT_TRUE(log->Close().ok());
  }
  for (const bool is_candidate : {false, true}) {
    SCOPED_TRACE(is_candidate);
    ASSERT_NO_FATAL_FAILURE(DamageFirstRecord(cluster, 1));
    const auto opened = OpenReplicatedEngine(OptionsOf(cluster, 3),
                                             {.until_deadline = !is_candidate});
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto reader = ClusterReader::Open({.cluster_file = cluster.file()});
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_TRUE((*reader)->replicas()[0].status.ok())
        << (*reader)->replicas()[0].status;
    EXPECT_EQ(Durable(cluster).size(), kRecords);
  }
}

}  // namespace
}  // namespace alpheus
