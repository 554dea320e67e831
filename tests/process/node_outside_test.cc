// SPDX-License-Identifier: Apache-2.0
// A node's surroundings do not stop it: readers of its messages that stand
// still, signals, limits of the system, files that an operator repairs or
// breaks in its directory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "quorum/membership/zookeeper/zookeeper_client.h"
#include "replication/fabric/tcp/socket.h"
#include "tests/support/fixtures/own_host.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// Host and port that nobody has.
std::string FreeAddress() {
  const auto listener = fabric::tcp::ListenOn(OwnHost() + ":0");
  EXPECT_TRUE(listener.ok()) << listener.status();
  return listener.ok() ? listener->address : std::string();
}

// A cluster of one node, which is enough to write.
class NodeOutsideTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(replicas_);
    WriteKey('a');
    WriteCluster(1);
  }
  void TearDown() override {
    if (node_.has_value() && HasFailure()) GTEST_LOG_(INFO) << said_;
  }

  void WriteKey(char digit) {
    const std::string path = directory_.File("cluster.key");
    std::filesystem::remove(path);
    std::ofstream(path) << std::string(64, digit) << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_read |
                                           std::filesystem::perms::owner_write);
  }
  void WriteCluster(int configuration) {
    std::ofstream(cluster_)
        << "cluster_id = '9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a'\n"
        << "configuration_id = " << configuration << "\n"
        << "key_file = 'cluster.key'\n"
        << "[[member]]\nnode = 1\naddress = '" << address_ << "'\n";
  }
  // With ZooKeeper's server where nobody listens. Returns its address.
  std::string WriteClusterWithZookeeper(const std::string& more = "") {
    std::string server = FreeAddress();
    std::ofstream(cluster_)
        << "cluster_id = '9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a'\n"
        << "key_file = 'cluster.key'\nmembership = 'zookeeper'\n"
        << "[zookeeper]\nservers = ['" << server << "']\n"
        << more << "[[member]]\nnode = 1\naddress = '" << address_ << "'\n";
    return server;
  }
  void Start() {
    StartWith({"--cluster", cluster_, "--node", "1", "--directory", replicas_});
  }
  void StartWith(std::vector<std::string> words) {
    words.insert(words.begin(), ALPHEUSD_BINARY);
    said_.clear();
    auto started = demo::ChildProcess::Start(
        {std::move(words), {}, /*dies_with_starter=*/true});
    ASSERT_TRUE(started.ok()) << started.status();
    node_.emplace(*std::move(started));
    ASSERT_TRUE(Says("listens on"));
  }
  demo::ProgramResult Run(std::vector<std::string> words,
                          const std::string& input = "") {
    words.insert(words.begin(), ALPHEUS_BINARY);
    words.insert(words.begin() + 2, {"--cluster", cluster_});
    auto result = demo::RunProgram({words, {}}, input, kPatienceNanos);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : demo::ProgramResult();
  }
  int Format(const std::string& log, const std::string& size = "1MiB") {
    return Run({"format", "--log", log, "--size", size}).end.exit_status;
  }
  int Append(const std::string& log, const std::string& lines) {
    return Run({"append", "--node", "1", "--log", log}, lines).end.exit_status;
  }
  int Status(const std::string& log) {
    return Run({"status", "--log", log}).end.exit_status;
  }
  bool Eventually(const std::function<bool()>& done) {
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    while (!done()) {
      if (Clock::Real().NowNanos() > end) return false;
    }
    return true;
  }
  // Behind the first `from` characters: one read may bring several lines.
  bool Says(const std::string& what, size_t from = 0) {
    return Eventually([&] {
      demo::ReadSome(node_->error().get(), &said_);
      return said_.find(what, from) != std::string::npos;
    });
  }
  // Another node of the same directory, to its end.
  demo::ProgramResult RunNode(std::vector<std::string> words) {
    words.insert(words.begin(), {ALPHEUSD_BINARY, "--cluster", cluster_,
                                 "--directory", replicas_});
    auto result = demo::RunProgram({words, {}}, "", kPatienceNanos);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : demo::ProgramResult();
  }
  // The log's primary, with the node's replica, until it is ended.
  demo::ChildProcess StartPrimary() {
    auto started = demo::ChildProcess::Start(
        {{ALPHEUS_BINARY, "append", "--cluster", cluster_, "--node", "1",
          "--file", File("main")},
         {},
         /*dies_with_starter=*/true});
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }
  bool Lives() { return !node_->WaitFor(0).has_value(); }
  void ExpectEndsWell(int signal) {
    node_->Signal(signal);
    const auto end = node_->WaitFor(kPatienceNanos);
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->exit_status, 0) << end->ToString();
  }
  std::string File(const std::string& log) const {
    return absl::StrCat(replicas_, "/", log, ".alpheus");
  }
  // Limits the resource for the node's process, from now on.
  void Limit(__rlimit_resource resource, rlim_t most) {
    rlimit limit{};
    ASSERT_EQ(prlimit(node_->pid(), resource, nullptr, &limit), 0);
    limit.rlim_cur = std::min(most, limit.rlim_max);
    ASSERT_EQ(prlimit(node_->pid(), resource, &limit, nullptr), 0);
  }

  const TempDirectory directory_;
  const std::string replicas_ = directory_.File("n1");
  const std::string cluster_ = directory_.File("cluster.toml");
  const std::string address_ = FreeAddress();
  std::optional<demo::ChildProcess> node_;
  std::string said_;
};

