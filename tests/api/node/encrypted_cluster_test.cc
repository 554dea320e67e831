// SPDX-License-Identifier: Apache-2.0
// A cluster whose nodes encrypt: logs are as ever, and a certificate is good
// for its own process alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "alpheus/candidate.h"
#include "alpheus/cluster_reader.h"
#include "alpheus/cluster_tail.h"
#include "alpheus/log.h"
#include "api/admin/administrator.h"
#include "api/admin/cluster_scrub.h"
#include "api/node/node.h"
#include "api/wiring/adapter.h"
#include "api/wiring/fabric_pump.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/messages.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/tcp/tls.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_certificates.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using recovery::ControlCall;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::InPatience;
using testing::TestCertificate;
using testing::TestCluster;

class EncryptedClusterTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kPatienceMs = 60'000;

  void Format() {
    FormatOptions options;
    options.cluster_file = cluster_.file();
    options.region_bytes = 256 * 1024;
    options.timeout_ms = kPatienceMs;
    const auto made = Log::Format(options);
    ASSERT_TRUE(made.ok()) << made.status();
  }
  absl::StatusOr<std::unique_ptr<Log>> Open(uint64_t node,
                                            const std::string& file) {
    LogOptions options;
    options.replication.cluster_file = file;
    options.replication.node = node;
    options.replication.open_timeout_ms = kPatienceMs;
    options.replication.ack_timeout_ms = kPatienceMs;
    return Log::Open(options);
  }
  void Append(uint64_t node, const std::string& data) {
    const auto log = Open(node, cluster_.file());
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append(data).ok());
    ASSERT_TRUE((*log)->Close().ok());
  }
  static void AwaitInSync(Log& log, uint32_t replicas) {
    const Deadline end = InPatience();
    while (log.replication_status().in_sync != replicas) {
      ASSERT_FALSE(end.HasPassed(Clock::Real().NowNanos()));
      std::this_thread::yield();
    }
  }
  // The cluster's file with other words in it, beside it.
  std::string FileWith(const std::map<std::string, std::string>& words) {
    const auto bytes = testing::ReadFile(cluster_.file());
    const std::string text(AsText(bytes));
    for (const auto& [before, after] : words) {
      EXPECT_THAT(text, HasSubstr(before));
    }
    const std::string path =
        std::filesystem::path(cluster_.file()).parent_path() / "other.toml";
    std::ofstream(path) << absl::StrReplaceAll(text, words);
    return path;
  }
  // Returns what node `asked` says to a process that shows the certificate of
  // node `shown`, and makes this request as node `acts_as`.
  absl::Status Ask(uint64_t asked, uint64_t shown, uint64_t acts_as,
                   recovery::Message request) {
    return Ask(cluster_.file(), asked, shown, acts_as, std::move(request));
  }
  absl::Status Ask(const std::string& file, uint64_t asked, uint64_t shown,
                   uint64_t acts_as, recovery::Message request) {
    const auto cluster = quorum::LoadClusterFile(file);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    auto connectivity = Connectivity::Open(*cluster, NodeId(shown));
    EXPECT_TRUE(connectivity.ok()) << connectivity.status();
    fabric::Fabric& fabric = *(*connectivity)->fabric;
    ControlCall call(fabric,
                     {.address = cluster_.AddressOf(static_cast<int>(asked)),
                      .node = NodeId(asked),
                      .hello = {cluster->cluster_id,
                                quorum::LogIdOf(cluster->cluster_id, "main"),
                                {NodeId(acts_as), kIncarnation}},
                      .deadline = InPatience(),
                      .credentials = {cluster->key, &(*connectivity)->random}},
                     std::move(request));
    FabricPump(fabric).RunUntil([&] { return call.done(); }, InPatience(),
                                call);
    return call.status();
  }
  static recovery::Prepare Prepare(uint64_t acts_as, uint64_t epoch_of) {
    recovery::Prepare prepare;
    prepare.promise = {
        quorum::PackBallot(
            {.counter = 9, .primary = {NodeId(epoch_of), kIncarnation}}),
        {NodeId(acts_as), kIncarnation}};
    return prepare;
  }
  static void ExpectRefused(const absl::Status& status) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("is that of node 3, and it acts as node 1"));
  }

  static constexpr uint64_t kIncarnation = 5;

  TestCluster cluster_{3, 2, TestCluster::Machines{.encrypts = true}};
};

