// SPDX-License-Identifier: Apache-2.0
// Three nodes with ZooKeeper, one server or an ensemble, and a program at each
// node that stands for primary. Do fail-overs go on whatever becomes of
// ZooKeeper, and do its znodes say the truth after each step? What is there is
// read by a second client, and by the servers' own word `dump`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "log/base/clock.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/membership/zookeeper/znode_contents.h"
#include "quorum/membership/zookeeper/zookeeper_client.h"
#include "tests/process/fail_over_fixture.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/zookeeper_servers.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/writers/cluster_writer.h"

namespace alpheus::testing {
namespace {

using quorum::SessionState;
using quorum::ZnodeCall;
using quorum::ZnodeEvent;
using quorum::ZnodeOutcome;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;
using ::testing::Ne;
using ::testing::Not;

// No session ends by silence before the tests lose their patience: whoever
// waited for the end of one would not go on.
constexpr uint32_t kSessionMs = 600'000;  // the most
static_assert(kSessionMs > kPatienceMs);
// The znodes of a killed process go within seconds, where a test asks for that.
// Those of a process that the machine does not let run go, too, and come back
// under other names.
constexpr uint32_t kShortSessionMs = 3'000;
// An administrator, who has all rights, and how the cluster's file names him.
constexpr char kAdmin[] = "ops:secret";
constexpr char kAdminDigest[] = "ops:w4PIv8/Wzcq4qj4/MfEQ8pvUSS4=";
// The reader's own.
constexpr uint32_t kReaderMs = 60'000;
// A suspicion because the machine is busy would be a fail-over of its own.
const char* const kSilence[] = {"--silence-ms", "10000"};

// A client beside those of the cluster. Each call waits for its answer.
class ZnodeReader {
 public:
  ZnodeReader(const std::string& cluster_file,
              const std::vector<quorum::Address>& servers) {
    const auto cluster = quorum::LoadClusterFile(cluster_file);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    root_ = absl::StrCat(cluster->zookeeper->path, "/",
                         cluster->cluster_id.ToString());
    service_ = *cluster->zookeeper;
    service_.servers = servers;
    service_.session_timeout_ms = kReaderMs;
    if (!service_.admin.empty()) service_.identity = kAdmin;
  }

  const std::string& root() const { return root_; }

  std::vector<std::string> List(const std::string& folder) {
    return Ask(ZnodeCall::kList, folder).names;
  }
  ZnodeEvent Get(const std::string& path) { return Ask(ZnodeCall::kGet, path); }
  ZnodeOutcome Delete(const std::string& path) {
    return Ask(ZnodeCall::kDelete, path).outcome;
  }
  // As far as nothing is made meanwhile.
  void DeleteAll(const std::string& path) {
    for (const std::string& name : List(path)) {
      DeleteAll(absl::StrCat(path, "/", name));
    }
    (void)Delete(path);
  }

 private:
  // Asks again over the next connection, or in the next session, if the outcome
  // is not known.
  ZnodeEvent Ask(ZnodeCall call, const std::string& path) {
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    uint64_t sent = 0;  // number of the request; 0: none waits for an answer
    std::vector<ZnodeEvent> events;
    while (Clock::Real().NowNanos() < end) {
      if (znodes_ == nullptr || znodes_->state() == SessionState::kExpired) {
        znodes_ = *quorum::OpenZookeeper(service_, Clock::Real());
        sent = 0;
      }
      znodes_->Poll(events);
      for (const ZnodeEvent& event : std::exchange(events, {})) {
        if (event.kind != ZnodeEvent::Kind::kAnswer || event.number != sent) {
          continue;
        }
        if (event.outcome != ZnodeOutcome::kUnknown) return event;
        sent = 0;
      }
      if (sent == 0 && znodes_->state() == SessionState::kConnected) {
        quorum::ZnodeRequest request;
        request.number = ++number_;
        request.call = call;
        request.path = absl::StrCat(root_, path);
        sent = request.number;
        znodes_->Send(request);
      }
      constexpr int kWaitMillis = 5;
      pollfd ready{znodes_->descriptor(), POLLIN, 0};
      (void)::poll(&ready, 1, kWaitMillis);
    }
    ADD_FAILURE() << "ZooKeeper does not answer: " << path;
    return {};
  }

  std::string root_;
  quorum::ZookeeperService service_;
  std::unique_ptr<quorum::Znodes> znodes_;
  uint64_t number_ = 0;
};

// The words of the znodes of log main.
struct Told {
  std::set<uint64_t> served;      // nodes that serve a replica
  std::set<uint64_t> candidates;  // nodes
  uint64_t primary = 0;           // node; 0: none
  uint64_t epoch = 0;
  std::set<uint64_t> members;  // nodes of the list

