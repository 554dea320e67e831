// SPDX-License-Identifier: Apache-2.0
// Simulated clusters: a few seeds of each size, those that once found
// something, and canaries, which show that the checkers are alive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/tools/sim/run/sim_seeds.h"
#include "tools/sim/run/seed_runner.h"
#include "tools/sim/run/sim_case.h"

namespace alpheus::testing {
namespace {

using sim::Canary;
using sim::Fixed;
using sim::Violation;
using sim::Workload;
using ::testing::AnyOf;

TEST(SimTest, ClustersOfEverySizeLoseNothing) {
  JudgeTotals(ExpectGoodOfAllSizes(/*first_seed=*/1, /*seeds=*/8));
}

TEST(SimTest, WithoutFaultsAllIsWell) {
  Fixed fixed;
  fixed.faults.emplace();
  const sim::Totals totals = ExpectGood(1, 10, fixed);
  EXPECT_EQ(totals.faults(), 0u);
  // Nobody closes, and nobody is pushed aside but at the end.
  EXPECT_GT(totals.acknowledged, 100u);
}

// Nobody is given up, and nothing comes without a credit (P-A3.3, P-INV-R1).
TEST(SimTest, WhereNothingHappensNobodyIsDropped) {
  Fixed fixed;
  fixed.faults.emplace();
  fixed.without_breaks = true;
  ASSERT_TRUE(IsCalm(DrawOptions(1, fixed)));
  ExpectGood(1, 20, fixed);
}

// Processes that stand for primary: whatever fails, one of them has the log
// open again in time (ELE6), and each epoch has one primary.
TEST(SimTest, StandingProcessesKeepTheLogOpen) {
  for (const int nodes : {2, 3, 5}) {
    for (const bool has_service : {false, true}) {
      SCOPED_TRACE(has_service ? "with a membership service" : "static");
      Fixed fixed;
      fixed.nodes = nodes;
      fixed.has_membership_service = has_service;
      fixed.background_actors = sim::BackgroundActors{.elect = true};
      const sim::Totals totals = ExpectGood(1, 8, fixed);
      EXPECT_GT(totals.counters.elections, 8u);
    }
  }
}

// ELE2: where nothing fails, the primary that was elected first stays.
TEST(SimTest, WhereNothingHappensNobodyIsDeposed) {
  Fixed fixed;
  fixed.nodes = 3;
  fixed.faults.emplace();
  fixed.without_breaks = true;
  fixed.background_actors = sim::BackgroundActors{.elect = true};
  ASSERT_TRUE(IsCalm(DrawOptions(1, fixed)));
  for (const bool has_service : {false, true}) {
    SCOPED_TRACE(has_service ? "with a membership service" : "static");
    fixed.has_membership_service = has_service;
    ExpectGood(1, 10, fixed);
  }
}

TEST(SimTest, SeedsThatOnceFoundSomethingFindNothing) {
  struct Seed {
    uint64_t seed;
    const char* without;
    const char* found;
    void (*fix)(Fixed& fixed);
  };
  const Seed seeds[] = {
#define ALPHEUS_SEED(seed, without, found, ...) \
  {seed, without, found, []([[maybe_unused]] Fixed& fixed) { __VA_ARGS__; }},
#include "tests/tools/sim/run/regression_seeds.inc"
#undef ALPHEUS_SEED
  };
  for (const Seed& seed : seeds) {
    SCOPED_TRACE(seed.found);
    Fixed fixed;
    seed.fix(fixed);
    const auto left_out = sim::ParseNumbers(seed.without);
    ASSERT_TRUE(left_out) << seed.without;
    fixed.left_out = *left_out;
    ExpectGood(seed.seed, 1, fixed);
  }
}

std::optional<Violation> ViolationOf(uint64_t seed, const Fixed& fixed) {
  sim::SeedRunner runner({.cpu_seconds_max = 120}, Clock::Real());
  const auto outcome = runner.Run(DrawOptions(seed, fixed));
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? outcome->result.violation : std::nullopt;
}

Fixed DatabaseThatLosesItsLog() {
  Fixed fixed;
  fixed.workload = Workload::kRocksDb;
  fixed.nodes = 3;
  fixed.write_quorum = 2;
  fixed.faults = {sim::FaultKind::kKillPrimary, sim::FaultKind::kPowerCut,
                  sim::FaultKind::kPowerCutAll};
  fixed.background_actors = sim::BackgroundActors();
  return fixed;
}

// Each seed must see a canary, unless it says otherwise, whatever the operator
// does, so there is none but where it is about one.
TEST(SimCanaryTest, ALogThatCountsRecordsAsDurableTooEarlyIsCaught) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.nodes = 3;
    fixed.write_quorum = 2;
    // The other one would mostly see a head first that only one medium has.
    fixed.workload = Workload::kWal;
    fixed.faults = {sim::FaultKind::kKillPrimary, sim::FaultKind::kPowerCut,
                    sim::FaultKind::kIsolate};
    fixed.background_actors = sim::BackgroundActors();
    fixed.canary = Canary::kEarlyDurable;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    ASSERT_TRUE(violation) << seed;
    // Too few media have a record, or a head (P-L11).
    EXPECT_THAT(violation->invariant, AnyOf("P-INV-22", "P-L11"))
        << seed << violation->what;
  }
}

