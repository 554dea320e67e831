// SPDX-License-Identifier: Apache-2.0
// Does the client of ZooKeeper do what znodes.h promises, and a membership
// above it what membership.h does, with real servers that are killed, paused,
// robbed and elected anew? One server, or an ensemble of three.
#include "quorum/membership/zookeeper/zookeeper_client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "log/base/clock.h"
#include "log/base/random.h"
#include "quorum/membership/zookeeper/znode_contents.h"
#include "quorum/membership/zookeeper/znode_membership.h"
#include "tests/support/fixtures/own_host.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/zookeeper_servers.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::quorum {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kMilli = 1'000'000;
// Time-outs of sessions that are to be kept, however busy the machine is; of
// those that outlive the test's patience, so that what ends is known to have
// been ended; and of those that are to be lost. With the longest one the client
// connects again after up to 15 s.
constexpr uint32_t kLongTimeoutMs = 30'000;
constexpr uint32_t kEndlessTimeoutMs = 900'000;
static_assert(kEndlessTimeoutMs > testing::kPatienceMs);
constexpr uint32_t kTimeoutMs = 2'000;
constexpr QuorumSizes kThree{3, 2, 2};
constexpr Uuid kCluster{0xc1, 0x57e4};

PrimaryId Process(uint64_t node) { return {NodeId(node), node << 48 | 7}; }
BallotQuestion Above(Epoch promised) { return {{Epoch(0), promised}, kThree}; }
int64_t Now() { return Clock::Real().NowNanos(); }

// Answers each connection as a web server does that was not asked in its
// language, and says so by a dot.
constexpr const char* kWebServer = R"(
import socket, sys
listener = socket.create_server((sys.argv[1], 2181))
while True:
    connection, _ = listener.accept()
    connection.recv(64)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                       b"Content-Type: text/html\r\n\r\n<html>400</html>\r\n")
    connection.close()
    print(end=".", flush=True)
)";

class ZookeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasZookeeperClient()) {
      GTEST_SKIP() << "skipped: built without libzookeeper-st-dev";
    }
    const std::string missing = testing::ZookeeperServers::WhyMissing();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  void StartServers(int count) {
    servers_ = std::make_unique<testing::ZookeeperServers>(count);
    ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
    addresses_ = servers_->addresses();
  }
  // Starts a web server in place of a server.
  void StartWebServer() {
    addresses_ = {{testing::OwnHost(), 2181}};
    demo::Program program;
    program.argv = {"/usr/bin/python3", "-c", kWebServer, addresses_[0].host};
    program.dies_with_starter = true;
    auto started = demo::ChildProcess::Start(program);
    ASSERT_TRUE(started.ok()) << started.status();
    web_ = std::make_unique<demo::ChildProcess>(*std::move(started));
  }
  void EndWebServer() {
    web_->Kill();
    web_->Wait();
  }
  size_t WebServerAnswers() {
    (void)demo::ReadSome(web_->output().get(), &web_said_);
    return web_said_.size();
  }
  ZookeeperService Service(uint32_t timeout_ms) const {
    ZookeeperService service;
    service.servers = addresses_;
    service.session_timeout_ms = timeout_ms;
    return service;
  }

  // Sleeps until one of the descriptors has something, or a moment.
  static void Sleep(const std::vector<int>& descriptors) {
    std::vector<pollfd> all;
    for (const int descriptor : descriptors) {
      if (descriptor >= 0) all.push_back({descriptor, POLLIN, 0});
    }
    poll(all.data(), all.size(), 5);
  }

  std::unique_ptr<testing::ZookeeperServers> servers_;
  std::vector<Address> addresses_;  // of the servers
  std::unique_ptr<demo::ChildProcess> web_;
  std::string web_said_;
};

std::set<int> OpenFiles() {
  std::set<int> files;
  for (int file = 0; file < 1'000; ++file) {
    if (fcntl(file, F_GETFD) >= 0) files.insert(file);
  }
  return files;
}

// --- Znodes ------------------------------------------------------------------