  bool operator==(const Told&) const = default;
  std::string ToString() const {
    return absl::StrCat("served by ", absl::StrJoin(served, " "),
                        "; candidates ", absl::StrJoin(candidates, " "),
                        "; primary ", primary, " in epoch ", epoch,
                        "; members ", absl::StrJoin(members, " "));
  }
};

class ZookeeperFailOverTest : public ProgramFailOverTest {
 protected:
  void SetUp() override {
    if (!quorum::HasZookeeperClient()) {
      GTEST_SKIP() << "skipped: built without libzookeeper-st-dev";
    }
    const std::string missing = ZookeeperServers::WhyMissing();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }

  void BeginWith(int server_count, uint32_t session_ms = kSessionMs,
                 const std::string& identity = "") {
    servers_ = std::make_unique<ZookeeperServers>(server_count);
    ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
    demo::ClusterOptions options = ThreeNodes(directory_.path());
    for (const quorum::Address& address : servers_->addresses()) {
      options.zookeeper.push_back(address.ToString());
    }
    options.session_timeout_ms = session_ms;
    options.zookeeper_identity = identity;
    if (has_admin_) options.zookeeper_admin = kAdminDigest;
    StartCluster(options);
    ReadAnew();
    StandAll({std::begin(kSilence), std::end(kSilence)});
  }
  // In a session that has seen nothing yet.
  void ReadAnew() {
    reader_ =
        std::make_unique<ZnodeReader>(cluster_->file(), servers_->addresses());
  }
  demo::ClusterWriter& StandAt(int node) {
    return Stand(node, {std::begin(kSilence), std::end(kSilence)});
  }

  // The last epoch of which the program said that it is primary; 0: none.
  static uint64_t EpochOf(const demo::ClusterWriter& program) {
    const std::vector<uint64_t> epochs = program.Epochs();
    return epochs.empty() ? 0 : epochs.back();
  }

  Told Look() {
    Told told;
    for (const std::string& name : reader_->List("/nodes")) {
      const auto node =
          quorum::DecodeNode(reader_->Get(absl::StrCat("/nodes/", name)).data);
      if (node.ok() && node->log_name == "main") {
        told.served.insert(node->registration.node.value);
      }
    }
    for (const std::string& name : reader_->List("/logs/main/candidates")) {
      const auto parsed = quorum::ParseCandidateName(name);
      if (parsed) told.candidates.insert(parsed->primary.node.value);
    }
    LookAtPrimary(&told);
    const auto members = quorum::DecodeMembers(reader_->Get("/members").data);
    if (members.ok()) {
      for (const auto& [node, address] : members->members) {
        told.members.insert(node.value);
      }
    }
    return told;
  }
  void LookAtPrimary(Told* told) {
    // The highest epoch counts, which is the last name.
    std::vector<std::string> names = reader_->List("/logs/main/live");
    if (names.empty()) return;
    std::ranges::sort(names);
    const auto primary = quorum::DecodePrimary(
        reader_->Get(absl::StrCat("/logs/main/live/", names.back())).data);
    if (!primary.ok()) return;
    told->primary = primary->primary.node.value;
    told->epoch = primary->epoch.value;
  }
  // Ephemeral znodes of the cluster, as a server knows them.
  std::set<std::string> Dumped(int server) const {
    std::set<std::string> paths;
    for (absl::string_view line :
         absl::StrSplit(servers_->Ask(server, "dump"), '\n')) {
      line = absl::StripAsciiWhitespace(line);
      if (absl::ConsumePrefix(&line, reader_->root())) {
        paths.insert(std::string(line));
      }
    }
    return paths;
  }
  std::set<std::string> Listed() {
    std::set<std::string> paths;
    for (const char* folder :
         {"/nodes", "/logs/main/candidates", "/logs/main/live"}) {
      for (const std::string& name : reader_->List(folder)) {
        paths.insert(absl::StrCat(folder, "/", name));
      }
    }
    return paths;
  }

  // Returns the program that has the log by its own word; null: none.
  demo::ClusterWriter* Holder() const {
    demo::ClusterWriter* holder = nullptr;
    for (const auto& program : programs_->all()) {
      if (program->end().has_value() || !program->HasTheLog()) continue;
      if (holder == nullptr || EpochOf(*program) > EpochOf(*holder)) {
        holder = program.get();
      }
    }
    return holder;
  }

