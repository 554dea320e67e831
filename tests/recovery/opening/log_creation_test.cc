// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/log_creation.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/core/ring/format_region.h"
#include "recovery/protocol/handshake.h"
#include "tests/support/fabrics/scripted_replica.h"
#include "tools/model/fabric/sim_network.h"

namespace alpheus::testing {

using recovery::LogCreationOptions;
using recovery::Message;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The network's, which may jump: as if the process had stood still.
struct JumpingClock : Clock {
  explicit JumpingClock(const Clock& of_network) : network(of_network) {}
  int64_t NowNanos() const override { return network.NowNanos() + jump; }

  const Clock& network;
  int64_t jump = 0;
};

// Three members without a replica; host 3 creates.
struct Members {
  model::SimNetwork network{model::SimOptions{.hosts = 4}};
  JumpingClock clock{network.clock()};  // of the creating process
  model::ModelPersistence memory{4096};
  Random random{1};
  std::map<int, recovery::Format> formatted;
  int refuses = 0;  // node
  // Called before a member's process handles the event; may be empty. Returns
  // false if the process is not to handle it.
  std::function<bool(int host, const fabric::ConnectionEvent&)> on_member_event;
  // Called when the creation has handled the completion; may be empty.
  std::function<void(const fabric::Completion&)> on_own_completion;
  std::vector<std::unique_ptr<ScriptedReplica>> servers;

  Members() {
    for (int node = 1; node <= 3; ++node) {
      fabric::Fabric& fabric = network.fabric(node - 1);
      EXPECT_TRUE(fabric.Listen(model::SimNetwork::Address(node - 1, 1)).ok());
      servers.push_back(std::make_unique<ScriptedReplica>(
          fabric, NodeId(static_cast<uint64_t>(node)), memory, nullptr,
          [this, node](const recovery::Format& format) -> absl::Status {
            if (node == refuses) return absl::ResourceExhaustedError("full");
            formatted[node] = format;
            return absl::OkStatus();
          }));
    }
  }

  LogCreationOptions Options() {
    LogCreationOptions options;
    options.cluster_id = {1, 2};
    options.log_id = {3, 4};
    options.self = {NodeId(9), 1};
    options.sizes = {3, 2, 2};
    for (uint64_t node = 1; node <= 3; ++node) {
      options.peers.push_back(
          {NodeId(node),
           model::SimNetwork::Address(static_cast<int>(node) - 1, 1)});
    }
    options.region_bytes = 1 << 20;
    options.log_name = "test";
    options.step_timeout_ns = 5'000'000;
    return options;
  }