class ZookeeperClientTest : public ZookeeperTest {
 protected:
  ZookeeperService Service() const {
    return ZookeeperTest::Service(kLongTimeoutMs);
  }
  std::unique_ptr<Znodes> Open(const ZookeeperService& service) {
    absl::StatusOr<std::unique_ptr<Znodes>> opened =
        OpenZookeeper(service, Clock::Real());
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  std::unique_ptr<Znodes> Connect(const ZookeeperService& service) {
    std::unique_ptr<Znodes> znodes = Open(service);
    EXPECT_TRUE(RunUntil(*znodes, [&] {
      return znodes->state() == SessionState::kConnected;
    })) << servers_->Said();
    return znodes;
  }
  bool RunUntil(Znodes& znodes, const std::function<bool()>& done) {
    for (const int64_t until = Now() + testing::kPatienceNanos;
         Now() < until;) {
      znodes.Poll(events_);
      if (done()) return true;
      Sleep({znodes.descriptor()});
    }
    return false;
  }
  ZnodeEvent Ask(Znodes& znodes, ZnodeRequest request) {
    request.number = ++number_;
    znodes.Send(request);
    ZnodeEvent answer;
    EXPECT_TRUE(RunUntil(znodes, [&] {
      const auto found =
          std::ranges::find_if(events_, [&](const ZnodeEvent& event) {
            return event.kind == ZnodeEvent::Kind::kAnswer &&
                   event.number == number_;
          });
      if (found == events_.end()) return false;
      answer = *found;
      events_.erase(found);
      return true;
    }));
    return answer;
  }
  ZnodeEvent Create(Znodes& znodes, const std::string& path,
                    const std::string& data = "",
                    ZnodeLife life = ZnodeLife::kPersistent,
                    ZnodeRights rights = ZnodeRights::kFolder) {
    ZnodeRequest request;
    request.call = ZnodeCall::kCreate;
    request.path = path;
    request.data = data;
    request.life = life;
    request.rights = rights;
    return Ask(znodes, request);
  }
  ZnodeEvent Do(Znodes& znodes, ZnodeCall call, const std::string& path,
                const std::string& data = "", int32_t version = kAnyVersion,
                bool watch = false) {
    ZnodeRequest request;
    request.call = call;
    request.path = path;
    request.data = data;
    request.version = version;
    request.watch = watch;
    return Ask(znodes, request);
  }
  bool IsToldOf(Znodes& znodes, const std::string& path) {
    return RunUntil(znodes, [&] {
      return std::erase_if(events_, [&](const ZnodeEvent& event) {
               return event.kind == ZnodeEvent::Kind::kChanged &&
                      event.path == path;
             }) != 0;
    });
  }

  uint64_t number_ = 0;
  std::vector<ZnodeEvent> events_;
};

TEST_F(ZookeeperClientTest, ZnodesAreMadeReadWrittenAndDeleted) {
  StartServers(1);
  const std::unique_ptr<Znodes> one = Connect(Service());
  EXPECT_NE(one->session_id(), 0u);
  EXPECT_EQ(one->connections(), 1u);
  EXPECT_EQ(one->timeout_ns(), kLongTimeoutMs * kMilli);
  EXPECT_EQ(Do(*one, ZnodeCall::kSync, "/").outcome, ZnodeOutcome::kDone);
  EXPECT_EQ(Do(*one, ZnodeCall::kGet, "/a").outcome, ZnodeOutcome::kNone);
  EXPECT_EQ(Create(*one, "/a/b").outcome, ZnodeOutcome::kNone);
  EXPECT_EQ(Create(*one, "/a", "x\ny").path, "/a");
  EXPECT_EQ(Create(*one, "/a", "z").outcome, ZnodeOutcome::kExists);
  const ZnodeEvent got = Do(*one, ZnodeCall::kGet, "/a");
  EXPECT_EQ(got.data, "x\ny");
  EXPECT_EQ(got.version, 0);
  EXPECT_EQ(got.owner, 0u);
  EXPECT_EQ(Do(*one, ZnodeCall::kSet, "/a", "w", 1).outcome,
            ZnodeOutcome::kOtherVersion);
  EXPECT_EQ(Do(*one, ZnodeCall::kSet, "/a", "w", 0).outcome,
            ZnodeOutcome::kDone);
  EXPECT_EQ(Do(*one, ZnodeCall::kGet, "/a").version, 1);
  EXPECT_EQ(Create(*one, "/a/e-", "1", ZnodeLife::kEphemeralSequential).path,
            "/a/e-0000000000");
  EXPECT_EQ(Create(*one, "/a/e-", "2", ZnodeLife::kEphemeralSequential).path,
            "/a/e-0000000001");
  EXPECT_EQ(Create(*one, "/a/e", "", ZnodeLife::kEphemeral).outcome,
            ZnodeOutcome::kDone);
  EXPECT_EQ(Do(*one, ZnodeCall::kGet, "/a/e").owner, one->session_id());
  EXPECT_EQ(Create(*one, "/a/e/f").outcome, ZnodeOutcome::kRefused);
  EXPECT_THAT(Do(*one, ZnodeCall::kList, "/a").names,
              UnorderedElementsAre("e", "e-0000000000", "e-0000000001"));
  EXPECT_EQ(Do(*one, ZnodeCall::kDelete, "/a").outcome, ZnodeOutcome::kRefused);
  EXPECT_EQ(Do(*one, ZnodeCall::kDelete, "/a/e", "", 5).outcome,
            ZnodeOutcome::kOtherVersion);
  EXPECT_EQ(Do(*one, ZnodeCall::kDelete, "/a/e", "", 0).outcome,
            ZnodeOutcome::kDone);
  EXPECT_EQ(Do(*one, ZnodeCall::kDelete, "/a/e").outcome, ZnodeOutcome::kNone);
}

// ZN2.
TEST_F(ZookeeperClientTest, AWatchTellsOfOneChange) {
  StartServers(1);
  const std::unique_ptr<Znodes> one = Connect(Service());
  const std::unique_ptr<Znodes> two = Connect(Service());
  Create(*one, "/a");
  Do(*one, ZnodeCall::kList, "/a", "", kAnyVersion, /*watch=*/true);
  Create(*two, "/a/b", "1");
  EXPECT_TRUE(IsToldOf(*one, "/a"));
  Do(*one, ZnodeCall::kGet, "/a/b", "", kAnyVersion, /*watch=*/true);
  Do(*one, ZnodeCall::kGet, "/a/b", "", kAnyVersion, /*watch=*/true);
  Do(*two, ZnodeCall::kSet, "/a/b", "2");
  EXPECT_TRUE(IsToldOf(*one, "/a/b"));
  Do(*two, ZnodeCall::kSet, "/a/b", "3");
  Do(*one, ZnodeCall::kSync, "/a/b");
  EXPECT_EQ(Do(*one, ZnodeCall::kGet, "/a/b").data, "3");
  EXPECT_THAT(events_, IsEmpty());
}

// ZK3. By itself the session would outlive the test.
TEST_F(ZookeeperClientTest, TheEndOfAnObjectEndsItsSession) {
  StartServers(1);
  const std::unique_ptr<Znodes> witness = Connect(Service());
  Create(*witness, "/a");
  std::unique_ptr<Znodes> other =
      Connect(ZookeeperTest::Service(kEndlessTimeoutMs));
  Create(*other, "/a/b", "", ZnodeLife::kEphemeral);
  Do(*witness, ZnodeCall::kList, "/a", "", kAnyVersion, /*watch=*/true);
  other.reset();
  EXPECT_TRUE(IsToldOf(*witness, "/a"));
  EXPECT_THAT(Do(*witness, ZnodeCall::kList, "/a").names, IsEmpty());
}

// ZN1: it was on its way when the server died.
TEST_F(ZookeeperClientTest, ALostConnectionLeavesOutcomesUnknown) {
  StartServers(1);
  const std::unique_ptr<Znodes> one = Connect(Service());
  Create(*one, "/a");
  servers_->Pause(0);
  ZnodeRequest request;
  request.number = ++number_;
  request.call = ZnodeCall::kSet;
  request.path = "/a";
  one->Send(request);
  servers_->Kill(0);
  ASSERT_TRUE(RunUntil(*one, [&] { return !events_.empty(); }));
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].number, number_);
  EXPECT_EQ(events_[0].outcome, ZnodeOutcome::kUnknown);
  EXPECT_EQ(one->state(), SessionState::kSuspended);
  events_.clear();
  const uint64_t session = one->session_id();
  servers_->Start(0);
  ASSERT_TRUE(RunUntil(*one, [&] {
    return one->state() != SessionState::kSuspended;
  })) << servers_->Said();
  // Its session lives if the server was back in time.
  if (one->state() == SessionState::kConnected) {
    EXPECT_EQ(one->session_id(), session);
    EXPECT_EQ(one->connections(), 2u);
  } else {
    EXPECT_TRUE(absl::IsUnavailable(one->status())) << one->status();
  }
}