TEST_F(NodeOutsideTest, ReaderOfItsMessagesThatStandsStillStopsNothing) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  // The pipe is full from here on, and nobody reads.
  const demo::OwnedFd flood(
      open(absl::StrCat("/proc/self/fd/", node_->error().get()).c_str(),
           O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(flood.is_open());
  while (write(flood.get(), "x", 1) == 1) {
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Append("main", "a\n"), 0);
  EXPECT_EQ(Status("main"), 0);
  ExpectEndsWell(SIGTERM);
}

TEST_F(NodeOutsideTest, ReaderOfItsMessagesThatIsGoneStopsNothing) {
  Start();
  node_->error().Close();
  ASSERT_EQ(Format("main"), 0);
  EXPECT_EQ(Append("main", "a\n"), 0);
  ExpectEndsWell(SIGINT);
}

TEST_F(NodeOutsideTest, SignalsThatMeanNothingEndNoNode) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  for (const int signal :
       {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGPIPE,
        SIGXFSZ, SIGXCPU, SIGTTIN, SIGTTOU, SIGSTKFLT, SIGWINCH, SIGURG,
        SIGCHLD, SIGRTMIN, SIGRTMAX}) {
    node_->Signal(signal);
    ASSERT_EQ(Status("main"), 0) << signal;
    ASSERT_TRUE(Lives()) << signal;
  }
  ExpectEndsWell(SIGQUIT);
}

TEST_F(NodeOutsideTest, HangUpReadsKeyAndMembersAgain) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  WriteKey('b');
  EXPECT_NE(Status("main"), 0);  // the node has the old one
  node_->Signal(SIGHUP);
  ASSERT_TRUE(Says("reloaded"));
  EXPECT_EQ(Status("main"), 0);
  // A cluster file that can't be read changes nothing.
  std::ofstream(cluster_) << "no cluster file\n";
  node_->Signal(SIGHUP);
  ASSERT_TRUE(Says("nothing is reloaded"));
  WriteCluster(1);
  EXPECT_EQ(Status("main"), 0);
  ExpectEndsWell(SIGTERM);
}

// A pipe that nobody writes to would hold up the thread that waits for signals.
TEST_F(NodeOutsideTest, HangUpWaitsForNoPipe) {
  const std::string config = directory_.File("node.toml");
  std::ofstream(config) << "cluster = '" << cluster_
                        << "'\nnode = 1\ndirectory = '" << replicas_ << "'\n";
  StartWith({"--config", config});
  for (const std::string& file :
       {config, cluster_, directory_.File("cluster.key")}) {
    const std::string aside = directory_.File("aside");
    std::filesystem::rename(file, aside);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    node_->Signal(SIGHUP);
    EXPECT_TRUE(Says(file + " is not a regular file")) << file;
    std::filesystem::rename(aside, file);
  }
  node_->Signal(SIGHUP);
  EXPECT_TRUE(Says("reloaded: "));
  ExpectEndsWell(SIGTERM);
}

TEST_F(NodeOutsideTest, ReplicaThatIsPutIntoTheDirectoryIsFound) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  ASSERT_EQ(Append("main", "kept\n"), 0);
  ExpectEndsWell(SIGTERM);
  const std::string aside = directory_.File("aside");
  std::filesystem::rename(File("main"), aside);
  Start();
  EXPECT_NE(Status("main"), 0);
  std::filesystem::rename(aside, File("main"));
  EXPECT_TRUE(Eventually([&] { return Status("main") == 0; }));
  EXPECT_EQ(Run({"cat", "--log", "main"}).output, "kept\n");
  ExpectEndsWell(SIGTERM);
}