TEST_F(EncryptedClusterTest, LogGoesOnAsEver) {
  EXPECT_THAT(cluster_.Reported(), HasSubstr("encryption: TLS 1.3"));
  Format();
  Append(1, "one");
  Append(2, "two");
  cluster_.Stop(3);
  Append(1, "three");
  cluster_.Start(3);
  cluster_.Stop(2);
  Append(3, "four");  // node 3 gets a copy of "three"
  const auto reader = ClusterReader::Open({.cluster_file = cluster_.file()});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> records;
  const absl::Status read =
      (*reader)->ForEachDurable([&](const ReaderRecord& record) {
        records.emplace_back(AsText(record.payload));
        return absl::OkStatus();
      });
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_THAT(records, ElementsAre("one", "two", "three", "four"));
}

// A node that serves its replica, and one whose primary has it.
TEST_F(EncryptedClusterTest, EachNodeTellsWhenItsCertificateEnds) {
  Format();
  LogOptions options;
  options.path = cluster_.ReplicaPath(1);
  options.replication.cluster_file = cluster_.file();
  options.replication.node = 1;
  options.replication.open_timeout_ms = kPatienceMs;
  options.replication.ack_timeout_ms = kPatienceMs;
  const auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  const auto reader = ClusterReader::Open({.cluster_file = cluster_.file(),
                                           .timeout_ms = kPatienceMs,
                                           .without_records = true});
  ASSERT_TRUE(reader.ok()) << reader.status();
  int own = 0;
  for (const auto& standing : (*reader)->AskStandings()) {
    ASSERT_TRUE(standing.has_value());
    own += standing->is_own ? 1 : 0;
    EXPECT_EQ(standing->certificate_end_s, testing::kYear2999);
  }
  EXPECT_EQ(own, 1);
  EXPECT_TRUE((*log)->Close().ok());
}

// An operator's certificate, and a node's in the operator's place.
TEST_F(EncryptedClusterTest, OrdersAreGivenByOperatorsAndByNodes) {
  Format();
  Append(1, "one");
  ClusterScrubOptions options;
  options.cluster_file = cluster_.file();
  options.timeout_ms = kPatienceMs;
  for (const uint64_t node : {0, 2}) {
    options.as_node = node;
    const auto scrubs = ScrubCluster(options);
    ASSERT_TRUE(scrubs.ok()) << scrubs.status();
    for (const ScrubResult& one : *scrubs) {
      EXPECT_TRUE(one.status.ok()) << one.status;
    }
  }
  std::filesystem::remove(cluster_.CertificateFile("node-operator.pem"));
  ClusterAdministrator node(cluster_.file(), 2);
  const OrderBounds bounds = {.timeout_ms = kPatienceMs};
  EXPECT_TRUE(node.CreateLog("second", 256 * 1024, bounds).ok());
  EXPECT_TRUE(node.Scrub("main", 0, bounds).ok());
  cluster_.Stop(3);
  ASSERT_TRUE(std::filesystem::remove(cluster_.ReplicaPath(3)));
  cluster_.Start(3);
  const auto replaced = node.Replace("main", {3}, bounds);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(replaced->end_lsn, Lsn(1));
  options.as_node = 0;
  const auto nobody = ScrubCluster(options);
  EXPECT_TRUE(absl::IsNotFound(nobody.status())) << nobody.status();
  EXPECT_THAT(std::string(nobody.status().message()),
              HasSubstr("node-operator.pem"));
}