// ZK5, ZN1: the server has reset the connection, and nobody polled since.
TEST_F(ZookeeperClientTest, ARequestThatCannotBeSentSuspendsTheSession) {
  StartServers(1);
  const std::unique_ptr<Znodes> one = Connect(Service());
  Create(*one, "/a");
  // Bytes that it has not read make the end of a server a reset.
  servers_->Pause(0);
  ZnodeRequest request;
  request.call = ZnodeCall::kGet;
  request.path = "/a";
  request.number = ++number_;
  one->Send(request);
  servers_->Kill(0);
  request.number = ++number_;
  one->Send(request);
  EXPECT_EQ(one->state(), SessionState::kSuspended);
  ASSERT_TRUE(RunUntil(*one, [&] { return events_.size() == 2; }));
  for (const ZnodeEvent& event : events_) {
    EXPECT_EQ(event.outcome, ZnodeOutcome::kUnknown) << event.number;
  }
  events_.clear();
  servers_->Start(0);
  EXPECT_TRUE(RunUntil(*one, [&] {
    return one->state() != SessionState::kSuspended;
  })) << servers_->Said();
}

// Returns the socket among files that were opened after `before`.
std::optional<int> SocketBeside(const std::set<int>& before) {
  for (const int file : OpenFiles()) {
    struct stat found{};
    if (!before.contains(file) && fstat(file, &found) == 0 &&
        S_ISSOCK(found.st_mode)) {
      return file;
    }
  }
  return std::nullopt;
}

