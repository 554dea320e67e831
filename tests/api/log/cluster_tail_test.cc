// SPDX-License-Identifier: Apache-2.0
// Tails of a log whose nodes are threads of the test, over TCP.
#include "alpheus/cluster_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::InPatience;
using testing::TestCluster;
using Code = absl::StatusCode;

class ClusterTailTest : public ::testing::Test {
 protected:
  ClusterTailTest() {
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = cluster_.file();
    EXPECT_TRUE(Log::Format(options).ok());
  }

  std::unique_ptr<Log> OpenLog(uint64_t node = 1,
                               bool openers_replica = false) {
    LogOptions options;
    options.idle_force_us = 10'000;
    options.replication.cluster_file = cluster_.file();
    options.replication.node = node;
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    options.replication.gather_ms = 100;
    if (openers_replica) {
      options.path = cluster_.ReplicaPath(static_cast<int>(node));
    }
    auto log = Log::Open(options);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  static void Append(Log& log, const std::string& text) {
    const auto lsn = log.Append(text);
    EXPECT_TRUE(lsn.ok()) << lsn.status();
  }

  std::unique_ptr<ClusterTail> OpenTail(uint64_t from = 0, uint64_t node = 0) {
    auto tail = ClusterTail::Open({.cluster_file = cluster_.file(),
                                   .node = node,
                                   .from = Lsn(from),
                                   .timeout_ms = 60'000});
    EXPECT_TRUE(tail.ok()) << tail.status();
    return tail.ok() ? *std::move(tail) : nullptr;
  }
  // The next so many records.
  static std::vector<std::string> Take(ClusterTail& tail, int count) {
    std::vector<std::string> payloads;
    for (int i = 0; i < count; ++i) {
      const auto record = tail.Next(InPatience());
      EXPECT_TRUE(record.ok() && *record) << record.status();
      if (!record.ok() || !*record) break;
      payloads.emplace_back(AsText((*record)->payload));
    }
    return payloads;
  }

  TestCluster cluster_{3};
};

TEST_F(ClusterTailTest, RecordsAreShownAsTheyBecomeDurable) {
  const auto log = OpenLog();
  const auto tail = OpenTail();
  Append(*log, "one");
  EXPECT_THAT(Take(*tail, 1), ElementsAre("one"));
  Append(*log, "two");
  Append(*log, std::string(50'000, 'x'));
  EXPECT_THAT(Take(*tail, 2), ElementsAre("two", std::string(50'000, 'x')));
  // Nothing more comes, and the nodes say so in their time.
  do {
    const auto none = tail->Next(Deadline::In(std::chrono::milliseconds(1)));
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_FALSE(none->has_value());
  } while (!tail->is_caught_up());
  EXPECT_EQ(tail->durable_lsn(), Lsn(3));
  EXPECT_EQ(tail->next_lsn(), Lsn(4));
  EXPECT_NE(tail->node(), 0u);
}

TEST_F(ClusterTailTest, TailGoesOnWhenNodesAndPrimariesComeAndGo) {
  const auto tail = OpenTail();
  {
    const auto log = OpenLog();
    Append(*log, "one");
    EXPECT_THAT(Take(*tail, 1), ElementsAre("one"));
    // Any node may go once all are in sync; the tail reads from this one.
    while (log->replication_status().in_sync != 3) std::this_thread::yield();
    cluster_.Stop(static_cast<int>(tail->node()));
    Append(*log, "two");
    EXPECT_THAT(Take(*tail, 1), ElementsAre("two"));
  }
  for (int node = 1; node <= 3; ++node) {
    cluster_.Stop(node);
    cluster_.Start(node);
  }
  const auto log = OpenLog(2);
  Append(*log, "three");
  EXPECT_THAT(Take(*tail, 1), ElementsAre("three"));
  EXPECT_THAT(Take(*OpenTail(2), 2), ElementsAre("two", "three"));
}

// Goal: CT4. Only the primary and node 2 have the record, and nobody serves the
// primary's replica: node 2 was told that the other one has it, too.
TEST_F(ClusterTailTest, RestingLogIsShownToItsEnd) {
  cluster_.Stop(3);
  const auto log = OpenLog(1, /*openers_replica=*/true);
  Append(*log, "one");
  EXPECT_THAT(Take(*OpenTail(), 1), ElementsAre("one"));
  EXPECT_THAT(Take(*OpenTail(1, /*node=*/2), 1), ElementsAre("one"));
}

TEST_F(ClusterTailTest, PrimaryHasATailOfItsOwn) {
  const auto log = OpenLog(1, /*openers_replica=*/true);
  const auto tail = log->Tail(Lsn(0));
  ASSERT_TRUE(tail.ok()) << tail.status();
  Append(*log, "one");
  const auto record = (*tail)->Next();
  ASSERT_TRUE(record.ok() && *record) << record.status();
  EXPECT_EQ(AsText((*record)->payload), "one");
}

TEST_F(ClusterTailTest, TailThatIsOvertakenIsToldSo) {
  const auto log = OpenLog();
  Append(*log, "one");
  Append(*log, "two");
  ASSERT_TRUE(log->CleanupAll().ok());
  const auto overtaken = OpenTail(1)->Next(InPatience());
  EXPECT_EQ(overtaken.status().code(), Code::kOutOfRange);
  EXPECT_THAT(std::string(overtaken.status().message()),
              AllOf(HasSubstr("log main"), HasSubstr("LSN 3")));
  const auto tail = OpenTail();
  Append(*log, "three");
  EXPECT_THAT(Take(*tail, 1), ElementsAre("three"));
}

TEST_F(ClusterTailTest, WhatNodesRefuseForGoodIsTold) {
  const auto unknown = ClusterTail::Open({.cluster_file = cluster_.file(),
                                          .log_name = "nosuch",
                                          .timeout_ms = 60'000});
  ASSERT_TRUE(unknown.ok());
  const absl::Status status = (*unknown)->Next(InPatience()).status();
  EXPECT_EQ(status.code(), Code::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("nosuch"));

  // A W that is too small would let too much pass for durable.
  std::ifstream in(cluster_.file());
  const std::string text((std::istreambuf_iterator<char>(in)),
                         std::istreambuf_iterator<char>());
  const testing::TempDirectory directory;
  const std::string file = directory.File("other.toml");
  std::ofstream(file) << "write_quorum = 1\nread_quorum = 3\n" << text;
  const auto other =
      ClusterTail::Open({.cluster_file = file, .timeout_ms = 60'000});
  ASSERT_TRUE(other.ok()) << other.status();
  const absl::Status refused = (*other)->Next(InPatience()).status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("W = 2"));
}

TEST_F(ClusterTailTest, NobodyInReachIsUnavailableUntilSomebodyIs) {
  Append(*OpenLog(), "one");
  for (int node = 1; node <= 3; ++node) cluster_.Stop(node);
  const auto tail =
      ClusterTail::Open({.cluster_file = cluster_.file(), .timeout_ms = 500});
  ASSERT_TRUE(tail.ok());
  const absl::Status status = (*tail)->Next(InPatience()).status();
  EXPECT_EQ(status.code(), Code::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node 3"));
  for (int node = 1; node <= 3; ++node) cluster_.Start(node);
  // It may give them up again: its time is short.
  for (;;) {
    const auto record = (*tail)->Next(InPatience());
    if (absl::IsUnavailable(record.status())) continue;
    ASSERT_TRUE(record.ok() && *record) << record.status();
    EXPECT_EQ(AsText((*record)->payload), "one");
    break;
  }
}

// Two of three are away: the third can't know what they acknowledged. It is
// asked until it has answered, however long that takes.
TEST_F(ClusterTailTest, TailOfTooFewIsInDoubt) {
  {
    const auto log = OpenLog();
    Append(*log, "one");
    EXPECT_THAT(Take(*OpenTail(0, /*node=*/3), 1), ElementsAre("one"));
  }
  cluster_.Stop(1);
  cluster_.Stop(2);
  const auto tail = OpenTail();
  EXPECT_THAT(Take(*tail, 1), ElementsAre("one"));
  do {
    const auto none = tail->Next(Deadline::In(std::chrono::milliseconds(1)));
    ASSERT_TRUE(none.ok() && !*none) << none.status();
  } while (!tail->is_settled());
  EXPECT_FALSE(tail->is_caught_up());
  const absl::Status doubt = tail->doubt();
  EXPECT_EQ(doubt.code(), Code::kUnavailable) << doubt;
  EXPECT_THAT(std::string(doubt.message()), HasSubstr("2 of 3 members"));
}

TEST_F(ClusterTailTest, ImpossibleOptionsAreRefused) {
  ClusterTailOptions options;
  options.cluster_file = cluster_.file();
  options.node = 9;
  EXPECT_EQ(ClusterTail::Open(options).status().code(), Code::kNotFound);
  options.node = 0;
  for (const uint32_t poll_ms : {0, 10'001}) {
    options.poll_ms = poll_ms;
    EXPECT_EQ(ClusterTail::Open(options).status().code(),
              Code::kInvalidArgument);
  }
  options.poll_ms = 10;
  options.log_name = "a/b";
  EXPECT_EQ(ClusterTail::Open(options).status().code(), Code::kInvalidArgument);
  options.cluster_file = "/nowhere";
  EXPECT_FALSE(ClusterTail::Open(options).ok());
}

}  // namespace
}  // namespace alpheus