TEST_F(EncryptedClusterTest, FilesOfAnotherProcessAreRefusedAtOnce) {
  Format();
  const auto log = Open(1, FileWith({{"node-{node}", "node-3"}}));
  EXPECT_TRUE(absl::IsPermissionDenied(log.status())) << log.status();
  EXPECT_THAT(std::string(log.status().message()),
              AllOf(HasSubstr("node-3.pem"),
                    HasSubstr("is that of node 3, not of node 1")));
}

// The other nodes would refuse it.
TEST_F(EncryptedClusterTest, NodeIsNoOperator) {
  const auto log = Open(1, FileWith({{"node-{node}", "node-operator"}}));
  EXPECT_TRUE(absl::IsPermissionDenied(log.status())) << log.status();
  EXPECT_THAT(std::string(log.status().message()),
              HasSubstr("is that of an operator, not of node 1"));
}

TEST_F(EncryptedClusterTest, ConfigurationIsGoodOnlyWithItsFiles) {
  NodeOptions options;
  options.cluster_file = cluster_.file();
  options.node = 1;
  options.directory =
      std::filesystem::path(cluster_.ReplicaPath(1)).parent_path();
  EXPECT_TRUE(Node::Check(options).ok()) << Node::Check(options).status();
  std::filesystem::remove(cluster_.CertificateFile("node-1.key"));
  const auto missing = Node::Check(options);
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("node-1.key"));
}

TEST_F(EncryptedClusterTest, OtherEncryptionNeedsARestart) {
  NodeOptions options;
  options.cluster_file = FileWith({{"authorities.pem", "others.pem"}});
  options.node = 1;
  options.directory =
      std::filesystem::path(cluster_.ReplicaPath(1)).parent_path();
  const absl::Status reloaded = cluster_.NodeOf(1).Reload(options);
  EXPECT_TRUE(reloaded.ok()) << reloaded;
  EXPECT_THAT(cluster_.Reported(),
              ContainsRegex("only after a restart: [^\n]*encryption"));
}

// Nodes and primary run; their connections go on, and new ones are made by new
// certificates of another authority, which no process knew at its start.
TEST_F(EncryptedClusterTest, CertificatesAreReplacedWhileALogIsWritten) {
  Format();
  const auto log = Open(1, cluster_.file());
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("one").ok());
  const testing::TestAuthority next("next");
  cluster_.ReplaceCertificates(next);
  const auto second = (*log)->Append("two");
  ASSERT_TRUE(second.ok()) << second.status();
  cluster_.Stop(3);
  cluster_.Start(3);
  ASSERT_TRUE(
      cluster_.AwaitReported({"node 3: log main: ", "writes epoch"}, 2));
  AwaitInSync(**log, 3);
  cluster_.Stop(2);
  const auto third = (*log)->Append("three");  // by the connection to node 3
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_TRUE((*log)->Close().ok());
  cluster_.Start(2);
  // Node 1 runs since before.
  ASSERT_TRUE(cluster_.AwaitReported(
      {"node 1: encryption: its files were read again"}, 1));
  ClusterScrubOptions options;
  options.cluster_file = cluster_.file();
  options.timeout_ms = kPatienceMs;
  const auto scrubs = ScrubCluster(options);
  ASSERT_TRUE(scrubs.ok()) << scrubs.status();
  for (const ScrubResult& one : *scrubs) {
    EXPECT_TRUE(one.status.ok()) << one.status;
  }
}

// The sentences that a program was told. A thread of its own awaits them.
class Heard {
 public:
  std::function<void(const std::string&)> Say() {
    return [this](const std::string& sentence) {
      const std::lock_guard lock(mutex_);
      sentences_.push_back(sentence);
    };
  }
  bool Has(const std::string& part) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(sentences_, [&](const std::string& sentence) {
      return absl::StrContains(sentence, part);
    });
  }
  void Await(const std::string& part, const std::function<void()>& meanwhile) {
    const Deadline end = InPatience();
    while (!Has(part)) {
      ASSERT_FALSE(end.HasPassed(Clock::Real().NowNanos())) << part;
      meanwhile();
    }
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> sentences_;
};