// The same, and its number is another file's when the object ends: ZK4.
TEST_F(ZookeeperClientTest, ASocketThatTheLibraryClosedIsNotTouched) {
  StartServers(1);
  std::set<int> before = OpenFiles();
  std::unique_ptr<Znodes> one = Connect(Service());
  const std::optional<int> number = SocketBeside(before);
  ASSERT_TRUE(number.has_value());
  servers_->Pause(0);
  ZnodeRequest request;
  request.path = "/";
  one->Send(request);
  servers_->Kill(0);
  one->Send(request);
  // It is closed. Another session's connection gets the number, which is kept
  // for it.
  ASSERT_EQ(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, *number), *number);
  servers_->Start(0);
  before = OpenFiles();
  const std::unique_ptr<Znodes> two = Connect(Service());
  const std::optional<int> connection = SocketBeside(before);
  ASSERT_TRUE(connection.has_value());
  ASSERT_EQ(dup2(*connection, *number), *number);
  one.reset();
  EXPECT_EQ(Do(*two, ZnodeCall::kSync, "/").outcome, ZnodeOutcome::kDone);
  EXPECT_EQ(two->connections(), 1u);
  close(*number);
}

// ZK6: looking for the servers would seed the C library's generator.
TEST_F(ZookeeperClientTest, APollOfAConnectedSessionLooksForNoServers) {
  StartServers(1);
  const std::unique_ptr<Znodes> one = Connect(Service());
  unsigned short seed[] = {1, 2, 3};  // NOLINT(google-runtime-int)
  seed48(seed);
  for (int i = 0; i < 10; ++i) one->Poll(events_);
  ASSERT_EQ(one->state(), SessionState::kConnected);
  // It returns the seed before.
  const auto* const before = seed48(seed);
  EXPECT_EQ(std::vector(before, before + 3), std::vector(seed, seed + 3));
}

// Returns whether this machine has IPv6.
bool HasIpv6() {
  std::string line;
  std::ifstream addresses("/proc/net/if_inet6");
  return static_cast<bool>(std::getline(addresses, line));
}

// An IPv6 number has no brackets for the library.
TEST(ZookeeperAddressTest, AServerMayHaveAnIpv6Number) {
  if (!HasZookeeperClient()) {
    GTEST_SKIP() << "skipped: built without libzookeeper-st-dev";
  }
  if (!HasIpv6()) GTEST_SKIP() << "skipped: this machine has no IPv6";
  ZookeeperService service;
  service.servers = {{"::1", 2181}};
  const auto opened = OpenZookeeper(service, Clock::Real());
  EXPECT_TRUE(opened.ok()) << opened.status();
}

// ZK7: the library takes the text for the answer of a server.
TEST_F(ZookeeperClientTest, WhatAWebServerSaysEndsTheSession) {
  StartWebServer();
  const std::unique_ptr<Znodes> one = Open(Service());
  ASSERT_TRUE(RunUntil(*one, [&] {
    return one->state() == SessionState::kExpired || WebServerAnswers() > 1;
  }));
  EXPECT_EQ(one->state(), SessionState::kExpired);
  EXPECT_TRUE(absl::IsUnavailable(one->status())) << one->status();
  EXPECT_THAT(one->status().message(), HasSubstr("no server of ZooKeeper"));
}

// The process did not get to run for longer than its time-out.
TEST_F(ZookeeperClientTest, ASessionOfWhichNothingIsHeardExpires) {
  StartServers(1);
  const std::unique_ptr<Znodes> witness = Connect(Service());
  Create(*witness, "/a");
  const std::unique_ptr<Znodes> silent =
      Connect(ZookeeperTest::Service(kTimeoutMs));
  Create(*silent, "/a/b", "", ZnodeLife::kEphemeral);
  ASSERT_TRUE(RunUntil(*witness, [&] {
    return Do(*witness, ZnodeCall::kList, "/a").names.empty();
  }));
  ASSERT_TRUE(RunUntil(
      *silent, [&] { return silent->state() == SessionState::kExpired; }));
  EXPECT_TRUE(absl::IsUnavailable(silent->status())) << silent->status();
  EXPECT_FALSE(silent->NextPoll().is_set());
}

// Somebody else has its id and password.
TEST_F(ZookeeperClientTest, ASessionThatAnotherClientEndsExpires) {
  StartServers(1);
  const std::unique_ptr<Znodes> one =
      Connect(ZookeeperTest::Service(kEndlessTimeoutMs));
  const std::unique_ptr<Znodes> witness = Connect(Service());
  Create(*witness, "/a");
  Create(*one, "/a/b", "", ZnodeLife::kEphemeral);
  ASSERT_TRUE(servers_->EndSession(0, one->session_id())) << servers_->Said();
  EXPECT_THAT(Do(*witness, ZnodeCall::kList, "/a").names, IsEmpty());
  ASSERT_TRUE(
      RunUntil(*one, [&] { return one->state() == SessionState::kExpired; }));
  EXPECT_TRUE(absl::IsUnavailable(one->status())) << one->status();
  EXPECT_FALSE(servers_->EndSession(0, one->session_id()));
}

// A program that its process starts would keep them open.
TEST_F(ZookeeperClientTest, ItsFilesAreClosedInChildProcesses) {
  StartServers(1);
  const std::set<int> before = OpenFiles();
  const std::unique_ptr<Znodes> one = Connect(Service());
  size_t own = 0;
  for (const int file : OpenFiles()) {
    if (before.contains(file)) continue;
    ++own;
    EXPECT_EQ(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) << file;
  }
  EXPECT_EQ(own, 2u);  // a socket, and what waits for it
}

