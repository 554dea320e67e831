// SPDX-License-Identifier: Apache-2.0
// Changes of the members of a log, over TCP, with its nodes' files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alpheus/candidate.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::InPatience;
using ::testing::IsEmpty;
using testing::TestCluster;

// A process that stands for primary, and what it has told.
struct Standing {
  explicit Standing(CandidateOptions options) {
    options.say = [this](const std::string& sentence) {
      const std::lock_guard lock(mutex);
      said += sentence + "\n";
      has_said.notify_all();
    };
    auto stands = Candidate::Stand(options);
    EXPECT_TRUE(stands.ok()) << stands.status();
    if (stands.ok()) candidate = *std::move(stands);
  }
  void WaitUntilItSays(const std::string& words) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(has_said.wait_for(lock, testing::kPatience, [&] {
      return said.find(words) != std::string::npos;
    })) << words;
  }

  std::mutex mutex;
  std::condition_variable has_said;
  std::string said;
  std::unique_ptr<Candidate> candidate;  // ends first
};

class ClusterMembersTest : public ::testing::Test {
 protected:
  void Format(const std::string& list) {
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = list;
    const auto id = Log::Format(options);
    ASSERT_TRUE(id.ok()) << id.status();
  }
  static LogOptions By(const std::string& list, int node) {
    LogOptions options;
    options.replication.cluster_file = list;
    options.replication.node = static_cast<uint64_t>(node);
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    return options;
  }
  static absl::StatusOr<RecoveryReport> Change(
      const std::string& to, const std::string& from,
      const std::vector<uint64_t>& replaced = {}, uint32_t timeout_ms = 60'000,
      uint32_t gather_ms = 60'000) {
    ChangeMembersOptions options;
    options.timeout_ms = timeout_ms;
    options.gather_ms = gather_ms;  // a member that is slow is waited for
    options.cluster_file = to;
    options.previous_cluster_file = from;
    options.replaced = replaced;
    return Log::ChangeMembers(options);
  }
  // Opens by the list, expects so many records there, and appends.
  void Append(const std::string& list, int node, int there, int records) {
    const auto log = Log::Open(By(list, node));
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ((*log)->report().end_lsn, Lsn(static_cast<uint64_t>(there)));
    for (int i = 0; i < records; ++i) {
      const auto lsn = (*log)->Append("record");
      ASSERT_TRUE(lsn.ok()) << lsn.status();
    }
    ASSERT_TRUE((*log)->Close().ok());
  }
  void LoseMedium(int node) {
    cluster_.Stop(node);
    std::filesystem::remove(cluster_.ReplicaPath(node));
    cluster_.Start(node);
  }
  int RecordsOf(int node) {
    int records = 0;
    const auto reader = LogReader::Open(cluster_.ReplicaPath(node));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return 0;
    const absl::Status walked = (*reader)->ForEach([&](const ReaderRecord&) {
      ++records;
      return absl::OkStatus();
    });
    EXPECT_TRUE(walked.ok()) << walked;
    return records;
  }

  CandidateOptions Candidacy(const std::string& list, int node) {
    CandidateOptions options;
    options.log = By(list, node);
    options.log.path = cluster_.ReplicaPath(node);
    // A busy machine must not decide.
    options.silence_ms = 5'000;
    options.silence_ms_max = 20'000;
    return options;
  }
  static ElectOptions Instruct(const std::string& list, int node) {
    ElectOptions options;
    options.cluster_file = list;
    options.node = static_cast<uint64_t>(node);
    options.timeout_ms = testing::kPatienceMs;
    return options;
  }

  TestCluster cluster_{4};
  const std::string three_ = cluster_.WriteList(1, {1, 2, 3}, 2);
};

TEST_F(ClusterMembersTest, LostReplicaIsReplacedWhileTheLogRuns) {
  Format(three_);
  Append(three_, 1, 0, 5);
  const auto log = Log::Open(By(three_, 2));
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("by who runs it").ok());
  LoseMedium(3);
  const auto changed = Change(three_, "", {3});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->end_lsn, Lsn(6));
  EXPECT_THAT(changed->absent_members, IsEmpty());

  // The primary hears of it, and its node opens the log again.
  const auto refused = (*log)->Append("too late");
  EXPECT_TRUE(absl::IsAborted(refused.status())) << refused.status();
  cluster_.Stop(1);
  Append(three_, 2, 6, 2);
  cluster_.Stop(2);
  cluster_.Stop(3);
  EXPECT_EQ(RecordsOf(3), 8);
}