  // Lets the next event happen, which may be that the creation wakes up.
  void Sleep(Deadline next) {
    if (next.is_set()) {
      const int64_t until = next.at_nanos() - clock.NowNanos();
      network.Schedule(std::max<int64_t>(until, 0), [] {});
    }
    if (!network.Step()) network.Run(100'000);
  }

  std::unique_ptr<recovery::LogCreation> Create(
      const LogCreationOptions& options) {
    auto creation = *recovery::LogCreation::Start(network.fabric(3), clock,
                                                  random, options);
    while (creation->Poll() != Polled::kDone) {
      Sleep(creation->NextPoll());
      fabric::Completion completions[16];
      std::vector<fabric::ConnectionEvent> events;
      for (int host = 0; host < 4; ++host) {
        if (!network.IsUp(host)) continue;
        events.clear();
        const size_t n = network.fabric(host).Poll(completions, &events);
        for (const fabric::ConnectionEvent& event : events) {
          if (host == 3) {
            creation->OnConnectionEvent(event);
          } else {
            if (!on_member_event || on_member_event(host, event)) {
              servers[host]->OnConnectionEvent(event);
            }
          }
        }
        for (size_t i = 0; i < n; ++i) {
          if (host == 3) {
            creation->OnCompletion(completions[i]);
            if (on_own_completion) on_own_completion(completions[i]);
          } else {
            servers[host]->OnCompletion(completions[i]);
          }
        }
      }
    }
    return creation;
  }
};

TEST(LogCreationTest, AllMembersGetOneConfiguration) {
  Members members;
  const auto creation = members.Create(members.Options());
  ASSERT_TRUE(creation->status().ok()) << creation->status();
  ASSERT_EQ(members.formatted.size(), 3u);
  const Configuration& configuration = creation->configuration();
  EXPECT_EQ(configuration.id, 1u);
  EXPECT_EQ(configuration.replica_count, 3u);
  EXPECT_EQ(configuration.write_quorum, 2u);
  ASSERT_EQ(configuration.members.size(), 3u);
  EXPECT_NE(configuration.members[0].incarnation,
            configuration.members[1].incarnation);
  for (const auto& [node, format] : members.formatted) {
    EXPECT_EQ(format.configuration, configuration);
    EXPECT_EQ(format.region_bytes, uint64_t{1} << 20);
  }
}

TEST(LogCreationTest, MemberThatCannotBeReachedLeavesNothing) {
  Members members;
  members.servers[1].reset();
  members.network.Crash(1);
  LogCreationOptions options = members.Options();
  options.deadline = Deadline::AtNanos(1'000'000'000);
  const auto creation = members.Create(options);
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(creation->status().ToString(),
              HasSubstr("Nothing was formatted"));
  EXPECT_LT(members.network.clock().NowNanos(), 100'000'000);  // LC2
  EXPECT_TRUE(members.formatted.empty());
}

// LC2. The members want a proof of the key, so that there is a time between the
// first server hello and the last.
struct MembersWithAKey : Members {
  LogCreationOptions options = Options();
  std::map<int, recovery::ReplicaHandshake> handshakes;  // by host
  fabric::ConnectionId to_second;

  MembersWithAKey() {
    std::array<std::byte, quorum::kClusterKeyBytes> bytes{};
    bytes.fill(std::byte{7});
    options.key = quorum::ClusterKey(bytes);
    options.reconnect_ns = 500'000;
    options.deadline = Deadline::AtNanos(20'000'000);
    on_member_event = [this](int host, const fabric::ConnectionEvent& event) {
      if (host == 1) to_second = event.connection;
      return true;
    };
    for (int host = 0; host < 3; ++host) {
      servers[host]->on_server_hello =
          [this, host](recovery::ServerHello& server_hello) {
            const recovery::Hello hello{options.cluster_id, options.log_id,
                                        options.self};
            handshakes.insert_or_assign(
                host, recovery::ReplicaHandshake({options.key, &random}, hello,
                                                 server_hello));
          };
      servers[host]->on_proof = [this, host](const Message& message) {
        return *handshakes.at(host).Reply(message);
      };
    }
  }

  // The second member closes the connection instead of its reply.
  bool BreakSecond() {
    EXPECT_TRUE(network.fabric(1).Close(to_second).ok());
    return false;
  }
};

TEST(LogCreationTest, ConnectionThatBreaksBeforeAnythingIsDoneIsMadeAgain) {
  MembersWithAKey members;
  int challenged = 0;
  members.servers[1]->on_request = [&](const Message& message) {
    if (!std::holds_alternative<recovery::Challenge>(message)) return true;
    return ++challenged > 2 || members.BreakSecond();
  };
  const auto creation = members.Create(members.options);
  ASSERT_TRUE(creation->status().ok()) << creation->status();
  EXPECT_EQ(challenged, 3);
  EXPECT_GE(members.clock.NowNanos(), 2 * members.options.reconnect_ns);
  EXPECT_LT(members.clock.NowNanos(), 4 * members.options.reconnect_ns);
  EXPECT_EQ(members.formatted.size(), 3u);
}

// The rest of the time is for the formatting.
TEST(LogCreationTest, ConnectionThatBreaksEachTimeEndsIt) {
  MembersWithAKey members;
  members.servers[1]->on_request = [&](const Message& /*message*/) {
    return members.BreakSecond();
  };
  const auto creation = members.Create(members.options);
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(creation->status().ToString(),
              AllOf(HasSubstr("node 2 at sim:1:1: the connection broke"),
                    HasSubstr("Nothing was formatted")));
  EXPECT_GE(members.clock.NowNanos(), 10'000'000);
  EXPECT_LT(members.clock.NowNanos(), 20'000'000);
  EXPECT_TRUE(members.formatted.empty());
}

TEST(LogCreationTest, NodeThatIsGoneAfterItsConnectionBrokeEndsIt) {
  MembersWithAKey members;
  members.servers[1]->on_request = [&](const Message& /*message*/) {
    members.network.Schedule(0, [&] {
      members.servers[1].reset();
      members.network.Crash(1);
    });
    return members.BreakSecond();
  };
  const auto creation = members.Create(members.options);
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(
      creation->status().ToString(),
      AllOf(HasSubstr("nobody answers there; before that: node 2 at sim:1:1: "
                      "the connection broke"),
            HasSubstr("Nothing was formatted")));
}

TEST(LogCreationTest, NodeThatIsSilentIsNotAskedAgain) {
  MembersWithAKey members;
  members.options.deadline = Deadline::AtNanos(1'000'000'000);
  int challenged = 0;
  members.servers[1]->on_request = [&](const Message& /*message*/) {
    ++challenged;
    return false;
  };
  const auto creation = members.Create(members.options);
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(creation->status().ToString(),
              AllOf(HasSubstr("was silent for 5 ms"),
                    HasSubstr("Nothing was formatted")));
  EXPECT_EQ(challenged, 1);
}

// LC3. All have answered, and this process stood still.
TEST(LogCreationTest, NothingIsFormattedAfterTheDeadline) {
  MembersWithAKey members;
  int replies = 0;
  members.on_own_completion = [&](const fabric::Completion& completion) {
    if (completion.operation != fabric::Operation::kReceive) return;
    // A proof and its acceptance each.
    if (++replies == 2 * 3) members.clock.jump = 20'000'000;
  };
  const auto creation = members.Create(members.options);
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(creation->status().ToString(),
              AllOf(HasSubstr("answered after the deadline"),
                    HasSubstr("Nothing was formatted")));
  EXPECT_TRUE(members.formatted.empty());
}

// LC2. Whether the member has a replica now is unknown, and it is not asked
// again.
TEST(LogCreationTest, MemberThatLacksTheReplicaAfterABreakEndsIt) {
  MembersWithAKey members;
  int asked = 0;
  members.servers[1]->on_request = [&](const Message& message) {
    if (!std::holds_alternative<recovery::Format>(message)) return true;
    ++asked;
    return members.BreakSecond();
  };
  const auto creation = members.Create(members.options);
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(
      creation->status().ToString(),
      AllOf(HasSubstr("node 2 at sim:1:1: it has no replica"),
            HasSubstr("the connection broke"), HasSubstr("is unknown")));
  EXPECT_EQ(asked, 1);
}

TEST(LogCreationTest, MemberThatFailsIsNamedAndSoAreTheOthers) {
  Members members;
  members.refuses = 2;
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(absl::IsResourceExhausted(creation->status()))
      << creation->status();
  EXPECT_THAT(creation->status().ToString(), HasSubstr("node 2"));
  EXPECT_THAT(creation->status().ToString(),
              HasSubstr("It exists on node 1 at sim:0:1, node 3 at sim:2:1"));
}

// A replica that a creation left on a member. Its incarnation is ten times the
// creation's number, plus the node's.
struct LeftReplica {
  model::ModelPersistence pmem{(*Layout::ForRing(1024, 102)).region_bytes};
  std::unique_ptr<recovery::LocalReplica<model::ModelPersistence>> replica;

  LeftReplica(uint64_t creation, uint64_t node, uint32_t write_quorum = 2)
      : LeftReplica(node, ConfigurationOf(creation, write_quorum)) {}
  LeftReplica(uint64_t node, const Configuration& configuration) {
    FormatIdentity identity;
    identity.node = NodeId(node);
    identity.cluster_id = {1, 2};
    identity.log_id = {3, 4};
    identity.configuration = configuration;
    EXPECT_TRUE(
        FormatRegion(pmem, pmem.region(), *Layout::ForRing(1024, 102), identity)
            .ok());
    replica = *recovery::LocalReplica<model::ModelPersistence>::Open(
        pmem, pmem.region(), {.name = "left"});
  }

  static Configuration ConfigurationOf(uint64_t creation,
                                       uint32_t write_quorum) {
    Configuration configuration;
    configuration.replica_count = 3;
    configuration.write_quorum = write_quorum;
    for (uint64_t i = 1; i <= 3; ++i) {
      configuration.members.push_back({NodeId(i), 10 * creation + i});
    }
    return configuration;
  }
};

// LC2. As a node does whose own candidate takes the new log at once.
TEST(LogCreationTest, MemberThatHasTheReplicaAfterABreakHasDoneIt) {
  MembersWithAKey members;
  std::unique_ptr<LeftReplica> made;
  members.servers[1]->on_request = [&](const Message& message) {
    const auto* const format = std::get_if<recovery::Format>(&message);
    if (format == nullptr) return true;
    made = std::make_unique<LeftReplica>(2, format->configuration);
    members.servers[1]->SetReplica(made->replica.get());
    return members.BreakSecond();
  };
  const auto creation = members.Create(members.options);
  ASSERT_TRUE(creation->status().ok()) << creation->status();
  EXPECT_EQ(members.formatted.size(), 2u);
}

// LC2. Until that candidate has told its node, the node knows no more than that
// another process has the file.
TEST(LogCreationTest, MemberThatPutsALookOffIsLookedAtAgain) {
  MembersWithAKey members;
  std::unique_ptr<LeftReplica> made;
  int put_off = 0;
  members.servers[1]->on_request = [&](const Message& message) {
    const auto* const format = std::get_if<recovery::Format>(&message);
    if (format == nullptr) return true;
    made = std::make_unique<LeftReplica>(2, format->configuration);
    members.servers[1]->SetReplica(made->replica.get());
    return members.BreakSecond();
  };
  members.on_member_event = [&](int host,
                                const fabric::ConnectionEvent& event) {
    if (host != 1) return true;
    members.to_second = event.connection;
    const bool puts_off =
        made && event.kind == fabric::ConnectionEvent::Kind::kRequested &&
        put_off < 3;
    if (!puts_off) return true;
    ++put_off;
    EXPECT_TRUE(
        members.network.fabric(1)
            .Reject(event.connection, recovery::EncodeRejection(
                                          absl::UnavailableError("not served")))
            .ok());
    return false;
  };
  const auto creation = members.Create(members.options);
  ASSERT_TRUE(creation->status().ok()) << creation->status();
  EXPECT_EQ(put_off, 3);
}

// LC1. Goal: wherever a creation was cut off, also after others that were, the
// same command makes the log. Method: each member has nothing, or a replica of
// one of two creations.
TEST(LogCreationTest, CreationThatWasCutOffAnywhereIsMadeAgain) {
  for (int left = 0; left < 3 * 3 * 3; ++left) {
    const std::array<int, 3> creations = {left % 3, left / 3 % 3, left / 9};
    SCOPED_TRACE(left);
    Members members;
    std::vector<std::unique_ptr<LeftReplica>> replicas;
    for (int i = 0; i < 3; ++i) {
      if (creations[i] == 0) continue;
      replicas.push_back(std::make_unique<LeftReplica>(creations[i], i + 1));
      members.servers[i]->SetReplica(replicas.back()->replica.get());
    }
    const auto creation = members.Create(members.Options());
    if (creations[0] != 0 && creations[1] == creations[0] &&
        creations[2] == creations[0]) {
      EXPECT_TRUE(absl::IsAlreadyExists(creation->status()));
      EXPECT_THAT(creation->status().ToString(), HasSubstr("the log is there"));
      EXPECT_TRUE(members.formatted.empty());
      continue;
    }
    ASSERT_TRUE(creation->status().ok()) << creation->status();
    ASSERT_EQ(members.formatted.size(), 3u);
    for (const auto& [node, format] : members.formatted) {
      const int of = creations[node - 1];
      EXPECT_EQ(format.replaces, of == 0 ? 0u : 10u * of + node) << node;
      EXPECT_EQ(format.configuration, creation->configuration());
    }
  }
}

// All of one creation, but not the one that is asked for.
TEST(LogCreationTest, LogOfAnotherListIsMadeAgainIfNobodyOpenedIt) {
  Members members;
  std::vector<std::unique_ptr<LeftReplica>> replicas;
  for (int i = 0; i < 3; ++i) {
    replicas.push_back(std::make_unique<LeftReplica>(1, i + 1, 3));
    members.servers[i]->SetReplica(replicas.back()->replica.get());
  }
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(creation->status().ok()) << creation->status();
  EXPECT_EQ(members.formatted.size(), 3u);
}

TEST(LogCreationTest, LogThatWasOpenedIsNotFormatted) {
  Members members;
  LeftReplica left(1, 2);
  ASSERT_TRUE(left.replica->AcceptPromise({Epoch(5), {NodeId(9), 1}}).ok());
  members.servers[1]->SetReplica(left.replica.get());
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(absl::IsAlreadyExists(creation->status())) << creation->status();
  EXPECT_THAT(creation->status().ToString(), HasSubstr("node 2"));
  EXPECT_TRUE(members.formatted.empty());
}

// Between the server hello and the question.
TEST(LogCreationTest, LogThatIsOpenedMeanwhileIsNotFormatted) {
  Members members;
  LeftReplica left(1, 2);
  members.servers[1]->SetReplica(left.replica.get());
  members.servers[1]->on_request = [&](const Message& message) {
    if (std::holds_alternative<recovery::AskCreation>(message)) {
      EXPECT_TRUE(left.replica->AcceptPromise({Epoch(5), {NodeId(9), 1}}).ok());
    }
    return true;
  };
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(absl::IsAlreadyExists(creation->status())) << creation->status();
  EXPECT_TRUE(members.formatted.empty());
}

TEST(LogCreationTest, SilentMemberIsNotWaitedForForEver) {
  Members members;
  members.servers[2]->on_request = [](const Message&) { return false; };
  const auto creation = members.Create(members.Options());
  EXPECT_TRUE(absl::IsUnavailable(creation->status())) << creation->status();
  EXPECT_THAT(creation->status().ToString(), HasSubstr("is unknown"));
}

TEST(LogCreationTest, MembersMustBeN) {
  Members members;
  LogCreationOptions options = members.Options();
  options.peers.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(
      recovery::LogCreation::Start(members.network.fabric(3),
                                   members.network.clock(), members.random,
                                   options)
          .status()));
}

TEST(LogCreationTest, SizeThatNoReplicatedLogHasIsRefused) {
  Members members;
  for (const uint64_t bytes : {uint64_t{300} << 30, uint64_t{4096}}) {
    LogCreationOptions options = members.Options();
    options.region_bytes = bytes;
    const auto creation = recovery::LogCreation::Start(
        members.network.fabric(3), members.network.clock(), members.random,
        options);
    EXPECT_TRUE(absl::IsInvalidArgument(creation.status()))
        << creation.status();
  }
  EXPECT_TRUE(members.formatted.empty());
}

}  // namespace
}  // namespace alpheus::testing