// P-R7: records count by a flush that takes nothing out of the caches. Where
// the backup's own fence is faster nothing is lost, so that not each seed sees
// it.
TEST(SimCanaryTest, APlatformThatClaimsTooMuchIsCaught) {
  uint64_t caught = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.nodes = 3;
    fixed.write_quorum = 2;
    fixed.platform = *replication::ParsePlatform("dmp,infiniband");
    fixed.workload = Workload::kWal;
    fixed.faults = {sim::FaultKind::kKillPrimary, sim::FaultKind::kPowerCut,
                    sim::FaultKind::kIsolate};
    fixed.background_actors = sim::BackgroundActors();
    fixed.canary = Canary::kWrongPlatform;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    if (!violation) continue;
    ++caught;
    EXPECT_EQ(violation->invariant, "P-INV-22") << seed << violation->what;
  }
  EXPECT_GT(caught, 0u);
}

// A power cut that takes what was fenced leaves a medium as it was formatted.
TEST(SimCanaryTest, AMediumThatLosesWhatWasFencedIsCaught) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.nodes = 1;
    fixed.write_quorum = 1;
    fixed.faults = {sim::FaultKind::kPowerCut};
    fixed.background_actors = sim::BackgroundActors();
    fixed.canary = Canary::kLostFences;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    ASSERT_TRUE(violation) << seed;
    EXPECT_NE(violation->invariant, sim::kCrashed) << violation->what;
    EXPECT_NE(violation->invariant, sim::kHung);
  }
}

TEST(SimCanaryTest, ABallotThatTwoProcessesShareIsCaught) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.has_membership_service = true;
    fixed.background_actors = sim::BackgroundActors();
    fixed.canary = Canary::kSharedBallot;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    ASSERT_TRUE(violation) << seed;
    EXPECT_EQ(violation->invariant, "P-INV-4") << seed << violation->what;
  }
}

// A log that is hurt more than it survives loses something, and that is seen.
TEST(SimCanaryTest, DamageBeyondTheBudgetIsSeenAsALoss) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.nodes = 3;
    fixed.write_quorum = 2;
    fixed.faults = {sim::FaultKind::kRollBackRegion, sim::FaultKind::kFlipBit,
                    sim::FaultKind::kBlankRegion};
    fixed.background_actors = sim::BackgroundActors();
    fixed.canary = Canary::kNoBudget;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    ASSERT_TRUE(violation) << seed;
    EXPECT_NE(violation->invariant, sim::kCrashed) << violation->what;
    EXPECT_NE(violation->invariant, sim::kHung);
    EXPECT_NE(violation->invariant, sim::kCheckFailed) << violation->what;
  }
}