  // Expects that the znodes come to say who is primary, who stands, and who
  // serves: all nodes that run but the primary's, whose replica it has.
  // `primary` becomes the one that has the log then: one that lost a member to
  // a lone promise hands over in good order (ELE9). Nobody is deposed.
  void MustTell(demo::ClusterWriter*& primary,
                const std::set<uint64_t>& candidates,
                const std::set<uint64_t>& serving = {1, 2, 3}, int server = 0) {
    const demo::ClusterWriter& before = *primary;
    const size_t losses = before.LossCount();
    Told told;
    Told truth;
    EXPECT_TRUE(Eventually([&] {
      demo::ClusterWriter* const holder = Holder();
      if (holder == nullptr) return false;
      primary = holder;
      truth.primary = static_cast<uint64_t>(primary->plan().node);
      truth.served = serving;
      truth.served.erase(truth.primary);
      truth.candidates = candidates;
      truth.epoch = EpochOf(*primary);
      truth.members = {1, 2, 3};
      told = Look();
      return told == truth;
    })) << "told: "
        << told.ToString() << "\nbut: " << truth.ToString() << "\n"
        << Said() << servers_->Said();
    EXPECT_EQ(before.LossCount(), losses) << "deposed\n" << Said();
    // No session has left anything else, and none that has gone.
    std::set<std::string> dumped;
    std::set<std::string> listed;
    EXPECT_TRUE(Eventually([&] {
      listed = Listed();
      dumped = Dumped(server);
      return dumped == listed;
    })) << "dumped: "
        << absl::StrJoin(dumped, " ")
        << "\nlisted: " << absl::StrJoin(listed, " ");
  }
  // Until then a lone promise may be left, for which a primary hands over.
  void AwaitInSync() {
    std::string said;
    EXPECT_TRUE(Eventually([&] {
      said = Run("status", {"--log", "main"}).output;
      return absl::StrContains(said, "; 3 in sync");
    })) << said;
  }
  // The one that leads, or the only one.
  int Leader() {
    std::optional<int> leader;
    if (servers_->count() == 1) return 0;
    EXPECT_TRUE(Eventually([&] {
      leader = servers_->Leader();
      return leader.has_value();
    })) << servers_->Said();
    return leader.value_or(0);
  }
  // Kills the primary and starts it again once another one appends, which is
  // returned.
  demo::ClusterWriter* FailOver(demo::ClusterWriter* primary) {
    const int node = primary->plan().node;
    Kill(primary);
    demo::ClusterWriter* const next = Next(primary);
    StandAt(node);
    return next;
  }

  // Returns the words of `alpheus status` by a cluster file in which `to`
  // stands in place of `from`.
  std::string StatusWith(const std::string& from, const std::string& to,
                         const std::vector<std::string>& arguments) {
    std::ifstream file(cluster_->file());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string other = absl::StrCat(cluster_->file(), ".other");
    std::ofstream(other) << absl::StrReplaceAll(text, {{from, to}});
    demo::Program status = cluster_->Alpheus("status", arguments);
    std::ranges::replace(status.argv, cluster_->file(), other);
    const auto said = demo::RunProgram(status);
    EXPECT_TRUE(said.ok()) << said.status();
    return said.ok() ? said->error : "";
  }