// It would end the primary, and the next one could not open the log.
TEST_F(ClusterMembersTest, OlderListElectsNobody) {
  Format(three_);
  Append(three_, 1, 0, 1);
  const std::string others = cluster_.WriteList(2, {1, 2, 4}, 2);
  const auto changed = Change(others, three_);
  ASSERT_TRUE(changed.ok()) << changed.status();
  ElectOptions elect;
  elect.cluster_file = three_;
  elect.node = 1;
  elect.timeout_ms = 60'000;
  const absl::Status elected = Candidate::Elect(elect).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(elected)) << elected;
  EXPECT_THAT(elected.message(), HasSubstr("newer than 1 in "));
  LogOptions old = By(three_, 1);
  old.path = cluster_.ReplicaPath(1);
  const absl::Status opened = Log::Open(old).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened)) << opened;
  EXPECT_THAT(opened.message(), HasSubstr("newest cluster file"));
}

// Neither the lost replica nor the one that the primary has as its own tells
// who the members are: the opening finds out.
TEST_F(ClusterMembersTest, LostReplicaIsReplacedBesideAPrimaryWithItsOwn) {
  Format(three_);
  LogOptions options = By(three_, 1);
  options.path = cluster_.ReplicaPath(1);
  auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("one").ok());
  LoseMedium(2);
  const auto changed = Change(three_, "", {2});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(changed->was_running);
  EXPECT_EQ(changed->end_lsn, Lsn(1));
  EXPECT_THAT(changed->absent_members, IsEmpty()) << "node 2 has joined";
  ASSERT_TRUE((*log)->Append("two").ok());
  ASSERT_TRUE((*log)->Close().ok());
  log->reset();
  cluster_.Stop(3);
  Append(three_, 2, 2, 1);
}

// A primary with its own replica makes the change itself. Its users wait
// meanwhile, and none of their calls fails.
TEST_F(ClusterMembersTest, UsersOfARunningLogSeeAPause) {
  Format(three_);
  LogOptions options = By(three_, 1);
  options.path = cluster_.ReplicaPath(1);
  auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  std::atomic<bool> ends{false};
  absl::Status failed;
  uint64_t appended = 0;
  std::thread writer([&] {
    while (!ends) {
      const auto lsn = (*log)->Append("record");
      failed = lsn.ok() ? (*log)->CleanupThrough(*lsn) : lsn.status();
      if (!failed.ok()) return;
      appended = lsn->value;
    }
  });
  const std::string others = cluster_.WriteList(2, {1, 2, 4}, 2);
  const auto changed = Change(others, three_);
  ends = true;
  writer.join();
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(changed->was_running);
  EXPECT_THAT(changed->absent_members, IsEmpty()) << "node 4 has joined";
  EXPECT_TRUE(failed.ok()) << failed;
  EXPECT_GT(changed->epoch, (*log)->report().epoch);
  const auto last = (*log)->Append("the last one");
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(*last, Lsn(appended + 1));
  ASSERT_TRUE((*log)->Close().ok());
  log->reset();
  cluster_.Stop(1);
  Append(others, 4, static_cast<int>(last->value), 1);
}

TEST_F(ClusterMembersTest, RunningLogWithAnOpenReservationGoesOnAsItWas) {
  Format(three_);
  LogOptions options = By(three_, 1);
  options.path = cluster_.ReplicaPath(1);
  auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  const std::string others = cluster_.WriteList(2, {1, 2, 4}, 2);
  {
    const auto open = (*log)->Reserve(8);
    ASSERT_TRUE(open.ok()) << open.status();
    const auto refused = Change(others, three_);
    EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
    EXPECT_THAT(refused.status().message(),
                AllOf(HasSubstr("holds reservations open"),
                      HasSubstr("Nothing was changed, and the log goes on")));
  }
  ASSERT_TRUE((*log)->Append("goes on").ok());
  const auto changed = Change(others, three_);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(changed->was_running);
}