constexpr char kKept[] = "encryption: the files of before are kept: ";

TEST_F(EncryptedClusterTest, ProgramWithALogIsToldOfItsCertificate) {
  Format();
  Heard heard;
  LogOptions options;
  options.replication.cluster_file = cluster_.file();
  options.replication.node = 1;
  options.replication.open_timeout_ms = kPatienceMs;
  options.replication.ack_timeout_ms = kPatienceMs;
  options.replication.say = heard.Say();
  const auto log = Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  std::filesystem::remove(cluster_.CertificateFile("node-1.pem"));
  heard.Await(kKept, std::this_thread::yield);
  EXPECT_TRUE(heard.Has("node-1.pem can't be opened"));
  EXPECT_TRUE((*log)->Append("one").ok());
  EXPECT_TRUE((*log)->Close().ok());
}

TEST_F(EncryptedClusterTest, ProgramThatFollowsIsToldOfItsCertificate) {
  Format();
  Heard heard;
  const auto tail =
      ClusterTail::Open({.cluster_file = cluster_.file(), .say = heard.Say()});
  ASSERT_TRUE(tail.ok()) << tail.status();
  std::filesystem::remove(cluster_.CertificateFile("node-operator.pem"));
  heard.Await(kKept, [&] {
    const auto none = (*tail)->Next(Deadline::In(std::chrono::milliseconds(1)));
    EXPECT_TRUE(none.ok() || absl::IsUnavailable(none.status()));
  });
}

// By the channel of the log, if there is one.
TEST_F(EncryptedClusterTest, ProgramThatStandsIsToldOfItsCertificate) {
  Format();
  Heard heard;
  Heard of_log;
  CandidateOptions options;
  options.log.replication.cluster_file = cluster_.file();
  options.log.replication.node = 1;
  options.silence_ms = 3'000;
  options.silence_ms_max = kPatienceMs;
  options.say = heard.Say();
  const auto one = Candidate::Stand(options);
  ASSERT_TRUE(one.ok()) << one.status();
  options.log.replication.node = 2;
  options.log.replication.say = of_log.Say();
  const auto other = Candidate::Stand(options);
  ASSERT_TRUE(other.ok()) << other.status();
  std::filesystem::remove(cluster_.CertificateFile("authorities.pem"));
  heard.Await(kKept, std::this_thread::yield);
  of_log.Await(kKept, std::this_thread::yield);
}

// The primary of node 3 loses its backups; the log goes on at node 1.
TEST_F(EncryptedClusterTest, RevokedNodeIsShutOutWhileItIsPrimary) {
  Format();
  auto log = Open(3, cluster_.file());
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("one").ok());
  cluster_.Revoke("3");
  ASSERT_TRUE(cluster_.AwaitReported(
      {"/node/3, has been revoked since it connected"}, 2));
  Append(1, "two");
  // A thief looks at no list.
  const absl::Status refused =
      Ask(FileWith({{"revoked_file = \"revoked.pem\"\n", ""}}), 2, 3, 3,
          recovery::View{});
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  const absl::Status other = Ask(2, 1, 1, recovery::View{});
  EXPECT_TRUE(other.ok()) << other;
}