  bool has_admin_ = false;
  std::unique_ptr<ZookeeperServers> servers_;
  std::unique_ptr<ZnodeReader> reader_;
};

TEST_F(ZookeeperFailOverTest, ZnodesSayTheTruthAfterEachStep) {
  ASSERT_NO_FATAL_FAILURE(BeginWith(1, kShortSessionMs));
  demo::ClusterWriter* first = Next(nullptr);
  ASSERT_NE(first, nullptr);
  MustTell(first, {1, 2, 3});

  // Its session goes by silence, and its node serves the replica again.
  const int node = first->plan().node;
  std::set<uint64_t> others = {1, 2, 3};
  others.erase(static_cast<uint64_t>(node));
  Kill(first);
  demo::ClusterWriter* second = Next(first);
  ASSERT_NE(second, nullptr);
  MustTell(second, others);
  demo::ClusterWriter& again = StandAt(node);
  MustTell(second, {1, 2, 3});

  // One that is drained is no candidate before it is elected.
  RunWell("drain", {"--log", "main", "--timeout", PatienceSeconds(),
                    absl::StrCat(second->plan().node)});
  demo::ClusterWriter* third = Next(second);
  ASSERT_NE(third, nullptr);
  std::set<uint64_t> ready = {1, 2, 3};
  ready.erase(static_cast<uint64_t>(second->plan().node));
  MustTell(third, ready);
  RunWell("elect", {"--log", "main", "--timeout", PatienceSeconds(),
                    absl::StrCat(second->plan().node)});
  ASSERT_EQ(Next(third), second);
  MustTell(second, {1, 2, 3});

  // A replica is named while its node serves it.
  cluster_->Kill(again.plan().node);
  std::set<uint64_t> serving = {1, 2, 3};
  serving.erase(static_cast<uint64_t>(again.plan().node));
  MustTell(second, {1, 2, 3}, serving);
  ASSERT_TRUE(cluster_->Start(again.plan().node).ok());
  MustTell(second, {1, 2, 3});
  CheckAll();
}

// Under load: the next one is whoever acknowledges. Nobody waits for ZooKeeper:
// what was hit heals only after two fail-overs, and the session of a killed
// primary outlives the test. Whoever waited for either would not go on in time.
TEST_F(ZookeeperFailOverTest, FailsOverWhateverBecomesOfZookeeper) {
  ASSERT_NO_FATAL_FAILURE(BeginWith(1));
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  MustTell(primary, {1, 2, 3});
  const struct {
    std::string name;
    std::function<void()> hit;
    std::function<void()> heal;
    bool is_noticed;  // at once: its connections are broken
  } faults[] = {{"stopped", [&] { servers_->Pause(0); },
                 [&] { servers_->Continue(0); }, false},
                {"killed", [&] { servers_->Kill(0); },
                 [&] { servers_->Start(0); }, true}};
  for (const auto& fault : faults) {
    SCOPED_TRACE(fault.name);
    fault.hit();
    const demo::ClusterWriter* const before = primary;
    primary = FailOver(primary);
    ASSERT_NE(primary, nullptr);
    EXPECT_GT(EpochOf(*primary), EpochOf(*before));
    if (fault.is_noticed) {
      EXPECT_THAT(primary->said(), HasSubstr("warning: "));
    }
    // And back, still without it.
    primary = FailOver(primary);
    ASSERT_NE(primary, nullptr);
    fault.heal();
    ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
    MustTell(primary, {1, 2, 3});
  }
  CheckAll();
}

// A server without its data refuses processes that have seen more than it has,
// until these have given up their sessions (ZM6).
TEST_F(ZookeeperFailOverTest, FailsOverAfterZookeeperHasLostItsData) {
  ASSERT_NO_FATAL_FAILURE(BeginWith(1, kShortSessionMs));
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  MustTell(primary, {1, 2, 3});
  servers_->Kill(0);
  servers_->LoseData(0);
  servers_->Start(0);
  ReadAnew();
  primary = FailOver(primary);
  ASSERT_NE(primary, nullptr);
  MustTell(primary, {1, 2, 3});
  CheckAll();
}

TEST_F(ZookeeperFailOverTest, FailsOverWhileAnEnsembleChangesItsLeader) {
  ASSERT_NO_FATAL_FAILURE(BeginWith(3));
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const int leader = Leader();
    servers_->Kill(leader);
    primary = FailOver(primary);
    ASSERT_NE(primary, nullptr);
    // Another one leads, and keeps what was told.
    MustTell(primary, {1, 2, 3}, {1, 2, 3}, Leader());
    servers_->Start(leader);
    ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
  }
  // Without a majority, too.
  servers_->Pause(0);
  servers_->Pause(1);
  primary = FailOver(primary);
  ASSERT_NE(primary, nullptr);
  servers_->Continue(0);
  servers_->Continue(1);
  MustTell(primary, {1, 2, 3}, {1, 2, 3}, Leader());
  CheckAll();
}

// Status tells why ZooKeeper is of no use. The log is well all the same.
TEST_F(ZookeeperFailOverTest, StatusTellsWhetherZookeeperAnswers) {
  ASSERT_NO_FATAL_FAILURE(BeginWith(1));
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  MustTell(primary, {1, 2, 3});
  const std::vector<std::string> patiently = {"--log", "main", "--timeout-ms",
                                              absl::StrCat(kPatienceMs)};
  EXPECT_THAT(Run("status", patiently).error, Not(HasSubstr("ZooKeeper")));
  EXPECT_THAT(StatusWith("[zookeeper]\n",
                         "[zookeeper]\npath = \"/elsewhere\"\n", patiently),
              HasSubstr("no process of the cluster has used this service"));
  servers_->Kill(0);
  const demo::ProgramResult away =
      Run("status", {"--log", "main", "--timeout-ms", "1000", "--json"});
  const std::string told =
      absl::StrCat("ZooKeeper at ", servers_->addresses()[0].ToString(), " (",
                   cluster_->file(), ") did not answer within 1000 ms");
  EXPECT_THAT(away.error, HasSubstr(told));
  EXPECT_THAT(away.output, HasSubstr(told));
  servers_->Start(0);
  ASSERT_TRUE(servers_->AwaitAll()) << servers_->Said();
  EXPECT_THAT(Run("status", patiently).error, Not(HasSubstr("ZooKeeper")));
  CheckAll();
}

// Znodes of other identities can't be used. The log is well all the same.
TEST_F(ZookeeperFailOverTest, StatusTellsOfAWrongIdentity) {
  ASSERT_NO_FATAL_FAILURE(BeginWith(1, kSessionMs, "cluster:secret"));
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  MustTell(primary, {1, 2, 3});
  const std::vector<std::string> patiently = {"--log", "main", "--timeout-ms",
                                              absl::StrCat(kPatienceMs)};
  EXPECT_THAT(Run("status", patiently).error, Not(HasSubstr("ZooKeeper")));
  const std::string wrong = absl::StrCat(cluster_->identity_file(), ".wrong");
  std::ofstream(wrong) << "cluster:guess";
  std::filesystem::permissions(wrong, std::filesystem::perms::owner_read);
  EXPECT_THAT(
      StatusWith("zookeeper.identity", "zookeeper.identity.wrong", patiently),
      HasSubstr("identity"));
  CheckAll();
}

// A second client has its id. The primary stays, and is named again.
TEST_F(ZookeeperFailOverTest, WhoseSessionAnotherClientEndsStaysPrimary) {
  ASSERT_NO_FATAL_FAILURE(BeginWith(1));
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  AwaitInSync();
  MustTell(primary, {1, 2, 3});
  const uint64_t epoch = EpochOf(*primary);
  const std::string path =
      absl::StrCat("/logs/main/live/", quorum::PrimaryName(Epoch(epoch)));
  const uint64_t session = reader_->Get(path).owner;
  ASSERT_NE(session, 0u);
  const std::vector<uint64_t> sessions = servers_->Sessions(0);
  EXPECT_THAT(std::vector<uint64_t>{session}, IsSubsetOf(sessions));
  // A connection that asks for them has none.
  EXPECT_THAT(sessions, Each(Ne(0u)));
  ASSERT_TRUE(servers_->EndSession(0, session)) << servers_->Said();
  EXPECT_TRUE(Eventually([&] {
    const ZnodeEvent named = reader_->Get(path);
    return named.outcome == ZnodeOutcome::kDone && named.owner != session;
  })) << Said();
  EXPECT_THAT(std::vector<uint64_t>{session},
              Not(IsSubsetOf(servers_->Sessions(0))));
  MustTell(primary, {1, 2, 3});
  EXPECT_EQ(EpochOf(*primary), epoch) << Said();
  ASSERT_EQ(Next(nullptr), primary);
  CheckAll();
}

// By hand, by an administrator: others may not delete in the folders of a
// cluster and of a log. Nobody is deposed by it, and all is made again.
TEST_F(ZookeeperFailOverTest, ZnodesThatAreDeletedComeBack) {
  has_admin_ = true;
  ASSERT_NO_FATAL_FAILURE(BeginWith(1));
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  AwaitInSync();
  MustTell(primary, {1, 2, 3});
  const uint64_t epoch = EpochOf(*primary);
  std::set<std::string> paths = Listed();
  paths.insert({"/members", "/format"});
  for (const std::string& path : paths) {
    EXPECT_EQ(reader_->Delete(path), ZnodeOutcome::kDone) << path;
  }
  // An opening makes it, if the service answers in time.
  EXPECT_THAT(reader_->Delete("/logs/main/ballot"),
              AnyOf(ZnodeOutcome::kDone, ZnodeOutcome::kNone));
  EXPECT_TRUE(Eventually([&] {
    return Listed().size() + 2 == paths.size() &&
           reader_->Get("/members").outcome == ZnodeOutcome::kDone &&
           reader_->Get("/format").outcome == ZnodeOutcome::kDone;
  })) << absl::StrJoin(Listed(), " ")
      << Said();
  EXPECT_EQ(EpochOf(*primary), epoch) << Said();
  demo::ClusterWriter* next = FailOver(primary);
  ASSERT_NE(next, nullptr);
  MustTell(next, {1, 2, 3});

  reader_->DeleteAll("");
  next = FailOver(next);
  ASSERT_NE(next, nullptr);
  MustTell(next, {1, 2, 3});
  CheckAll();
}

}  // namespace
}  // namespace alpheus::testing