// Its replica would not stay, and it is no candidate that could hand over: the
// change is made from outside.
TEST_F(ClusterMembersTest, PrimaryThatLeavesLosesItsLog) {
  Format(three_);
  LogOptions options = By(three_, 1);
  options.path = cluster_.ReplicaPath(1);
  auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("one").ok());
  const std::string others = cluster_.WriteList(2, {2, 3, 4}, 2);
  const auto changed = Change(others, three_);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_FALSE(changed->was_running);
  EXPECT_TRUE(absl::IsAborted((*log)->Append("two").status()));
  (*log)->Close().IgnoreError();
  log->reset();
  Append(others, 2, 1, 1);
}

// CHM1. It hands over, so that no call of its users fails, and the next primary
// makes the change while its log runs.
TEST_F(ClusterMembersTest, CandidateThatLeavesHandsOverFirst) {
  Format(three_);
  Standing leaves(Candidacy(three_, 1));
  auto log = leaves.candidate->WaitForLog(InPatience());
  ASSERT_TRUE(log.ok()) << log.status();
  Standing stays(Candidacy(three_, 2));
  stays.WaitUntilItSays("stands for primary");
  ASSERT_TRUE((*log)->Append("one").ok());
  const std::string others = cluster_.WriteList(2, {2, 3, 4}, 2);
  absl::StatusOr<RecoveryReport> changed = absl::UnknownError("not over");
  std::thread command(
      [&] { changed = Change(others, three_, {}, testing::kPatienceMs); });
  EXPECT_TRUE(
      absl::IsCancelled(leaves.candidate->WaitToGiveBack(InPatience())));
  EXPECT_TRUE((*log)->Append("two").ok());
  EXPECT_TRUE(leaves.candidate->GiveBack(*std::move(log)).ok());
  const auto next = stays.candidate->WaitForLog(InPatience());
  command.join();
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(changed->was_running);
  EXPECT_EQ(changed->end_lsn, Lsn(2));
  EXPECT_EQ((*next)->replication_status().replicas, 3u);
  EXPECT_TRUE((*next)->Append("three").ok());
}

// ELE10. It has the new list as soon as its file has: no restart is needed.
TEST_F(ClusterMembersTest, CandidateGoesByTheListOfTheNewestEpoch) {
  Format(three_);
  const std::string file = three_ + ".of_candidates";
  const auto give = [&file](const std::string& list) {
    std::filesystem::copy_file(
        list, file, std::filesystem::copy_options::overwrite_existing);
  };
  give(three_);
  Standing second(Candidacy(file, 2));
  auto before = second.candidate->WaitForLog(InPatience());
  ASSERT_TRUE(before.ok()) << before.status();
  Standing first(Candidacy(file, 1));
  // From then on no busy machine elects it while the members change (ELE5).
  std::jthread drained([&] {
    const auto report = Candidate::Drain(Instruct(three_, 2));
    EXPECT_TRUE(report.ok()) << report.status();
  });
  // Until then one might have elected the other.
  second.candidate->WaitToGiveBack(InPatience()).IgnoreError();
  second.candidate->GiveBack(*std::move(before)).IgnoreError();
  auto log = first.candidate->WaitForLog(InPatience());
  ASSERT_TRUE(log.ok()) << log.status();
  drained.join();
  const std::string others = cluster_.WriteList(2, {1, 2, 4}, 2);
  const auto changed = Change(others, three_);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(changed->was_running);
  second.WaitUntilItSays("Give this node the newest list");
  give(others);
  second.WaitUntilItSays("stands by configuration 2");
  ASSERT_TRUE((*log)->Append("one").ok());
  log->reset();
  first.candidate.reset();
  std::jthread elected([&] {
    const auto report = Candidate::Elect(Instruct(others, 2));
    EXPECT_TRUE(report.ok()) << report.status();
  });
  const auto next = second.candidate->WaitForLog(InPatience());
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->report().end_lsn, Lsn(1));
}

TEST_F(ClusterMembersTest, ReplicaThatIsThereIsNotReplaced) {
  Format(three_);
  Append(three_, 1, 0, 2);
  const auto refused = Change(three_, "", {3});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("the replica is not lost"));
  Append(three_, 2, 2, 1);
}