TEST_F(ZookeeperClientTest, WhereNobodyListensItGoesOnTrying) {
  StartServers(1);
  servers_->Kill(0);
  const std::unique_ptr<Znodes> one = Open(Service());
  for (int i = 0; i < 20; ++i) {
    one->Poll(events_);
    Sleep({});
    EXPECT_EQ(one->state(), SessionState::kConnecting);
    EXPECT_TRUE(one->NextPoll().is_set());
  }
  servers_->Start(0);
  EXPECT_TRUE(
      RunUntil(*one, [&] { return one->state() == SessionState::kConnected; }));
}

// --- Rights ------------------------------------------------------------------

class ZookeeperRightsTest : public ZookeeperClientTest {
 protected:
  ZookeeperService As(const std::string& identity) const {
    ZookeeperService service = Service();
    service.identity = identity;
    return service;
  }
};

TEST_F(ZookeeperRightsTest, OnlyTheIdentityAndTheAdministratorMayUseZnodes) {
  StartServers(1);
  ZookeeperService with_admin = As("alpheus:secret");
  // "ops:power", as DigestAuthenticationProvider prints it.
  with_admin.admin = "ops:XjEJMJX5CRRxaOJaQowoCJDUNu0=";
  const std::unique_ptr<Znodes> one = Connect(with_admin);
  Create(*one, "/kept", "", ZnodeLife::kPersistent, ZnodeRights::kKeepFolder);
  Create(*one, "/kept/ballot", "1", ZnodeLife::kPersistent, ZnodeRights::kLeaf);
  Create(*one, "/kept/open", "", ZnodeLife::kPersistent, ZnodeRights::kFolder);
  Create(*one, "/kept/open/a", "", ZnodeLife::kPersistent, ZnodeRights::kLeaf);
  // No DELETE on the ballot's parent, for the service's identity.
  EXPECT_EQ(Do(*one, ZnodeCall::kDelete, "/kept/ballot").outcome,
            ZnodeOutcome::kRefused);
  EXPECT_EQ(Do(*one, ZnodeCall::kSet, "/kept/ballot", "2", 0).outcome,
            ZnodeOutcome::kDone);
  EXPECT_EQ(Do(*one, ZnodeCall::kDelete, "/kept/open/a").outcome,
            ZnodeOutcome::kDone);
  for (const char* identity : {"", "alpheus:wrong", "other:secret"}) {
    const std::unique_ptr<Znodes> other = Connect(As(identity));
    for (const ZnodeCall call :
         {ZnodeCall::kGet, ZnodeCall::kSet, ZnodeCall::kList}) {
      EXPECT_EQ(Do(*other, call, "/kept/ballot").outcome,
                ZnodeOutcome::kRefused)
          << identity;
    }
    EXPECT_EQ(Create(*other, "/kept/b").outcome, ZnodeOutcome::kRefused);
    EXPECT_EQ(Do(*other, ZnodeCall::kDelete, "/kept/ballot").outcome,
              ZnodeOutcome::kRefused);
  }
  const std::unique_ptr<Znodes> same = Connect(As("alpheus:secret"));
  EXPECT_EQ(Do(*same, ZnodeCall::kGet, "/kept/ballot").data, "2");
  const std::unique_ptr<Znodes> admin = Connect(As("ops:power"));
  EXPECT_EQ(Do(*admin, ZnodeCall::kDelete, "/kept/ballot").outcome,
            ZnodeOutcome::kDone);
}

// --- A membership ------------------------------------------------------------