TEST_F(EncryptedClusterTest, ReloadReadsTheFilesOfEncryption) {
  NodeOptions options;
  options.cluster_file = cluster_.file();
  options.node = 1;
  options.directory =
      std::filesystem::path(cluster_.ReplicaPath(1)).parent_path();
  EXPECT_TRUE(cluster_.NodeOf(1).Reload(options).ok());
  const auto status = cluster_.NodeOf(1).Observe(testing::kPatienceMs);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->certificate_end_s, testing::kYear2999);
  EXPECT_THAT(cluster_.Reported(), HasSubstr("its files were read again"));
  // A cluster file of no use does not keep a certificate from being revoked.
  std::filesystem::remove(cluster_.CertificateFile("revoked.pem"));
  options.cluster_file = "/none";
  EXPECT_FALSE(cluster_.NodeOf(1).Reload(options).ok());
  EXPECT_THAT(cluster_.Reported(),
              ContainsRegex("node 1: encryption: the files of before are "
                            "kept: [^\n]*revoked.pem can't be opened"));
}

// Nobody is primary, and node 2 can't open the log under another name.
TEST_F(EncryptedClusterTest, NodeThatMayNotBePrimaryMakesNoChangeAlone) {
  Format();
  Append(1, "one");
  cluster_.Stop(3);
  ASSERT_TRUE(std::filesystem::remove(cluster_.ReplicaPath(3)));
  cluster_.Start(3);
  ClusterAdministrator node(
      FileWith({{"node = 2\n", "node = 2\nmay_be_primary = false\n"}}), 2);
  const auto replaced = node.Replace("main", {3}, {.timeout_ms = kPatienceMs});
  EXPECT_TRUE(absl::IsFailedPrecondition(replaced.status()))
      << replaced.status();
  EXPECT_THAT(std::string(replaced.status().message()),
              HasSubstr("its certificate is good for no other node"));
}

