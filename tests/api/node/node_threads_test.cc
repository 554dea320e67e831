// SPDX-License-Identifier: Apache-2.0
// Nodes with several threads, over which their logs are spread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "api/admin/delete_log.h"
#include "api/node/node.h"
#include "api/node/node_thread.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/log_group.h"
#include "recovery/protocol/messages.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/tcp/socket_exchange.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kPatienceMs;
using ::testing::SizeIs;
using testing::TestCluster;

constexpr uint32_t kThreads = 3;
constexpr int kLogs = 8;
constexpr uint64_t kRegionBytes = 256 * 1024;

std::string NameOf(int log) { return absl::StrCat("log", log); }

// Three nodes of three threads each, and eight logs.
class NodeThreadsTest : public ::testing::Test {
 protected:
  explicit NodeThreadsTest(bool encrypts = false)
      : cluster_(3, 2, {.encrypts = encrypts, .threads = kThreads}) {
    for (int i = 0; i < kLogs; ++i) {
      FormatOptions options;
      options.region_bytes = kRegionBytes;
      options.cluster_file = cluster_.file();
      options.log_name = NameOf(i);
      options.timeout_ms = kPatienceMs;
      const auto id = Log::Format(options);
      EXPECT_TRUE(id.ok()) << id.status();
    }
  }