// The file in the way is named with a remedy, and the remedy works.
TEST_F(ClusterMembersTest, DamagedReplicaIsInTheWayUntilItIsRemoved) {
  for (const bool is_served : {true, false}) {
    TestCluster cluster(3);
    const std::string list = cluster.file();
    Format(list);
    Append(list, 1, 0, 2);
    if (!is_served) cluster.Stop(3);
    {
      std::fstream file(cluster.ReplicaPath(3),
                        std::ios::in | std::ios::out | std::ios::binary);
      file << std::string(8192, '\0');
    }
    if (!is_served) cluster.Start(3);
    const auto refused = Change(list, "", {3});
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()))
        << refused.status();
    EXPECT_THAT(refused.status().message(),
                AllOf(HasSubstr("node 3"), HasSubstr("damaged replica"),
                      HasSubstr("Remove the file main.alpheus")));
    cluster.Stop(3);
    std::filesystem::remove(cluster.ReplicaPath(3));
    cluster.Start(3);
    const auto changed = Change(list, "", {3});
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_THAT(changed->absent_members, IsEmpty());
  }
}

TEST_F(ClusterMembersTest, DamagedFileOfANewcomerIsInTheWay) {
  Format(three_);
  Append(three_, 1, 0, 3);
  cluster_.Stop(4);
  {
    std::ofstream file(cluster_.ReplicaPath(4), std::ios::binary);
    file << std::string(256 * 1024, 'x');
  }
  cluster_.Start(4);
  const std::string four = cluster_.WriteList(2, {1, 2, 3, 4}, 3);
  const auto refused = Change(four, three_);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("node 4"), HasSubstr("damaged replica"),
                    HasSubstr("Remove the file main.alpheus")));
  LoseMedium(4);
  const auto changed = Change(four, three_);
  ASSERT_TRUE(changed.ok()) << changed.status();
}

