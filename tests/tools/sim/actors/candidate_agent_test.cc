// SPDX-License-Identifier: Apache-2.0
// Do candidates start the application of whoever is first, and of nobody else
// for long?
#include "tools/sim/actors/candidate_agent.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/tools/sim/world/checked_world.h"
#include "tools/sim/actors/membership_service.h"
#include "tools/sim/actors/primary_process.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kAgentStepNanos = 10'000;
// In which an application is started, and has opened the log.
constexpr int64_t kElectionNanos = 30'000'000;

class CandidateAgentTest : public ::testing::Test {
 protected:
  static RunOptions Options() {
    RunOptions options;
    options.nodes = 3;
    options.write_quorum = 2;
    options.clients = 0;
    options.has_membership_service = true;
    // Weight 1: the run is one in which something may happen.
    options.weights[static_cast<size_t>(FaultKind::kExpireSession)] = 1;
    return options;
  }

  template <class Done>
  bool RunUntil(const Done& done) {
    const int64_t until = world_.now() + kElectionNanos;
    while (!done() && world_.now() < until)
      world_.network().Run(kAgentStepNanos);
    return done();
  }
  void Run() {
    RunUntil([] { return false; });
  }
  // The machine whose application has the log open; -1: none.
  int Writer() {
    for (const World::Machine& machine : world_.machines()) {
      if (machine.primary != nullptr && machine.primary->is_open()) {
        return machine.number;
      }
    }
    return -1;
  }
  int Applications() {
    int applications = 0;
    for (const World::Machine& machine : world_.machines()) {
      applications += machine.primary != nullptr ? 1 : 0;
    }
    return applications;
  }
  // The machine whose application has the log open, sooner or later.
  int Elected() {
    EXPECT_TRUE(RunUntil([&] { return Writer() >= 0; }));
    return Writer();
  }
  // The same, once those have ended that did not notice their end.
  int ElectedAlone() {
    EXPECT_TRUE(RunUntil([&] { return Writer() >= 0 && Applications() == 1; }));
    return Writer();
  }
  MembershipService& service() { return *world_.membership(); }
  std::string violated() { return ViolatedBy(world_.oracle()); }

  World world_{Options()};
};

TEST_F(CandidateAgentTest, OneOfThemIsFirstAndStaysIt) {
  const int first = Elected();
  Run();
  EXPECT_EQ(Writer(), first);
  EXPECT_EQ(Applications(), 1);
  EXPECT_EQ(world_.counters().elections, 1u);
  // One for each machine; the application's ended by silence.
  EXPECT_EQ(service().sessions(), 4u);
  EXPECT_EQ(violated(), "");
}

TEST_F(CandidateAgentTest, WhoseSessionHasExpiredIsFollowedByAnother) {
  std::set<int> elected;
  for (int i = 0; i < 8; ++i) {
    const int first = ElectedAlone();
    ASSERT_GE(first, 0);
    elected.insert(first);
    const uint64_t elections = world_.counters().elections;
    ASSERT_TRUE(service().Expire(first));
    ASSERT_TRUE(
        RunUntil([&] { return world_.counters().elections > elections; }));
    ASSERT_TRUE(RunUntil([&] { return Writer() >= 0 && Writer() != first; }));
  }
  EXPECT_GT(elected.size(), 1u);
  // Some end their application, some do not notice.
  EXPECT_GT(world_.counters().stepped_down, 0u);
  EXPECT_GT(world_.counters().overtaken, 0u);
  EXPECT_EQ(violated(), "");
}

// It may be the one of a machine from which the log can't be opened.
TEST_F(CandidateAgentTest, WhoseApplicationHasEndedLetsOthersGoFirst) {
  std::set<int> elected;
  for (int i = 0; i < 12; ++i) {
    const int first = Elected();
    ASSERT_GE(first, 0);
    elected.insert(first);
    world_.KillPrimary(world_.machine(first));
  }
  EXPECT_GT(elected.size(), 1u);
  EXPECT_EQ(violated(), "");
}

TEST_F(CandidateAgentTest, ACandidateGoesWithItsMachineAndComesBack) {
  const int first = Elected();
  World::Machine& machine = world_.machine(first);
  world_.CutPower(machine);
  EXPECT_EQ(machine.candidate, nullptr);
  EXPECT_TRUE(RunUntil([&] { return Writer() >= 0; }));
  EXPECT_TRUE(RunUntil([&] { return service().sessions() == 3; }));
  world_.RestorePower(machine);
  EXPECT_NE(machine.candidate, nullptr);
  EXPECT_TRUE(RunUntil([&] { return service().sessions() == 4; }));
  EXPECT_EQ(violated(), "");
}

TEST_F(CandidateAgentTest, WhereAllIsToRestCandidatesEnd) {
  const int first = Elected();
  world_.BeQuiet();
  world_.KillPrimary(world_.machine(first));
  const uint64_t elections = world_.counters().elections;
  Run();
  EXPECT_EQ(world_.counters().elections, elections);
  EXPECT_EQ(Applications(), 0);
  // Nobody keeps their sessions.
  EXPECT_EQ(service().sessions(), 0u);
}

TEST_F(CandidateAgentTest, WithoutItsServiceALogThatIsOpenGoesOn) {
  const int first = Elected();
  const ProcessId process = world_.machine(first).primary->process();
  service().Stop();
  // Shorter than anybody's patience.
  world_.network().Run(Options().session_ns / 4);
  ASSERT_EQ(Writer(), first);
  EXPECT_EQ(world_.machine(first).primary->process(), process);
  service().Start(/*with_sessions=*/true);
  EXPECT_GE(Elected(), 0);
  EXPECT_EQ(violated(), "");
}

}  // namespace
}  // namespace alpheus::sim
