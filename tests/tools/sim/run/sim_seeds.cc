// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/sim/run/sim_seeds.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/base/config.h"
#include "tools/sim/run/seed_runner.h"
#include "tools/sim/run/sim_case.h"

namespace alpheus::testing {
namespace {

using sim::RunOptions;
using sim::SeedOutcome;

// The least that a seed has to bring on average.
constexpr double kFaultsMin = 30;
constexpr double kCallsMin = 200;

void Judge(const RunOptions& run, const SeedOutcome& outcome,
           const sim::Fixed& fixed) {
  const auto& violation = outcome.result.violation;
  if (!violation) return;
  ADD_FAILURE() << violation->invariant << ": " << violation->what
                << "\n  once more: " << sim::CommandLine(run.seed, fixed);
}

void Run(uint64_t first_seed, uint64_t seeds, const sim::Fixed& fixed,
         sim::Totals& totals) {
  sim::SeedRunner::Options options;
  options.jobs = 2;
  options.cpu_seconds_max = 120;  // a sanitizer takes its time
  sim::SeedRunner runner(options, Clock::Real());
  uint64_t next = first_seed;
  const uint64_t end = first_seed + (AllSeedsRun() ? seeds : (seeds + 2) / 3);
  const absl::Status status = runner.RunAll(
      [&]() -> std::optional<RunOptions> {
        if (next == end) return std::nullopt;
        return DrawOptions(next++, fixed);
      },
      [&](const RunOptions& run, const SeedOutcome& outcome) {
        totals.Add(outcome);
        Judge(run, outcome, fixed);
        return true;
      });
  ASSERT_TRUE(status.ok()) << status;
}

}  // namespace

bool AllSeedsAreAskedFor() {
  return std::getenv("ALPHEUS_ALL_SEEDS") != nullptr;
}

bool AllSeedsRun() {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  return AllSeedsAreAskedFor();
#else
  return true;
#endif
}

sim::Totals ExpectGood(uint64_t first_seed, uint64_t seeds,
                       const sim::Fixed& fixed) {
  sim::Totals totals;
  Run(first_seed, seeds, fixed, totals);
  return totals;
}

sim::Totals ExpectGoodOfAllSizes(uint64_t first_seed, uint64_t seeds) {
  sim::Totals totals;
  for (int nodes = 1; nodes <= 5; ++nodes) {
    for (int write_quorum = 1; write_quorum <= nodes; ++write_quorum) {
      sim::Fixed fixed;
      fixed.nodes = nodes;
      fixed.write_quorum = write_quorum;
      Run(first_seed, seeds, fixed, totals);
      first_seed += seeds;
    }
  }
  return totals;
}

void JudgeTotals(const sim::Totals& totals) {
  std::printf("[   counts ]\n%s", sim::Describe(totals).c_str());
  EXPECT_GE(totals.PerSeed(totals.faults()), kFaultsMin);
  EXPECT_GE(totals.PerSeed(totals.counters.calls), kCallsMin);
  EXPECT_GT(totals.acknowledged, 0u);
  EXPECT_GT(totals.counters.records_checked, 0u);
  if (!AllSeedsRun()) return;
  EXPECT_GT(totals.counters.repairs, 0u);
  EXPECT_GT(totals.counters.joins, 0u);
  // No checker that never looks.
  EXPECT_GT(totals.counters.media_checks, totals.seeds);
  EXPECT_GT(totals.counters.records_on_media, totals.seeds);
  EXPECT_GT(totals.counters.durability_checks, totals.seeds);
  EXPECT_GT(totals.counters.records_still_durable, totals.seeds);
  EXPECT_GT(totals.counters.landings_checked, totals.seeds);
  EXPECT_GT(totals.counters.owners_checked, totals.seeds);
  EXPECT_GT(totals.counters.reports_checked, totals.seeds);
  EXPECT_GT(totals.counters.mark_checks, totals.seeds);
  EXPECT_GT(totals.counters.idle_checks, totals.seeds);
  EXPECT_GT(totals.counters.records_compared, 0u);
  EXPECT_GT(totals.counters.ballots, totals.seeds);
  EXPECT_GT(totals.counters.tail_records, 0u);
  EXPECT_GT(totals.counters.unauthenticated_refused, 0u);
  EXPECT_GT(totals.counters.replays, 0u);
  EXPECT_GT(totals.counters.malformed_refused, 0u);
  EXPECT_GT(totals.counters.own_scrubs, 0u);
  EXPECT_GT(totals.counters.scrubs, totals.counters.own_scrubs);
  EXPECT_GT(totals.counters.repaired_records, 0u);
  EXPECT_GT(totals.counters.regions_released, 0u);
  EXPECT_GT(totals.counters.elections, 0u);
  EXPECT_GT(totals.counters.stepped_down, 0u);
  EXPECT_GT(totals.counters.overtaken, 0u);
  const uint64_t gave_up = totals.counters.progress_undemanded;
  // One of sixteen goes beyond what it must survive.
  EXPECT_LE(gave_up, totals.seeds / 8);
  EXPECT_LE(totals.counters.final_openings, 2 * totals.seeds);
  // A log that violated something, an open finding, is not opened any more.
  EXPECT_GE(totals.counters.final_openings,
            2 * (totals.seeds - gave_up - totals.violated));
  EXPECT_GT(totals.counters.cores, 0u);
  EXPECT_GT(totals.counters.left_broken, 0u);
  EXPECT_GT(totals.counters.breakpoints, totals.counters.metadata_breakpoints);
  EXPECT_GT(totals.counters.metadata_breakpoints, 0u);
  EXPECT_GT(totals.counters.switches, totals.seeds);
  EXPECT_GT(totals.counters.breaks, 0u);
  EXPECT_GT(totals.counters.late_landings, 0u);
  for (size_t i = 0; i < sim::kFaultKinds; ++i) {
    EXPECT_GT(totals.counters.faults[i], 0u)
        << sim::FaultName(static_cast<sim::FaultKind>(i));
  }
}

}  // namespace alpheus::testing