TEST_F(EncryptedClusterTest, KeyThatOthersMayReadIsRefused) {
  std::filesystem::permissions(cluster_.CertificateFile("node-1.key"),
                               std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  const auto log = Open(1, cluster_.file());
  EXPECT_TRUE(absl::IsFailedPrecondition(log.status())) << log.status();
  EXPECT_THAT(std::string(log.status().message()), HasSubstr("node-1.key"));
}

// A stolen key of node 3, and the cluster's.
TEST_F(EncryptedClusterTest, EpochsOfANodeAreForThatNode) {
  Format();
  ExpectRefused(Ask(/*asked=*/2, /*shown=*/3, /*acts_as=*/1, Prepare(1, 1)));
  ExpectRefused(Ask(2, 3, 1, Prepare(1, 3)));
  ExpectRefused(Ask(2, 3, 3, Prepare(3, 1)));
  const absl::Status own = Ask(2, 3, 3, Prepare(3, 3));
  EXPECT_TRUE(own.ok()) << own;
  const absl::Status person = Ask(1, 0, 1, Prepare(1, 1));
  EXPECT_TRUE(person.ok()) << person;
}

// RS3. The thief would end the primary of node 1, or stand in its name.
TEST_F(EncryptedClusterTest, NodeAloneReleasesClaimsAndStands) {
  Format();
  ExpectRefused(Ask(1, 3, 1, recovery::Release{}));
  recovery::Claim claim;
  claim.promise = Prepare(1, 1).promise;
  ExpectRefused(Ask(1, 3, 1, claim));
  recovery::Hear stands;
  stands.standing = recovery::Standing::kReady;
  ExpectRefused(Ask(1, 3, 1, stands));
  // Asking is for all.
  const absl::Status asks = Ask(1, 3, 1, recovery::Hear{});
  EXPECT_TRUE(asks.ok()) << asks;
  const absl::Status own = Ask(1, 1, 1, stands);
  EXPECT_TRUE(own.ok()) << own;
}

// Node 3 listens where node 1 should: its acks would count as node 1's.
TEST_F(EncryptedClusterTest, NodeStandsInForNoOther) {
  Format();
  ClusterScrubOptions options;
  options.cluster_file =
      FileWith({{cluster_.AddressOf(1), cluster_.AddressOf(3)},
                {cluster_.AddressOf(3), cluster_.AddressOf(1)}});
  options.node = 1;
  options.timeout_ms = kPatienceMs;
  const auto scrubs = ScrubCluster(options);
  ASSERT_TRUE(scrubs.ok()) << scrubs.status();
  EXPECT_TRUE(absl::IsPermissionDenied(scrubs->front().status));
  EXPECT_THAT(std::string(scrubs->front().status.message()),
              HasSubstr("is that of node 3, not of node 1"));
  // Each address is another node's, so the opening ends at once: as soon as two
  // of them have answered.
  const auto log =
      Open(2, FileWith({{cluster_.AddressOf(1), cluster_.AddressOf(3)},
                        {cluster_.AddressOf(2), cluster_.AddressOf(1)},
                        {cluster_.AddressOf(3), cluster_.AddressOf(2)}}));
  EXPECT_FALSE(log.ok());
  EXPECT_THAT(std::string(log.status().message()),
              HasSubstr("its certificate is that of node "));
}

// One authority may sign for several clusters.
TEST_F(EncryptedClusterTest, NodeOfAnotherClusterIsRefused) {
  Format();
  const TestCertificate other = cluster_.authority().IssueFor(
      "URI:alpheus://00000000-0000-0000-0000-000000000001/node/3");
  fabric::tcp::TlsTexts texts;
  texts.certificate = other.certificate;
  texts.key = other.key;
  texts.authorities = cluster_.authority().certificate();
  fabric::tcp::TcpFabricOptions options;
  const auto tls = *fabric::tcp::TlsSettings::Make(texts);
  options.tls = [tls] { return tls; };
  EntropyRandom random;
  fabric::tcp::TcpFabric fabric(options, Clock::Real(), random);
  const auto cluster = quorum::LoadClusterFile(cluster_.file());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ControlCall call(fabric,
                   {.address = cluster_.AddressOf(2),
                    .node = NodeId(2),
                    .hello = {cluster->cluster_id,
                              quorum::LogIdOf(cluster->cluster_id, "main"),
                              {NodeId(3), 5}},
                    .deadline = InPatience(),
                    .credentials = {cluster->key, &random}},
                   recovery::View{});
  FabricPump(fabric).RunUntil([&] { return call.done(); }, InPatience(), call);
  EXPECT_TRUE(absl::IsPermissionDenied(call.status())) << call.status();
}

TEST_F(EncryptedClusterTest, ProcessThatDoesNotEncryptIsToldNothing) {
  Format();
  ClusterScrubOptions options;
  options.cluster_file =
      FileWith({{"[encryption]\n"
                 "authorities_file = \"authorities.pem\"\n"
                 "certificate_file = \"node-{node}.pem\"\n"
                 "key_file = \"node-{node}.key\"\n"
                 "revoked_file = \"revoked.pem\"\n",
                 ""}});
  options.timeout_ms = kPatienceMs;
  const auto scrubs = ScrubCluster(options);
  ASSERT_TRUE(scrubs.ok()) << scrubs.status();
  for (const ScrubResult& one : *scrubs) {
    EXPECT_TRUE(absl::IsUnavailable(one.status)) << one.status;
  }
  EXPECT_THAT(cluster_.Reported(), HasSubstr("TLS: "));
}

// ORD1: a caller could have the node read any file.
TEST_F(EncryptedClusterTest, OrderNamesNoOtherFiles) {
  Format();
  const std::string list = cluster_.WriteList(2, {1, 2, 3}, 2);
  const std::string text =
      absl::StrReplaceAll(std::string(AsText(testing::ReadFile(list))),
                          {{"authorities.pem", "/etc/passwd"}});
  ClusterAdministrator node(cluster_.file(), 2);
  const auto changed =
      node.Reconfigure("main", text, {.timeout_ms = kPatienceMs});
  EXPECT_TRUE(absl::IsInvalidArgument(changed.status())) << changed.status();
  EXPECT_THAT(std::string(changed.status().message()),
              HasSubstr("[encryption] is not as in"));
}

}  // namespace
}  // namespace alpheus
