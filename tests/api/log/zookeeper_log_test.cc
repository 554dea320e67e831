// SPDX-License-Identifier: Apache-2.0
// Is a log opened, written and opened again with ballots of ZooKeeper, and
// without it as well: while it is stopped, killed, or has lost its data?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "alpheus/candidate.h"
#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/membership/zookeeper/znode_contents.h"
#include "quorum/membership/zookeeper/zookeeper_client.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"
#include "tests/support/fixtures/zookeeper_servers.h"

namespace alpheus {
namespace {

using quorum::BallotCounter;
using quorum::SessionState;
using ::testing::HasSubstr;
using testing::TestCluster;

class ZookeeperLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!quorum::HasZookeeperClient()) {
      GTEST_SKIP() << "skipped: built without libzookeeper-st-dev";
    }
    const std::string missing = testing::ZookeeperServers::WhyMissing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    servers_ = std::make_unique<testing::ZookeeperServers>(1);
    ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
    cluster_ = std::make_unique<TestCluster>(3);
    WriteFile(cluster_->file(), file_);
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = file_;
    options.log_name = "main";
    const auto id = Log::Format(options);
    ASSERT_TRUE(id.ok()) << id.status();
  }

  // That list, and ZooKeeper: the nodes need not know of it.
  void WriteFile(const std::string& list, const std::string& path,
                 int session_timeout_ms = 1'000) {
    std::ifstream nodes_file(list);
    std::stringstream text;
    text << nodes_file.rdbuf();
    std::ofstream file(path);
    file << "membership = \"zookeeper\"\n"
         << text.str()
         << "[zookeeper]\nsession_timeout_ms = " << session_timeout_ms
         << "\nservers = [\"" << servers_->addresses()[0].ToString() << "\"]\n";
  }

  std::unique_ptr<Log> Open(uint64_t node) {
    LogOptions options;
    options.replication.cluster_file = file_;
    options.replication.log_name = "main";
    options.replication.node = node;
    options.replication.open_timeout_ms = testing::kPatienceMs;
    options.replication.ack_timeout_ms = testing::kPatienceMs;
    auto log = Log::Open(options);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  // Opens, and appends one record. Returns its epoch.
  Epoch AppendBy(uint64_t node) {
    const std::unique_ptr<Log> log = Open(node);
    if (log == nullptr) return Epoch(0);
    const auto appended = log->Append(AsBytes("a record"));
    EXPECT_TRUE(appended.ok()) << appended.status();
    ++appended_;
    EXPECT_EQ(log->report().end_lsn, Lsn(appended_ - 1));
    warning_ = log->report().membership_warning;
    return log->report().epoch;
  }
  // Returns the service's answer about that znode of the log.
  quorum::ZnodeEvent Ask(quorum::ZnodeCall call,
                         const std::string& name) const {
    const auto cluster = quorum::LoadClusterFile(file_);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    auto znodes = *quorum::OpenZookeeper(*cluster->zookeeper, Clock::Real());
    std::vector<quorum::ZnodeEvent> events;
    bool was_sent = false;
    const int64_t until = Clock::Real().NowNanos() + testing::kPatienceNanos;
    while (events.empty() && Clock::Real().NowNanos() < until) {
      znodes->Poll(events);
      if (!was_sent && znodes->state() == SessionState::kConnected) {
        was_sent = true;
        quorum::ZnodeRequest request;
        request.call = call;
        request.path =
            "/alpheus/" + cluster->cluster_id.ToString() + "/logs/main/" + name;
        znodes->Send(request);
      }
      pollfd ready{znodes->descriptor(), POLLIN, 0};
      poll(&ready, 1, 5);
    }
    EXPECT_FALSE(events.empty());
    return events.empty() ? quorum::ZnodeEvent() : events[0];
  }
  // The counter in the register; 0: there is none.
  Epoch Register() const {
    const quorum::ZnodeEvent found = Ask(quorum::ZnodeCall::kGet, "ballot");
    if (found.outcome != quorum::ZnodeOutcome::kDone) return Epoch(0);
    return quorum::DecodeBallot(found.data).value_or(Epoch(0));
  }
  // Returns whether the service names so many candidates in time.
  bool AreCandidates(size_t count) const {
    const Deadline end = testing::InPatience();
    while (Ask(quorum::ZnodeCall::kList, "candidates").names.size() != count) {
      if (end.HasPassed(Clock::Real().NowNanos())) return false;
    }
    return true;
  }
  // Until an epoch comes from the register: a busy machine may be late.
  Epoch AppendByRegister(uint64_t node) {
    Epoch epoch;
    const int64_t until = Clock::Real().NowNanos() + testing::kPatienceNanos;
    while (Clock::Real().NowNanos() < until) {
      epoch = AppendBy(node);
      if (Register() != epoch) continue;
      EXPECT_EQ(warning_, "");
      return epoch;
    }
    ADD_FAILURE() << "the register gives no ballots: " << servers_->Said();
    return epoch;
  }

  const testing::TempDirectory directory_;
  const std::string file_ = directory_.File("zookeeper.toml");
  std::unique_ptr<testing::ZookeeperServers> servers_;
  std::unique_ptr<TestCluster> cluster_;
  uint64_t appended_ = 0;
  std::string warning_;  // of the last opening
};