// Without a restart.
TEST_F(NodeOutsideTest, ReplicaThatCannotBeReadIsForgottenWithItsFile) {
  std::ofstream(File("main")) << std::string(1 << 20, 'x');
  Start();
  ASSERT_TRUE(Says("not served"));
  EXPECT_NE(Format("main"), 0);
  std::filesystem::remove(File("main"));
  ASSERT_TRUE(Says("is gone, and is no longer served"));
  EXPECT_EQ(Format("main"), 0);
  EXPECT_EQ(Append("main", "a\n"), 0);
  ExpectEndsWell(SIGTERM);
}

// One log that asks for too much costs the others nothing.
TEST_F(NodeOutsideTest, AddressSpaceThatRunsOutIsOneLogsTrouble) {
  Start();
  ASSERT_EQ(Format("small"), 0);
  Limit(RLIMIT_AS, rlim_t{512} << 20);
  EXPECT_NE(Format("large", "4GiB"), 0);
  EXPECT_TRUE(Lives());
  EXPECT_EQ(Append("small", "a\n"), 0);
  Limit(RLIMIT_AS, RLIM_INFINITY);
  EXPECT_EQ(Format("other"), 0);
  ExpectEndsWell(SIGTERM);
}

TEST_F(NodeOutsideTest, OpenFilesThatRunOutAreLookedAtAgain) {
  Start();
  ASSERT_EQ(Format("small"), 0);
  Limit(RLIMIT_NOFILE, 3);
  EXPECT_NE(Status("small"), 0);
  EXPECT_TRUE(Lives());
  Limit(RLIMIT_NOFILE, 1024);
  EXPECT_TRUE(Eventually([&] { return Status("small") == 0; }));
  ExpectEndsWell(SIGTERM);
}

TEST_F(NodeOutsideTest, FileSizeThatIsTooSmallIsAnError) {
  Start();
  Limit(RLIMIT_FSIZE, 64 << 10);
  EXPECT_NE(Format("main"), 0);
  EXPECT_TRUE(Lives());
  Limit(RLIMIT_FSIZE, RLIM_INFINITY);
  EXPECT_EQ(Format("main"), 0);
  ExpectEndsWell(SIGTERM);
}

// One line an event, with its time: who wrote, and who came to write.
TEST_F(NodeOutsideTest, MessagesAreLinesWithTimes) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  ASSERT_EQ(Append("main", "a\n"), 0);
  ASSERT_TRUE(Says("is promised epoch"));
  ASSERT_TRUE(Says("writes epoch"));
  ASSERT_TRUE(Says(", of 1 members, 1 of which persist each record"));
  std::ofstream(cluster_)
      << "cluster_id = '00000000-0000-0001-0000-000000000002'\n"
      << "key_file = 'cluster.key'\n"
      << "[[member]]\nnode = 1\naddress = '" << address_ << "'\n";
  EXPECT_NE(Status("main"), 0);
  ASSERT_TRUE(Says("Further ones of this host are counted, not reported"));
  ExpectEndsWell(SIGTERM);
  ASSERT_TRUE(Says("ends"));
  std::istringstream lines(said_);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line,
                MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}"
                             ":[0-9]{2}\\.[0-9]{3}Z alpheusd: .+"));
  }
}

// Only what was changed.
TEST_F(NodeOutsideTest, HangUpNamesOptionsThatNeedARestart) {
  const std::string options = directory_.File("alpheusd.toml");
  const auto write = [&](const std::string& more) {
    std::ofstream(options) << "cluster = '" << cluster_ << "'\nnode = 1\n"
                           << "directory = '" << replicas_ << "'\n"
                           << more;
  };
  write("");
  StartWith({"--config", options});
  write("unopened-max = 77\n");
  node_->Signal(SIGHUP);
  ASSERT_TRUE(Says("take effect only after a restart: unopened-max"));
  ASSERT_TRUE(Says("reloaded"));
  EXPECT_THAT(said_, Not(HasSubstr("unopened-max,")));
  EXPECT_THAT(said_, Not(HasSubstr("listen, ")));
  ExpectEndsWell(SIGTERM);
}

TEST_F(NodeOutsideTest, HangUpSaysWhyAListIsNotTaken) {
  Start();
  const auto write = [&](const std::string& id, const std::string& node) {
    std::ofstream(cluster_)
        << "cluster_id = '9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1" << id << "'\n"
        << "configuration_id = 2\nkey_file = 'cluster.key'\n"
        << "[[member]]\nnode = " << node << "\naddress = '" << address_
        << "'\n";
  };
  write("a", "2");
  node_->Signal(SIGHUP);
  ASSERT_TRUE(Says("node 1 is no longer a member, by configuration 2"));
  ASSERT_TRUE(Says("stop it when `alpheus reconfigure` has changed all logs"));
  write("b", "1");
  node_->Signal(SIGHUP);
  ASSERT_TRUE(Says("it has another cluster_id than when the node started"));
  ExpectEndsWell(SIGTERM);
}