class ZookeeperMembershipTest : public ZookeeperTest {
 protected:
  ZnodeMembership& New(uint64_t node) {
    ZnodeMembershipOptions options;
    options.self = Process(node);
    options.cluster_id = kCluster;
    options.log_name = "orders";
    options.register_patience_ns = register_patience_ns_;
    ZookeeperService service = Service(timeout_ms_);
    service.identity = identity_;
    // "ops:power"
    if (!identity_.empty()) service.admin = "ops:XjEJMJX5CRRxaOJaQowoCJDUNu0=";
    memberships_.push_back(*ZnodeMembership::Start(
        [service] { return OpenZookeeper(service, Clock::Real()); },
        Clock::Real(), random_, options));
    return *memberships_.back();
  }
  // Makes one that does not wait long for a register, which is away: a busy
  // machine may be later than that.
  ZnodeMembership& Impatient(uint64_t node) {
    const int64_t before = std::exchange(register_patience_ns_, 100 * kMilli);
    ZnodeMembership& membership = New(node);
    register_patience_ns_ = before;
    return membership;
  }
  ZnodeMembership& Standing(uint64_t node) {
    ZnodeMembership& membership = New(node);
    membership.Register({NodeId(node), node, "here", Epoch(0)});
    membership.Stand();
    EXPECT_TRUE(RunUntil([&] { return IsSeen(membership, node); }))
        << servers_->Said() << membership.problem();
    return membership;
  }
  static bool IsSeen(const ZnodeMembership& membership, uint64_t node) {
    return membership.session().state == SessionState::kConnected &&
           std::ranges::any_of(membership.candidates(),
                               [&](const Candidate& one) {
                                 return one.primary == Process(node);
                               }) &&
           std::ranges::any_of(membership.registrations(),
                               [&](const Registration& one) {
                                 return one.node == NodeId(node);
                               });
  }
  // Each one is polled, and renewed when its session has expired.
  bool RunUntil(const std::function<bool()>& done) {
    for (const int64_t until = Now() + testing::kPatienceNanos;
         Now() < until;) {
      std::vector<int> descriptors;
      for (const auto& one : memberships_) {
        one->Poll();
        if (one->session().state == SessionState::kExpired) {
          ++expired_;
          if (renews_) one->Renew();
        }
        descriptors.push_back(one->descriptor());
      }
      if (done()) return true;
      Sleep(descriptors);
    }
    return false;
  }
  Epoch Ballot(ZnodeMembership& membership, Epoch promised,
               bool is_of_register) {
    const auto request = membership.Ask(Above(promised));
    EXPECT_TRUE(RunUntil([&] { return request->Poll() == Polled::kDone; }));
    EXPECT_EQ(request->is_of_register(), is_of_register)
        << membership.problem();
    EXPECT_TRUE(request->ballot().ok()) << request->ballot().status();
    EXPECT_GT(*request->ballot(), promised);
    return *request->ballot();
  }
  // Until the register gives them again.
  Epoch BallotOfRegister(ZnodeMembership& membership, Epoch promised) {
    Epoch last = promised;
    EXPECT_TRUE(RunUntil([&] {
      const auto request = membership.Ask(Above(last));
      while (request->Poll() != Polled::kDone) {
        Sleep({membership.descriptor()});
      }
      last = *request->ballot();
      return request->is_of_register();
    })) << membership.problem();
    return last;
  }

  // Asks by hand, while the memberships go on.
  ZnodeEvent Ask(Znodes& hand, ZnodeCall call, const std::string& path) {
    ZnodeRequest request;
    request.number = ++number_;
    request.call = call;
    request.path = path;
    std::vector<ZnodeEvent> events;
    bool is_sent = false;
    EXPECT_TRUE(RunUntil([&] {
      hand.Poll(events);
      if (!is_sent && hand.state() == SessionState::kConnected) {
        hand.Send(request);
        is_sent = true;
      }
      return !events.empty();
    }));
    return events.empty() ? ZnodeEvent() : events.front();
  }
  // As far as nothing is made meanwhile.
  void DeleteAll(Znodes& hand, const std::string& path) {
    for (const std::string& name : Ask(hand, ZnodeCall::kList, path).names) {
      DeleteAll(hand, path + "/" + name);
    }
    (void)Ask(hand, ZnodeCall::kDelete, path);
  }

  Random random_{11};
  std::string identity_;              // of those that are made
  uint32_t timeout_ms_ = kTimeoutMs;  // of their sessions
  uint64_t number_ = 0;
  // A busy machine may answer late.
  int64_t register_patience_ns_ = 20'000 * kMilli;
  bool renews_ = true;
  int expired_ = 0;
  std::vector<std::unique_ptr<ZnodeMembership>> memberships_;
};

TEST_F(ZookeeperMembershipTest, TwoProcessesSeeEachOther) {
  StartServers(1);
  timeout_ms_ = kEndlessTimeoutMs;
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  EXPECT_TRUE(RunUntil([&] { return IsSeen(one, 2) && IsSeen(two, 1); }));
  EXPECT_TRUE(IsFirst(one, Process(1)));
  EXPECT_FALSE(IsFirst(two, Process(2)));
  const Epoch first = Ballot(one, Epoch(0), /*is_of_register=*/true);
  const Epoch second = Ballot(two, Epoch(0), /*is_of_register=*/true);
  EXPECT_GT(second, first);
  one.Announce({first, Process(1), "here"});
  EXPECT_TRUE(RunUntil([&] { return two.live_primary().has_value(); }));
  two.Announce({second, Process(2), "there"});
  EXPECT_TRUE(RunUntil([&] {
    return one.live_primary() && one.live_primary()->epoch == second;
  }));
  one.Describe({Lsn(0), 1});
  two.Describe({Lsn(8), 0});
  EXPECT_TRUE(RunUntil([&] { return IsFirst(two, Process(2)); }));
  two.Withdraw();
  EXPECT_TRUE(RunUntil([&] { return !IsSeen(one, 2); }));
}

TEST_F(ZookeeperMembershipTest, WhoEndsIsGoneAtOnce) {
  StartServers(1);
  timeout_ms_ = kEndlessTimeoutMs;
  ZnodeMembership& one = Standing(1);
  Standing(2);
  memberships_.pop_back();
  EXPECT_TRUE(RunUntil([&] {
    return one.candidates().size() == 1 && one.registrations().size() == 1;
  }));
}