TEST_F(ZookeeperLogTest, EpochsAreNumberedByTheRegister) {
  const Epoch first = AppendByRegister(1);
  const Epoch second = AppendByRegister(2);
  EXPECT_GT(BallotCounter(second), BallotCounter(first));
  EXPECT_EQ(quorum::BallotNode(second), NodeId(2));
}

TEST_F(ZookeeperLogTest, WithoutZookeeperALogIsOpenedAllTheSame) {
  Epoch last = AppendByRegister(1);
  for (const bool is_killed : {false, true}) {
    if (is_killed) {
      servers_->Kill(0);
    } else {
      servers_->Pause(0);
    }
    for (uint64_t node = 1; node <= 3; ++node) {
      const Epoch epoch = AppendBy(node);
      EXPECT_GT(epoch, last);
      EXPECT_THAT(warning_, HasSubstr("did not answer"));
      last = epoch;
    }
    if (is_killed) {
      servers_->Start(0);
      ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
    } else {
      servers_->Continue(0);
    }
    // The register is behind, and is raised.
    const Epoch epoch = AppendByRegister(1);
    EXPECT_GT(epoch, last);
    last = epoch;
  }
}

TEST_F(ZookeeperLogTest, ZookeeperThatLostItsDataGivesNoOlderEpochs) {
  Epoch last = AppendByRegister(1);
  servers_->Kill(0);
  servers_->LoseData(0);
  servers_->Start(0);
  ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
  const Epoch epoch = AppendByRegister(2);
  EXPECT_GT(epoch, last);
}

// CAN5. The session would live for longer than the test.
TEST_F(ZookeeperLogTest, WhoWithdrawsIsNoCandidateAlthoughItKeepsTheLog) {
  constexpr int kEndlessMs = 600'000;
  static_assert(kEndlessMs > testing::kPatienceMs);
  WriteFile(cluster_->file(), file_, kEndlessMs);
  CandidateOptions options;
  options.log.path = cluster_->ReplicaPath(1);
  options.log.replication.cluster_file = file_;
  options.log.replication.node = 1;
  options.log.replication.open_timeout_ms = testing::kPatienceMs;
  options.log.replication.ack_timeout_ms = testing::kPatienceMs;
  const auto candidate = Candidate::Stand(options);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  const auto log = (*candidate)->WaitForLog(testing::InPatience());
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(AreCandidates(1)) << servers_->Said();
  (*candidate)->Withdraw();
  EXPECT_TRUE(AreCandidates(0)) << servers_->Said();
  const auto appended = (*log)->Append(AsBytes("a record"));
  EXPECT_TRUE(appended.ok()) << appended.status();
}

// P-A5.4. Changes follow until one comes from the register: a busy machine may
// be late.
TEST_F(ZookeeperLogTest, EpochsOfALogThatGoesOnAreNumberedByTheRegister) {
  LogOptions by_one;
  by_one.path = cluster_->ReplicaPath(1);
  by_one.replication.cluster_file = file_;
  by_one.replication.node = 1;
  by_one.replication.open_timeout_ms = testing::kPatienceMs;
  by_one.replication.ack_timeout_ms = testing::kPatienceMs;
  const auto log = Log::Open(by_one);
  ASSERT_TRUE(log.ok()) << log.status();
  Epoch last = (*log)->report().epoch;
  ChangeMembersOptions change;
  change.timeout_ms = testing::kPatienceMs;
  change.gather_ms = testing::kPatienceMs;
  change.cluster_file = file_;
  const Deadline end = testing::InPatience();
  for (int id = 2; !end.HasPassed(Clock::Real().NowNanos()); ++id) {
    change.previous_cluster_file = change.cluster_file;
    change.cluster_file = directory_.File("list" + std::to_string(id));
    const int write_quorum = id % 2 == 0 ? 3 : 2;
    WriteFile(cluster_->WriteList(id, {1, 2, 3}, write_quorum),
              change.cluster_file);
    const auto changed = Log::ChangeMembers(change);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_TRUE(changed->was_running);
    EXPECT_GT(changed->epoch, last);
    last = changed->epoch;
    const auto appended = (*log)->Append(AsBytes("a record"));
    ASSERT_TRUE(appended.ok()) << appended.status();
    if (Register() == last) return;
  }
  ADD_FAILURE() << "the register gives no ballots: " << servers_->Said();
}

}  // namespace
}  // namespace alpheus
