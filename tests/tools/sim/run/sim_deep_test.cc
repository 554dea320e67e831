// SPDX-License-Identifier: Apache-2.0
// More seeds of simulated clusters than sim_test has time for; most of them if
// all seeds are asked for.
#include <gtest/gtest.h>

#include "tests/tools/sim/run/sim_seeds.h"

namespace alpheus::testing {
namespace {

uint64_t Seeds(uint64_t always, uint64_t all) {
  return AllSeedsAreAskedFor() ? all : always;
}

TEST(SimDeepTest, ClustersOfEverySizeLoseNothing) {
  JudgeTotals(ExpectGoodOfAllSizes(/*first_seed=*/10'000, Seeds(60, 200)));
}

TEST(SimDeepTest, ClustersByLotLoseNothing) {
  JudgeTotals(ExpectGood(/*first_seed=*/20'000, Seeds(500, 1500), {}));
}

TEST(SimDeepTest, OneClassOfFaultsAtATimeLosesNothing) {
  for (size_t i = 0; i < sim::kFaultKinds; ++i) {
    sim::Fixed fixed;
    fixed.faults = {static_cast<sim::FaultKind>(i)};
    const sim::Totals totals = ExpectGood(30'000, Seeds(20, 40), fixed);
    EXPECT_EQ(totals.faults(), totals.counters.faults[i]);
    EXPECT_GT(totals.faults(), 0u) << sim::FaultName(*fixed.faults->begin());
  }
}

}  // namespace
}  // namespace alpheus::testing