TEST_F(ZookeeperMembershipTest, AServerThatIsPausedIsInDoubtAndComesBack) {
  StartServers(1);
  ZnodeMembership& one = Standing(1);
  const Epoch first = BallotOfRegister(one, Epoch(0));
  servers_->Pause(0);
  EXPECT_TRUE(RunUntil(
      [&] { return one.session().state == SessionState::kSuspended; }));
  ZnodeMembership& other = Impatient(2);
  Epoch last = first;
  for (int i = 0; i < 3; ++i) {
    last = Ballot(other, last, /*is_of_register=*/false);
  }
  servers_->Continue(0);
  EXPECT_TRUE(RunUntil([&] { return IsSeen(one, 1); })) << servers_->Said();
  EXPECT_GT(BallotOfRegister(one, last), last);
}

TEST_F(ZookeeperMembershipTest, AServerThatIsKilledComesBackWithItsData) {
  StartServers(1);
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  const Epoch first = BallotOfRegister(one, Epoch(0));
  servers_->Kill(0);
  EXPECT_TRUE(RunUntil([&] {
    return one.session().state != SessionState::kConnected &&
           two.session().state != SessionState::kConnected;
  }));
  servers_->Start(0);
  EXPECT_TRUE(RunUntil([&] { return IsSeen(one, 2) && IsSeen(two, 1); }))
      << servers_->Said();
  // No promise told of the first one: the register remembers it.
  EXPECT_GT(BallotOfRegister(two, Epoch(0)), first);
}

TEST_F(ZookeeperMembershipTest, AServerThatLostItsDataIsFilledAgain) {
  StartServers(1);
  ZnodeMembership& one = Standing(1);
  const Epoch first = BallotOfRegister(one, Epoch(0));
  servers_->Kill(0);
  servers_->LoseData(0);
  servers_->Start(0);
  EXPECT_TRUE(RunUntil([&] { return expired_ > 0; })) << servers_->Said();
  EXPECT_TRUE(RunUntil([&] { return IsSeen(one, 1); })) << servers_->Said();
  EXPECT_GT(BallotOfRegister(one, first), first);
}

TEST_F(ZookeeperMembershipTest, WhoseSessionExpiredStandsBehindTheOthers) {
  StartServers(1);
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  ASSERT_TRUE(RunUntil([&] { return IsSeen(two, 1); }));
  const uint64_t session = one.session().id;
  // Only the other one is polled.
  std::unique_ptr<ZnodeMembership> silent = std::move(memberships_[0]);
  memberships_.erase(memberships_.begin());
  ASSERT_TRUE(RunUntil([&] { return IsFirst(two, Process(2)); }));
  memberships_.push_back(std::move(silent));
  ASSERT_TRUE(RunUntil(
      [&] { return IsSeen(one, 2) && IsSeen(one, 1) && IsSeen(two, 1); }));
  EXPECT_GE(expired_, 1);
  EXPECT_NE(one.session().id, session);
  EXPECT_TRUE(IsFirst(one, Process(2)));
}

TEST_F(ZookeeperMembershipTest, WhoseSessionAnotherClientEndsStandsAgain) {
  StartServers(1);
  timeout_ms_ = kEndlessTimeoutMs;
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  const Epoch first = BallotOfRegister(one, Epoch(0));
  one.Announce({first, Process(1), "here"});
  ASSERT_TRUE(RunUntil([&] { return two.live_primary().has_value(); }));
  const uint64_t session = one.session().id;
  ASSERT_TRUE(servers_->EndSession(0, session)) << servers_->Said();
  ASSERT_TRUE(RunUntil([&] { return IsFirst(two, Process(2)); }));
  ASSERT_TRUE(RunUntil([&] {
    return one.session().id != session && IsSeen(one, 1) && IsSeen(two, 1) &&
           two.live_primary().has_value();
  })) << servers_->Said();
  EXPECT_GE(expired_, 1);
  EXPECT_EQ(two.live_primary()->epoch, first);
  EXPECT_GT(BallotOfRegister(one, first), first);
}

TEST_F(ZookeeperMembershipTest, ZnodesThatAnAdministratorDeletesAreMadeAgain) {
  StartServers(1);
  identity_ = "alpheus:secret";
  ZnodeMembership& one = Standing(1);
  const Epoch first = BallotOfRegister(one, Epoch(0));
  one.Announce({first, Process(1), "here"});
  one.Publish({3, 2, 2, {{NodeId(1), "one:1"}}});
  const std::string root = "/alpheus/" + kCluster.ToString();
  ZookeeperService service = Service(kLongTimeoutMs);
  service.identity = "ops:power";
  const std::unique_ptr<Znodes> hand = *OpenZookeeper(service, Clock::Real());
  const auto is_whole = [&] {
    return IsSeen(one, 1) && one.live_primary().has_value() &&
           Ask(*hand, ZnodeCall::kGet, root + "/format").outcome ==
               ZnodeOutcome::kDone &&
           Ask(*hand, ZnodeCall::kGet, root + "/members").outcome ==
               ZnodeOutcome::kDone;
  };
  ASSERT_TRUE(RunUntil(is_whole)) << one.problem();
  const std::string paths[] = {
      "/logs/orders/ballot", "/logs/orders/live/" + PrimaryName(first),
      "/nodes/1-0000000000000001", "/members", "/format"};
  for (const std::string& path : paths) {
    EXPECT_EQ(Ask(*hand, ZnodeCall::kDelete, root + path).outcome,
              ZnodeOutcome::kDone)
        << path;
  }
  EXPECT_TRUE(RunUntil(is_whole)) << one.problem();
  const Epoch second = BallotOfRegister(one, first);
  EXPECT_GT(second, first);
  DeleteAll(*hand, root);
  EXPECT_TRUE(RunUntil(is_whole)) << one.problem();
  EXPECT_GT(BallotOfRegister(one, second), second);
}