TEST(SimCanaryTest, ATailThatMissesARecordIsCaught) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.background_actors = {.tail = true};
    fixed.canary = Canary::kDeafTail;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    ASSERT_TRUE(violation) << seed;
    EXPECT_EQ(violation->invariant, "P-C2") << seed << violation->what;
  }
}

TEST(SimCanaryTest, AnUnauthenticatedClientThatIsGivenSomethingIsCaught) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.nodes = 3;  // a node serves its replica where no application is
    fixed.faults.emplace();
    fixed.background_actors = {.unauthenticated = true};
    fixed.canary = Canary::kTrustedClient;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    ASSERT_TRUE(violation) << seed;
    EXPECT_EQ(violation->invariant, "P-H17") << seed << violation->what;
  }
}

// A primary that counts by an older list acknowledges with less than its W.
TEST(SimCanaryTest, AnOldWriteQuorumIsCaught) {
  int caught = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.nodes = 3;
    fixed.write_quorum = 1;
    fixed.workload = Workload::kWal;
    fixed.background_actors = {.changes = true};
    fixed.canary = Canary::kOldQuorum;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    if (!violation) continue;
    ++caught;
    // Too few media have a record, or a head.
    EXPECT_TRUE(violation->invariant == "P-INV-22" ||
                violation->invariant == "P-L11")
        << seed << violation->invariant << violation->what;
  }
  EXPECT_GE(caught, 3);
}

// A scrub writes the record that was there, and nothing else.
TEST(SimCanaryTest, ARepairThatWritesOtherBytesIsCaught) {
  int caught = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.nodes = 3;
    fixed.write_quorum = 2;
    fixed.faults = {sim::FaultKind::kFlipBit, sim::FaultKind::kPoison};
    fixed.background_actors = {.scrub = true};
    fixed.canary = Canary::kBadRepair;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    if (!violation) continue;
    ++caught;
    EXPECT_EQ(violation->invariant, "P-A8") << seed << violation->what;
  }
  EXPECT_GE(caught, 3);
}

// A database that loses what its sync said is durable. Half of the seeds have
// a crash that shows it; which ones do changes with the schedules.
TEST(SimCanaryTest, ASyncThatForcesNothingIsCaught) {
  int caught = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Fixed fixed = DatabaseThatLosesItsLog();
    fixed.canary = Canary::kIdleSync;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    if (!violation) continue;
    ++caught;
    EXPECT_EQ(violation->invariant, "WST1") << seed << violation->what;
  }
  EXPECT_GE(caught, 8);
}

// A newer WAL without an older one's end. Only databases that write their
// buffer late have any, and only a crash before that shows it.
TEST(SimCanaryTest, AWalThatIsNewerThanTheOlderOnesBufferIsCaught) {
  int caught = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Fixed fixed = DatabaseThatLosesItsLog();
    fixed.canary = Canary::kEarlySwitch;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    if (!violation) continue;
    ++caught;
    EXPECT_EQ(violation->invariant, "WST2") << seed << violation->what;
  }
  EXPECT_GE(caught, 2);
}

TEST(SimTest, DatabasesFindTheirWalsAgain) {
  Fixed fixed;
  fixed.workload = Workload::kRocksDb;
  const sim::Totals totals = ExpectGood(1, 60, fixed);
  EXPECT_GT(totals.counters.wal_files_found, totals.seeds);
  EXPECT_GT(totals.counters.wal_files_removed, totals.seeds);
}

TEST(SimTest, DamageIsRepairedWhileEverythingElseHappens) {
  Fixed fixed;
  fixed.background_actors = {.scrub = true};
  const sim::Totals totals = ExpectGood(1, 60, fixed);
  EXPECT_GT(totals.counters.scrubs, totals.seeds);
  EXPECT_GT(totals.counters.own_scrubs, totals.seeds);
  if (!AllSeedsRun()) return;
  EXPECT_GT(totals.counters.repaired_places, 0u);
  EXPECT_GT(totals.counters.repaired_records, 0u);
  EXPECT_GT(totals.counters.repaired_durable, 0u);
}