  std::unique_ptr<Log> Open(int log, uint64_t node) {
    LogOptions options;
    options.replication.cluster_file = cluster_.file();
    options.replication.log_name = NameOf(log);
    options.replication.node = node;
    options.replication.open_timeout_ms = kPatienceMs;
    options.replication.ack_timeout_ms = kPatienceMs;
    auto opened = Log::Open(options);
    EXPECT_TRUE(opened.ok()) << NameOf(log) << ": " << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  bool OpenAll(uint64_t node) {
    logs_.clear();
    for (int i = 0; i < kLogs; ++i) {
      logs_.push_back(Open(i, node));
      if (logs_.back() == nullptr) return false;
    }
    return true;
  }
  // A thread for each log appends until it says so.
  void AppendToAll(const std::function<bool(int appended)>& is_over) {
    std::vector<std::thread> threads;
    for (const auto& log : logs_) {
      threads.emplace_back([&is_over, &log = *log] {
        for (int i = 0; !is_over(i); ++i) {
          const auto lsn = log.Append("record");
          ASSERT_TRUE(lsn.ok()) << lsn.status();
          ASSERT_TRUE(i % 16 != 0 || log.CleanupThrough(*lsn).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  bool AreAllInSync() {
    return std::ranges::all_of(logs_, [](const auto& log) {
      return log->replication_status().in_sync == 3;
    });
  }
  uint64_t FileBytes(int node, int log) {
    return std::filesystem::file_size(cluster_.ReplicaPath(node, NameOf(log)));
  }
  int LinesWith(const std::string& part) {
    std::istringstream told(cluster_.Reported());
    int lines = 0;
    for (std::string line; std::getline(told, line);) {
      lines += line.find(part) != std::string::npos ? 1 : 0;
    }
    return lines;
  }

  TestCluster cluster_;
  std::vector<std::unique_ptr<Log>> logs_;
};

// The other tests rest on this.
TEST_F(NodeThreadsTest, EachThreadHasLogs) {
  const auto cluster = quorum::LoadClusterFile(cluster_.file());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  std::set<uint32_t> threads;
  for (int i = 0; i < kLogs; ++i) {
    const Uuid id = quorum::LogIdOf(cluster->cluster_id, NameOf(i));
    threads.insert(fabric::tcp::AdapterOf(recovery::GroupOf(id), kThreads));
  }
  EXPECT_THAT(threads, SizeIs(kThreads));
  EXPECT_EQ(LinesWith("threads: 3, over which the logs are spread"), 3);
}

TEST_F(NodeThreadsTest, LogsOfAllThreadsAreWrittenAndRecovered) {
  constexpr int kRecords = 100;
  ASSERT_TRUE(OpenAll(1));
  for (const auto& log : logs_) {
    for (int i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(log->Append(absl::StrCat(i)).ok());
    }
  }
  for (const auto& log : logs_) ASSERT_TRUE(log->Close().ok());
  ASSERT_TRUE(OpenAll(2));
  for (const auto& log : logs_) {
    auto records = log->Recovered();
    int found = 0;
    for (const auto& record : records) {
      EXPECT_EQ(AsText(record.payload), absl::StrCat(found++));
    }
    EXPECT_TRUE(records.status().ok()) << records.status();
    EXPECT_EQ(found, kRecords);
  }
}

TEST_F(NodeThreadsTest, StatusIsOfAllThreads) {
  ASSERT_TRUE(OpenAll(1));
  const Deadline deadline = testing::InPatience();
  while (!AreAllInSync()) {
    for (const auto& log : logs_) ASSERT_TRUE(log->Append("record").ok());
    ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()));
  }
  const std::optional<NodeStatus> status =
      cluster_.NodeOf(2).Observe(kPatienceMs);
  ASSERT_TRUE(status.has_value());
  std::vector<std::string> names;
  std::vector<std::string> expected;
  for (int i = 0; i < kLogs; ++i) expected.push_back(NameOf(i));
  for (const NodeStatus::Replica& replica : status->replicas) {
    names.push_back(replica.log);
    EXPECT_TRUE(replica.is_served && replica.followed.in_session);
  }
  EXPECT_THAT(names, ElementsAreArray(expected));
  EXPECT_GE(status->connections, uint64_t{kLogs});
}

// ND8.
TEST_F(NodeThreadsTest, EachFileIsOfOneThread) {
  cluster_.Stop(2);
  cluster_.Start(2);
  const auto status = cluster_.NodeOf(2).Observe(kPatienceMs);
  ASSERT_TRUE(status.has_value());
  EXPECT_THAT(status->replicas, SizeIs(kLogs));
  for (const auto& replica : status->replicas) EXPECT_TRUE(replica.is_served);
}

// Another process opens all logs; the primaries of before hear of it.
TEST_F(NodeThreadsTest, LogsAreTakenOver) {
  ASSERT_TRUE(OpenAll(1));
  AppendToAll([](int appended) { return appended == 10; });
  std::vector<std::unique_ptr<Log>> before = std::move(logs_);
  ASSERT_TRUE(OpenAll(2));
  for (const auto& log : before) EXPECT_FALSE(log->Append("late").ok());
  AppendToAll([](int appended) { return appended == 10; });
  for (size_t i = 0; i < logs_.size(); ++i) {
    EXPECT_GT(logs_[i]->report().epoch, before[i]->report().epoch);
  }
}

TEST_F(NodeThreadsTest, LogsAreDeletedAndMadeAgain) {
  for (int i = 0; i < kLogs; i += 2) {
    const auto deleted = DeleteLog({.cluster_file = cluster_.file(),
                                    .log_name = NameOf(i),
                                    .timeout_ms = kPatienceMs});
    ASSERT_TRUE(deleted.ok()) << deleted.status();
    EXPECT_THAT(deleted->left, IsEmpty());
  }
  for (int i = 0; i < kLogs; ++i) {
    for (int node = 1; node <= 3; ++node) {
      EXPECT_EQ(FileBytes(node, i) < kRegionBytes, i % 2 == 0);
    }
  }
  const std::unique_ptr<Log> other = Open(1, 1);
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(other->Append("goes on").ok());
}

// A file that comes while the node runs is its log's thread's.
TEST_F(NodeThreadsTest, FileThatComesIsServed) {
  for (int i = 0; i < kLogs; ++i) {
    const std::string path = cluster_.ReplicaPath(3, NameOf(i));
    std::filesystem::rename(path, path + ".away");
  }
  ASSERT_TRUE(cluster_.AwaitReported({"node 3", "not served"}, kLogs));
  for (int i = 0; i < kLogs; ++i) {
    const std::string path = cluster_.ReplicaPath(3, NameOf(i));
    std::filesystem::rename(path + ".away", path);
  }
  ASSERT_TRUE(OpenAll(1));
  const Deadline deadline = testing::InPatience();
  while (!AreAllInSync()) {
    for (const auto& log : logs_) ASSERT_TRUE(log->Append("record").ok());
    ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()));
  }
}

// ---- What an operator does

// NTH2.
TEST_F(NodeThreadsTest, ReloadIsSaidOnceWhenAllThreadsHaveIt) {
  NodeOptions options;
  options.cluster_file = cluster_.file();
  options.node = 1;
  options.directory =
      std::filesystem::path(cluster_.ReplicaPath(1)).parent_path();
  options.threads = kThreads + 1;
  for (int time = 1; time <= 3; ++time) {
    ASSERT_TRUE(cluster_.NodeOf(1).Reload(options).ok());
    ASSERT_TRUE(cluster_.AwaitReported({"node 1: reloaded "}, time));
  }
  // Each thread has had two turns since.
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(cluster_.NodeOf(1).Observe(kPatienceMs).has_value());
  }
  EXPECT_EQ(LinesWith("node 1: reloaded "), 3);
  EXPECT_EQ(LinesWith("only after a restart: threads"), 3);
  ASSERT_TRUE(OpenAll(1));
}

TEST_F(NodeThreadsTest, NodeStopsAndComesBackWhileLogsAreWritten) {
  ASSERT_TRUE(OpenAll(1));
  std::atomic<bool> is_over{false};
  std::thread writer(
      [&] { AppendToAll([&](int /*appended*/) { return is_over.load(); }); });
  for (int time = 0; time < 3; ++time) {
    cluster_.Stop(3);
    cluster_.Start(3);
  }
  const Deadline deadline = testing::InPatience();
  while (!AreAllInSync() && !deadline.HasPassed(Clock::Real().NowNanos())) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(AreAllInSync());
  is_over = true;
  writer.join();
}

class EncryptedNodeThreadsTest : public NodeThreadsTest {
 protected:
  EncryptedNodeThreadsTest() : NodeThreadsTest(/*encrypts=*/true) {}
};

TEST_F(EncryptedNodeThreadsTest, LogsOfAllThreadsAreWritten) {
  ASSERT_TRUE(OpenAll(1));
  AppendToAll([](int appended) { return appended == 100; });
  for (const auto& log : logs_) ASSERT_TRUE(log->Close().ok());
  ASSERT_TRUE(OpenAll(2));
}

// ---- One node alone

class OneNodeTest : public ::testing::Test {
 protected:
  OneNodeTest() {
    options_.cluster_file = directory_.File("cluster.toml");
    std::ofstream(options_.cluster_file)
        << "cluster_id = \"9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a\"\n"
           "[[member]]\nnode = 1\naddress = \"127.0.0.1:7001\"\n";
    options_.listen = "127.0.0.1:0";
    options_.node = 1;
    options_.directory = directory_.File("node");
    std::filesystem::create_directory(options_.directory);
  }

  ~OneNodeTest() override {
    if (runs_.joinable()) runs_.join();
  }

  // Has the node run in a thread, which first calls `before`.
  void Run(Node& node, const std::function<void()>& before = [] {}) {
    runs_ = std::thread([&node, before, this] {
      before();
      ran_ = node.Run();
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
      ended_.notify_all();
    });
  }
  // Returns what Run does once the node ends by itself.
  absl::Status AwaitEnd(Node& node) {
    {
      std::unique_lock lock(mutex_);
      EXPECT_TRUE(ended_.wait_for(lock, testing::kPatience,
                                  [this] { return has_ended_; }));
    }
    node.Stop();
    runs_.join();
    return ran_;
  }

  // Before the next Run.
  void Forget() { has_ended_ = false; }

  testing::TempDirectory directory_;
  NodeOptions options_;

 private:
  std::thread runs_;
  absl::Status ran_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;  // guarded by mutex_
};

TEST_F(OneNodeTest, TooManyThreadsAreRefused) {
  options_.threads = kNodeThreadsMax + 1;
  for (const absl::Status& status :
       {Node::Start(options_).status(), Node::Check(options_).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("at most 64"));
  }
}

TEST_F(OneNodeTest, NodeTakesAThreadForEachCoreByItself) {
  std::string said;
  options_.say = [&](const std::string& sentence) { said += sentence + "\n"; };
  const auto node = Node::Start(options_);
  ASSERT_TRUE(node.ok()) << node.status();
  const uint32_t cores =
      std::min(std::thread::hardware_concurrency(), kThreadsByItself);
  EXPECT_EQ(said.find("threads: ") != std::string::npos, cores > 1) << said;
}

// NOD1. The thread that first says a sentence after the reload fails: memory
// runs out in it, where no log can be blamed.
TEST_F(OneNodeTest, ThreadThatFailsEndsTheNode) {
  std::atomic<bool> fails{false};
  options_.threads = kThreads;
  options_.say = [&](const std::string& sentence) {
    if (fails && sentence.find("not served") != std::string::npos) {
      std::vector<char>().reserve(~size_t{0});  // too long for any memory
    }
  };
  const auto node = Node::Start(options_);
  ASSERT_TRUE(node.ok()) << node.status();
  Run(**node);
  fails = true;
  // No replica, of a log of some thread.
  std::ofstream(options_.directory + "/none.alpheus") << "nothing";
  ASSERT_TRUE((*node)->Reload(options_).ok());
  const absl::Status ran = AwaitEnd(**node);
  EXPECT_TRUE(absl::IsResourceExhausted(ran)) << ran;
  EXPECT_THAT(std::string(ran.message()),
              HasSubstr("a thread of the node failed"));
  EXPECT_FALSE((*node)->Observe(kPatienceMs).has_value());
}

// NOD1. No memory has room for the stacks.
TEST_F(OneNodeTest, ThreadThatCannotBeStartedEndsTheNode) {
  options_.threads = kThreads;
  const auto node = Node::Start(options_);
  ASSERT_TRUE(node.ok()) << node.status();
  pthread_attr_t usual;
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
  Run(**node, [&] { ASSERT_EQ(pthread_setattr_default_np(&huge), 0); });
  const absl::Status ran = AwaitEnd(**node);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(ran)) << ran;
  EXPECT_THAT(std::string(ran.message()), HasSubstr("thread 2 of 3"));
}

// NTH1: peers of one log, on a node of three threads.
TEST_F(OneNodeTest, EachThreadHasAPartOfThePlaces) {
  const std::string hello = recovery::EncodeHello(
      {.cluster_id = quorum::LoadClusterFile(options_.cluster_file)->cluster_id,
       .log_id = {1, 2},
       .primary = {NodeId(1), /*incarnation=*/3}});
  for (const auto& [places, expected] :
       {std::pair{60U, 20U}, std::pair{20U, 16U}, std::pair{5U, 5U}}) {
    options_.threads = kThreads;
    options_.waiting_max = places;
    const auto node = Node::Start(options_);
    ASSERT_TRUE(node.ok()) << node.status();
    Run(**node);
    EntropyRandom random;
    fabric::tcp::TcpFabricOptions adapter;
    adapter.shares_sockets = true;
    adapter.group_of = recovery::GroupOfHello;
    fabric::tcp::TcpFabric peers(adapter, Clock::Real(), random);
    // One after the other: each is accepted, and the oldest makes room.
    const Deadline deadline = testing::InPatience();
    for (uint32_t i = 0; i < places; ++i) {
      ASSERT_TRUE(peers.Connect((*node)->address(), hello, Deadline()).ok());
      std::vector<fabric::ConnectionEvent> events;
      while (std::ranges::count(events,
                                fabric::ConnectionEvent::Kind::kEstablished,
                                &fabric::ConnectionEvent::kind) == 0) {
        ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()));
        peers.WaitForActivity(Deadline::In(std::chrono::milliseconds(10)));
        peers.Poll({}, &events);
      }
    }
    const auto status = (*node)->Observe(kPatienceMs);
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(status->connections, expected);
    (*node)->Stop();
    EXPECT_TRUE(AwaitEnd(**node).ok());
    Forget();
  }
}

TEST_F(OneNodeTest, StopBeforeRunEndsAllThreads) {
  options_.threads = kThreads;
  const auto node = Node::Start(options_);
  ASSERT_TRUE(node.ok()) << node.status();
  (*node)->Stop();
  EXPECT_TRUE((*node)->Run().ok());
}

}  // namespace
}  // namespace alpheus