// Each of both takes the number that the other wanted, again and again.
TEST_F(ZookeeperMembershipTest, TwoAtOnceNeverGetOneBallot) {
  StartServers(1);
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  std::set<uint64_t> counters;
  size_t given = 0;
  for (int round = 0; round < 200; ++round) {
    const std::unique_ptr<BallotRequest> requests[] = {
        one.Ask(Above(Epoch(0))), two.Ask(Above(Epoch(0)))};
    ASSERT_TRUE(RunUntil([&] {
      return std::ranges::all_of(requests, [](const auto& request) {
        return request->Poll() == Polled::kDone;
      });
    }));
    for (const auto& request : requests) {
      if (!request->is_of_register()) continue;
      ++given;
      counters.insert(BallotCounter(*request->ballot()));
    }
  }
  EXPECT_EQ(counters.size(), given);
  EXPECT_GT(given, 0u);
}

TEST_F(ZookeeperMembershipTest,
       WithoutTheRightsOfTheOthersBallotsAreCountedUp) {
  StartServers(1);
  identity_ = "alpheus:secret";
  ZnodeMembership& one = New(1);
  const Epoch first = BallotOfRegister(one, Epoch(0));
  identity_ = "alpheus:wrong";
  ZnodeMembership& two = New(2);
  const Epoch second = Ballot(two, first, /*is_of_register=*/false);
  EXPECT_GT(second, first);
  EXPECT_TRUE(absl::IsPermissionDenied(two.problem())) << two.problem();
  EXPECT_GT(BallotOfRegister(one, second), second);
}

// The same through a membership: it goes on trying, and ballots go on.
TEST_F(ZookeeperMembershipTest, WhereAWebServerListensBallotsAreCountedUp) {
  StartWebServer();
  ZnodeMembership& one = New(1);
  one.Register({NodeId(1), 1, "here", Epoch(0)});
  one.Stand();
  ZnodeMembership& other = Impatient(2);
  Epoch last;
  ASSERT_TRUE(RunUntil([&] {
    last = Ballot(other, last, /*is_of_register=*/false);
    return WebServerAnswers() >= 6;
  })) << one.problem();
  EXPECT_FALSE(IsSeen(one, 1));
  // A server in its place is used.
  EndWebServer();
  servers_ = std::make_unique<testing::ZookeeperServers>(
      std::vector{addresses_[0].host});
  EXPECT_TRUE(RunUntil([&] { return IsSeen(one, 1); })) << servers_->Said();
  EXPECT_GT(BallotOfRegister(one, last), last);
}

TEST_F(ZookeeperMembershipTest, AnEnsembleSurvivesEachOfItsServers) {
  StartServers(3);
  ZnodeMembership& one = Standing(1);
  ZnodeMembership& two = Standing(2);
  Epoch last = BallotOfRegister(one, Epoch(0));
  for (int round = 0; round < 3; ++round) {
    std::optional<int> leader;
    ASSERT_TRUE(RunUntil([&] {
      leader = servers_->Leader();
      return leader.has_value();
    })) << servers_->Said();
    servers_->Kill(*leader);
    // Another one leads, and has all that was written.
    const Epoch next = BallotOfRegister(round % 2 == 0 ? two : one, last);
    EXPECT_GT(next, last);
    last = next;
    ASSERT_TRUE(RunUntil([&] { return IsSeen(one, 2) && IsSeen(two, 1); }))
        << servers_->Said();
    servers_->Start(*leader);
    ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
  }
}

TEST_F(ZookeeperMembershipTest, AnEnsembleWithoutAMajorityGivesNoBallots) {
  StartServers(3);
  ZnodeMembership& one = Standing(1);
  Epoch last = BallotOfRegister(one, Epoch(0));
  servers_->Kill(0);
  servers_->Kill(1);
  EXPECT_TRUE(RunUntil(
      [&] { return one.session().state != SessionState::kConnected; }));
  ZnodeMembership& other = Impatient(2);
  for (int i = 0; i < 3; ++i) {
    last = Ballot(other, last, /*is_of_register=*/false);
  }
  servers_->Start(0);
  EXPECT_GT(BallotOfRegister(one, last), last);
  EXPECT_TRUE(RunUntil([&] { return IsSeen(one, 1); })) << servers_->Said();
}

}  // namespace
}  // namespace alpheus::quorum