TEST_F(ClusterMembersTest, MembersComeAndGo) {
  Format(three_);
  Append(three_, 1, 0, 3);
  const std::string four = cluster_.WriteList(2, {1, 2, 3, 4}, 3);
  auto changed = Change(four, three_);
  ASSERT_TRUE(changed.ok()) << changed.status();
  Append(four, 4, 3, 2);
  // By the old list nobody opens it any more.
  const auto old = Log::Open(By(three_, 1));
  EXPECT_TRUE(absl::IsFailedPrecondition(old.status())) << old.status();

  const std::string others = cluster_.WriteList(3, {2, 3, 4}, 2);
  changed = Change(others, four);
  ASSERT_TRUE(changed.ok()) << changed.status();
  cluster_.Stop(1);
  Append(others, 2, 5, 1);
  // The same once more changes nothing, and says so by an epoch.
  changed = Change(others, four, {}, 60'000, /*gather_ms=*/0);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->end_lsn, Lsn(6));
}

TEST_F(ClusterMembersTest, MemberThatMissesTheChangeIsNamedAndJoinsLater) {
  Format(three_);
  Append(three_, 1, 0, 3);
  cluster_.Stop(3);
  const std::string four = cluster_.WriteList(2, {1, 2, 3, 4}, 3);
  const auto changed = Change(four, three_, {}, 60'000, /*gather_ms=*/0);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_THAT(changed->absent_members, ElementsAre(HasSubstr("node 3")));
  cluster_.Start(3);
  Append(four, 4, 3, 2);
}

TEST_F(ClusterMembersTest, WhatCannotBeIsRefusedBeforeAnybodyIsAsked) {
  Format(three_);
  Append(three_, 1, 0, 1);
  const auto same = Change(three_, "");
  EXPECT_TRUE(absl::IsInvalidArgument(same.status())) << same.status();
  const auto large = Change(cluster_.WriteList(2, {4}, 1), three_);
  EXPECT_TRUE(absl::IsFailedPrecondition(large.status())) << large.status();
  const auto wrong = Change(cluster_.WriteList(4, {1, 2, 3, 4}, 3),
                            cluster_.WriteList(3, {1, 2, 3}, 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong.status())) << wrong.status();
  EXPECT_THAT(wrong.status().message(), HasSubstr("has configuration 1"));
  Append(three_, 2, 1, 1);
}

// Goal: a list that is not the log's is found out before anybody promises, so
// that whoever has the log open goes on with all its members.
TEST_F(ClusterMembersTest, RefusedChangeEndsNobody) {
  TestCluster cluster(6);
  const std::vector<int> all = {1, 2, 3, 4, 5};
  const std::string five = cluster.WriteList(1, all, 2);
  Format(five);
  const auto log = Log::Open(By(five, 1));
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("before").ok());
  const std::string has =
      "the log has configuration 1 of nodes 1, 2, 3, 4, 5 "
      "(N = 5, W = 2)";
  // The configuration, its nodes, and W before and after.
  struct Case {
    int id;
    std::vector<int> nodes;
    int from;
    int to;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {1, {1, 2, 3}, 2, 3, "configuration 1 of nodes 1, 2, 3 (N = 3, W = 2)"},
      {1,
       {1, 2, 3, 4, 6},
       2,
       3,
       "configuration 1 of nodes 1, 2, 3, 4, 6 (N = 5, W = 2)"},
      {1, all, 3, 4, "configuration 1 of nodes 1, 2, 3, 4, 5 (N = 5, W = 3)"},
      {2, {1, 2, 3}, 2, 3, "configuration 2 of nodes 1, 2, 3 (N = 3, W = 2)"},
  };
  for (const bool is_whole : {true, false}) {
    if (!is_whole) {
      cluster.Stop(4);
      cluster.Stop(5);
    }
    const uint32_t before = (*log)->replication_status().in_sync;
    for (const Case& c : cases) {
      const auto refused = Change(cluster.WriteList(c.id + 1, c.nodes, c.to),
                                  cluster.WriteList(c.id, c.nodes, c.from));
      EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()))
          << refused.status();
      EXPECT_THAT(refused.status().message(),
                  AllOf(HasSubstr(has), HasSubstr(c.expected),
                        HasSubstr("Nothing was changed; a program that has the "
                                  "log open continues")));
    }
    // Another W in a replacement.
    const auto replace = Change(cluster.WriteList(1, all, 3), "", {2});
    EXPECT_TRUE(absl::IsFailedPrecondition(replace.status()))
        << replace.status();
    EXPECT_THAT(replace.status().message(), HasSubstr(has));
    const auto lsn = (*log)->Append("goes on");
    EXPECT_TRUE(lsn.ok()) << lsn.status();
    if (is_whole) {
      EXPECT_EQ((*log)->replication_status().in_sync, before);
    }
  }
  // The right list, and too few to open the log by it.
  const auto few = Change(cluster.WriteList(2, all, 3),
                          cluster.WriteList(1, all, 2), {}, 100);
  EXPECT_TRUE(absl::IsUnavailable(few.status())) << few.status();
  EXPECT_THAT(few.status().message(),
              AllOf(HasSubstr("node 4"), HasSubstr("node 5")));
  const auto lsn = (*log)->Append("goes on");
  EXPECT_TRUE(lsn.ok()) << lsn.status();
  EXPECT_TRUE((*log)->Close().ok());
}

// A refusal that comes after promises says what they cost.
TEST_F(ClusterMembersTest, RefusedOpeningSaysWhomItEnded) {
  Format(three_);
  auto log = Log::Open(By(three_, 1));
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("one").ok());
  const auto refused = Log::Open(By(cluster_.WriteList(1, {1, 2, 3}, 3), 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(
      refused.status().message(),
      AllOf(HasSubstr("the log has configuration 1 of nodes 1, 2, 3 (N = 3, W "
                      "= 2), the list of members is configuration 1 of nodes "
                      "1, 2, 3 (N = 3, W = 3)"),
            HasSubstr("Give the list of members that the log has"),
            HasSubstr("a primary that has the log open has lost them, and gets "
                      "them back when it opens the log again")));
  const auto ended = (*log)->Append("two");
  EXPECT_TRUE(absl::IsAborted(ended.status())) << ended.status();
  (*log)->Close().IgnoreError();
  // The message says so: the primary gets them back when it opens the log
  // again.
  log = Log::Open(By(cluster_.WriteList(1, {1, 2, 3}, 2), 1));
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->replication_status().in_sync, 3u);
  EXPECT_TRUE((*log)->Append("two").ok());
  EXPECT_TRUE((*log)->Close().ok());
}

}  // namespace
}  // namespace alpheus