TEST(SimTest, PrimariesStepDownForWhoOpensTheLog) {
  Fixed fixed;
  fixed.background_actors = {.claim = true};
  const sim::Totals totals = ExpectGood(1, 40, fixed);
  EXPECT_GT(totals.counters.regions_released, totals.seeds / 2);
}

// Each keeps out of the others' way.
TEST(SimTest, AllBackgroundActorsAtOnceDisturbNobody) {
  Fixed fixed;
  fixed.background_actors = {.tail = true,
                             .unauthenticated = true,
                             .changes = true,
                             .scrub = true,
                             .claim = true};
  const sim::Totals totals = ExpectGood(1, 40, fixed);
  EXPECT_GT(totals.counters.scrubs, totals.seeds);
  EXPECT_GT(totals.counters.regions_released, 0u);
  EXPECT_GT(totals.counters.changes_made, totals.seeds);
}

// P-A3.4, P-INV-22.
TEST(SimTest, BitsThatFlipOnTheirWayAreNotAcknowledged) {
  Fixed fixed;
  fixed.faults = {sim::FaultKind::kFlipInTransit, sim::FaultKind::kKillPrimary};
  fixed.platform = replication::Platform();
  const sim::Totals totals = ExpectGood(1, 20, fixed);
  const auto kind = static_cast<size_t>(sim::FaultKind::kFlipInTransit);
  EXPECT_GT(totals.counters.faults[kind], totals.seeds);
}

TEST(SimTest, BackgroundActorsSeeWhatStaysAndDisturbNobody) {
  Fixed fixed;
  fixed.background_actors = {.tail = true, .unauthenticated = true};
  const sim::Totals totals = ExpectGood(1, 20, fixed);
  EXPECT_GT(totals.counters.tails, totals.seeds);
  EXPECT_GT(totals.counters.tail_records, totals.seeds);
  EXPECT_GT(totals.counters.tails_overtaken, 0u);
  EXPECT_GT(totals.counters.tail_ends, totals.seeds);
  EXPECT_GT(totals.counters.unauthenticated_refused, totals.seeds);
  EXPECT_GT(totals.counters.replays, 0u);
  EXPECT_GT(totals.counters.malformed_refused, totals.seeds);
  EXPECT_GT(totals.counters.malformed_requests,
            totals.counters.malformed_refused);
  EXPECT_GT(totals.counters.guessed_keys, 0u);
}

// P-A5.4: the primary makes the change, and its clients' calls go on.
TEST(SimTest, RunningLogsGoOnOverChangesOfMembers) {
  Fixed fixed;
  fixed.workload = sim::Workload::kMixed;
  fixed.background_actors = {.tail = true,
                             .changes = true,
                             .scrub = true,
                             .claim = true,
                             .online = true};
  const sim::Totals totals = ExpectGood(1, 40, fixed);
  EXPECT_GT(totals.counters.changes_made, 0u);
  EXPECT_GT(totals.counters.successions, 0u);
}

// The same where candidates start the applications.
TEST(SimTest, ElectedLogsGoOnOverChangesOfMembers) {
  Fixed fixed;
  fixed.workload = sim::Workload::kMixed;
  fixed.background_actors = {
      .changes = true, .claim = true, .elect = true, .online = true};
  const sim::Totals totals = ExpectGood(1, 20, fixed);
  EXPECT_GT(totals.counters.elections, totals.seeds);
  EXPECT_GT(totals.counters.successions, 0u);
}

// EPS9: the next epochs are numbered by the register, or without it, whatever
// becomes of the service meanwhile.
TEST(SimTest, RunningLogsNumberTheirEpochsByTheRegister) {
  Fixed fixed;
  fixed.workload = sim::Workload::kMixed;
  fixed.has_membership_service = true;
  fixed.faults = {
      sim::FaultKind::kExpireSession, sim::FaultKind::kCutMembership,
      sim::FaultKind::kRestartMembership, sim::FaultKind::kKillPrimary};
  fixed.background_actors = {.changes = true, .online = true};
  const sim::Totals totals = ExpectGood(1, 10, fixed);
  EXPECT_GT(totals.counters.successions, 0u);
}