TEST_F(NodeOutsideTest, DirectoryHasOneNode) {
  Start();
  const demo::ProgramResult second =
      RunNode({"--node", "1", "--listen", "127.0.0.1:0"});
  EXPECT_NE(second.end.exit_status, 0);
  EXPECT_THAT(second.error,
              HasSubstr("another alpheusd runs with this directory"));
  // --check-config may run beside it.
  EXPECT_EQ(RunNode({"--node", "1", "--check-config"}).end.exit_status, 0);
  ExpectEndsWell(SIGTERM);
  Start();
  ExpectEndsWell(SIGTERM);
}

// The node was started with another one's directory.
TEST_F(NodeOutsideTest, ReplicaOfAnotherNodeIsNamed) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  ExpectEndsWell(SIGTERM);
  std::ofstream(cluster_, std::ios::app)
      << "[[member]]\nnode = 2\naddress = '" << FreeAddress() << "'\n";
  const demo::ProgramResult checked =
      RunNode({"--node", "2", "--check-config"});
  EXPECT_NE(checked.end.exit_status, 0);
  EXPECT_THAT(checked.error, HasSubstr("is the replica of node 1, and this is "
                                       "node 2"));
  StartWith({"--cluster", cluster_, "--node", "2", "--directory", replicas_});
  ASSERT_TRUE(Says("expected that of node 2"));
  EXPECT_THAT(Run({"status", "--log", "main"}).output,
              HasSubstr("its file is the replica of node 1"));
  ExpectEndsWell(SIGTERM);
}

// A primary with the node's replica is named with its epoch; whoever reads
// meanwhile is no news.
TEST_F(NodeOutsideTest, PrimaryWithTheNodesReplicaIsTold) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  {
    demo::ChildProcess primary = StartPrimary();
    ASSERT_TRUE(Says("and has this node's replica itself"));
    for (int i = 0; i < 3; ++i) Run({"cat", "--log", "main"});
    EXPECT_THAT(said_, Not(HasSubstr("epoch 0")));
    primary.Signal(SIGTERM);
    ASSERT_TRUE(Says("is gone, with epoch"));
  }
  ASSERT_TRUE(Says("is gone, with epoch"));
  EXPECT_EQ(Append("main", "a\n"), 0);
  ExpectEndsWell(SIGTERM);
  ASSERT_TRUE(Says("node 1 ends"));
  EXPECT_THAT(said_, Not(HasSubstr("epoch 0")));
  EXPECT_THAT(said_, Not(HasSubstr("node 0")));
  EXPECT_THAT(said_, Not(HasSubstr("UNAVAILABLE")));
}

// The file's own node or primary, not another writer of a local log.
TEST_F(NodeOutsideTest, ReplicaIsNoLocalLog) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  const auto appended = demo::RunProgram(
      {{ALPHEUS_BINARY, "append", "--file", File("main")}, {}}, "a\n");
  ASSERT_TRUE(appended.ok()) << appended.status();
  EXPECT_NE(appended->end.exit_status, 0);
  EXPECT_THAT(appended->error, AllOf(HasSubstr("the replica of node 1"),
                                     HasSubstr("--cluster")));
  ExpectEndsWell(SIGTERM);
}

// The node stands by itself: it opens its log, steps down for a program
// that opens it without an election, and has it again afterwards.
TEST_F(NodeOutsideTest, NodeThatStandsHoldsItsLog) {
  StartWith({"--cluster", cluster_, "--node", "1", "--directory", replicas_,
             "--stand", "main"});
  ASSERT_EQ(Format("main"), 0);
  ASSERT_TRUE(Says("log main: node 1 is primary, in epoch "));
  EXPECT_EQ(Append("main", "a\n"), 0);
  ASSERT_TRUE(Says("log main: it has failed"));
  const size_t lost_at = said_.find("log main: it has failed");
  ASSERT_TRUE(Says("log main: node 1 is primary, in epoch ", lost_at));
  // The primary tells its node a little later that it has the replica.
  EXPECT_TRUE(Eventually([&] { return Status("main") == 0; }));
  ExpectEndsWell(SIGTERM);
}