// The same where only the operator disturbs the log.
TEST(SimTest, ChangesOfMembersFailNoCallOfARunningLog) {
  Fixed fixed;
  fixed.workload = sim::Workload::kMixed;
  fixed.nodes = 4;
  fixed.faults.emplace();
  fixed.without_breaks = true;
  fixed.background_actors = {.changes = true, .online = true};
  const sim::Totals totals = ExpectGood(1, 10, fixed);
  EXPECT_GT(totals.counters.successions, 0u);
}

TEST(SimTest, MembersChangeWhileTheLogRuns) {
  Fixed fixed;
  fixed.background_actors = {.tail = true, .changes = true};
  const sim::Totals totals = ExpectGood(1, 40, fixed);
  EXPECT_GT(totals.counters.changes_made, totals.seeds);
  EXPECT_GT(totals.counters.replacements_made, 0u);
  EXPECT_GT(totals.counters.changes_refused, 0u);
  EXPECT_GT(totals.counters.competing_changes, totals.seeds);
  EXPECT_GT(totals.counters.cores, 0u);
}

// Nor where nothing happens: nobody is given up (P-A3.3).
TEST(SimTest, BackgroundActorsDisturbNobodyWhereNothingHappens) {
  Fixed fixed;
  fixed.faults.emplace();
  fixed.without_breaks = true;
  fixed.background_actors = {
      .tail = true, .unauthenticated = true, .scrub = true, .claim = true};
  ExpectGood(1, 10, fixed);
}

TEST(SimTest, BeyondTheBudgetALogStaysClosedAndIsNeverShorter) {
  Fixed fixed;
  fixed.faults.emplace();
  for (size_t i = 0; i < sim::kFaultKinds; ++i) {
    const auto kind = static_cast<sim::FaultKind>(i);
    if (IsOfStorage(kind)) fixed.faults->insert(kind);
  }
  fixed.beyond_budget = true;
  const sim::Totals totals = ExpectGood(1, 20, fixed);
  EXPECT_GT(totals.counters.progress_undemanded, 0u);
}

TEST(SimCanaryTest, ACoreOfTooFewReplicasDoesNotGoOn) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Fixed fixed;
    fixed.nodes = 3;
    fixed.write_quorum = 2;
    fixed.faults = {sim::FaultKind::kKillPrimary, sim::FaultKind::kKillNode,
                    sim::FaultKind::kIsolate};
    fixed.background_actors = sim::BackgroundActors();
    fixed.canary = Canary::kSmallCore;
    const std::optional<Violation> violation = ViolationOf(seed, fixed);
    ASSERT_TRUE(violation) << seed;
    EXPECT_EQ(violation->invariant, "P-C8") << seed << violation->what;
  }
}

TEST(SimCanaryTest, AFailingSeedIsShrunkToOneFault) {
  constexpr uint64_t kSeed = 3;
  Fixed fixed;
  fixed.nodes = 1;
  fixed.write_quorum = 1;
  fixed.faults = {sim::FaultKind::kPowerCut};
  fixed.background_actors = sim::BackgroundActors();
  fixed.canary = Canary::kLostFences;
  const std::optional<Violation> violation = ViolationOf(kSeed, fixed);
  ASSERT_TRUE(violation);
  sim::SeedRunner runner({.cpu_seconds_max = 120}, Clock::Real());
  const auto shortest =
      FindShortest(kSeed, fixed, *violation, runner, Clock::Real(),
                   /*nanos_max=*/600'000'000'000);
  ASSERT_TRUE(shortest.ok()) << shortest.status();
  const auto options = DrawOptions(kSeed, shortest->fixed);
  EXPECT_EQ(FaultsLeft(options).size(), 1u)
      << sim::CommandLine(kSeed, shortest->fixed);
  EXPECT_TRUE(IsSameViolation(*violation, shortest->violation));
  // Its command finds the same violation.
  const std::optional<Violation> again = ViolationOf(kSeed, shortest->fixed);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->what, shortest->violation.what);
}

}  // namespace
}  // namespace alpheus::testing