// STL3, and what the candidate refuses: the check says no to all that the start
// refuses.
TEST_F(NodeOutsideTest, LogForWhichTheNodeCannotStandIsRefusedByTheCheckToo) {
  const auto refused = [&](std::vector<std::string> words,
                           const std::string& why) {
    words.insert(words.begin(), {"--node", "1"});
    const demo::ProgramResult started = RunNode(words);
    words.emplace_back("--check-config");
    const demo::ProgramResult checked = RunNode(words);
    for (const demo::ProgramResult& result : {started, checked}) {
      EXPECT_EQ(result.end.exit_status, 2) << result.error;
      EXPECT_THAT(result.error, HasSubstr(why));
      EXPECT_THAT(result.output, Not(HasSubstr("is good")));
      EXPECT_THAT(result.error, Not(HasSubstr("listens on")));
    }
  };
  refused({"--stand", "main", "--stand", "main"}, "the log is named twice");
  refused({"--stand", "a/b"}, "a/b");
  refused({"--stand", "main", "--silence-ms", "80"}, "silence_ms 80");
  refused({"--stand", "main", "--heartbeat-ms", "51"}, "heartbeat_ms, 51");
  EXPECT_EQ(RunNode({"--node", "1", "--stand", "main", "--stand", "orders",
                     "--silence-ms", "300", "--silence-ms-max", "9000",
                     "--heartbeat-ms", "100", "--check-config"})
                .end.exit_status,
            0);
  std::ofstream(cluster_, std::ios::app)
      << "may_be_primary = false\n[[member]]\nnode = 2\naddress = '"
      << FreeAddress() << "'\n";
  refused({"--stand", "main"}, "may_be_primary");
}

// Each program that reads the cluster's file names what is wrong with it.
TEST_F(NodeOutsideTest, IdentityFileThatIsMissingOrNoneIsNamed) {
  WriteClusterWithZookeeper("identity_file = 'zookeeper.identity'\n");
  const std::string path = directory_.File("zookeeper.identity");
  for (const bool is_there : {false, true}) {
    if (is_there) {
      std::ofstream(path) << "no colon\n";
      std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    }
    for (const demo::ProgramResult& result :
         {RunNode({"--node", "1"}), RunNode({"--node", "1", "--check-config"}),
          Run({"status", "--log", "main"}),
          Run({"append", "--node", "1", "--stand"})}) {
      EXPECT_NE(result.end.exit_status, 0);
      EXPECT_THAT(result.error,
                  AllOf(HasSubstr(path), HasSubstr("name:password")));
      EXPECT_THAT(result.error, Not(HasSubstr("no colon")));
    }
  }
}

TEST_F(NodeOutsideTest, ZookeeperThatIsAwayIsNamedByStatus) {
  if (!quorum::HasZookeeperClient()) {
    GTEST_SKIP() << "skipped: built without libzookeeper-st-dev";
  }
  const std::string server = WriteClusterWithZookeeper();
  Start();
  ASSERT_EQ(Format("main"), 0);
  EXPECT_THAT(
      Run({"status", "--log", "main", "--timeout-ms", "1000"}).error,
      HasSubstr(absl::StrCat("ZooKeeper at ", server, " (", cluster_,
                             ") did not answer within 1000 ms; expected a "
                             "session")));
  ExpectEndsWell(SIGTERM);
}

// The node serves on.
TEST_F(NodeOutsideTest, ProgramsWithoutAClientOfZookeeperSaySo) {
  if (quorum::HasZookeeperClient()) {
    GTEST_SKIP() << "skipped: built with libzookeeper-st-dev";
  }
  WriteClusterWithZookeeper();
  Start();
  ASSERT_EQ(Format("main"), 0);
  for (const demo::ProgramResult& result :
       {Run({"status", "--log", "main"}), Run({"append", "--node", "1"}),
        Run({"append", "--node", "1", "--stand"})}) {
    EXPECT_THAT(result.error,
                HasSubstr("was built without a client of ZooKeeper"));
  }
  ExpectEndsWell(SIGTERM);
}

// The printed command works as it is.
TEST_F(NodeOutsideTest, RemovedReplicaIsNamedWithItsRemedy) {
  Start();
  ASSERT_EQ(Format("main"), 0);
  std::filesystem::remove(File("main"));
  ASSERT_TRUE(Says("the file was removed"));
  ASSERT_TRUE(Says(absl::StrCat(
      "Do not put an older copy in its place: `alpheus replace --cluster ",
      cluster_, " --node 1 --log main`")));
  ExpectEndsWell(SIGTERM);
}

}  // namespace
}  // namespace alpheus::testing
