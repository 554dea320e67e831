// SPDX-License-Identifier: Apache-2.0
// sim_seeds: many seeds in a test, and what they must come to.
#ifndef ALPHEUS_TESTS_TOOLS_SIM_RUN_SIM_SEEDS_H_
#define ALPHEUS_TESTS_TOOLS_SIM_RUN_SIM_SEEDS_H_

#include <cstdint>
#include <string>

#include "tools/sim/run/totals.h"
#include "tools/sim/world/options.h"

namespace alpheus::testing {

// Whether ALPHEUS_ALL_SEEDS is set: the deep ring has the time.
bool AllSeedsAreAskedFor();

// Whether all seeds run. A sanitizer that looks at memory takes seven times as
// long: with it a third runs, too few to ask for what is rare, unless
// all are asked for.
bool AllSeedsRun();

// Runs the seeds; fails for each that violates anything, with the command that
// repeats it.
sim::Totals ExpectGood(uint64_t first_seed, uint64_t seeds,
                       const sim::Fixed& fixed);

// All N from 1 to 5 and all W, with so many seeds each.
sim::Totals ExpectGoodOfAllSizes(uint64_t first_seed, uint64_t seeds);

// Prints what was done, and expects faults and calls enough for it to count.
void JudgeTotals(const sim::Totals& totals);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TOOLS_SIM_RUN_SIM_SEEDS_H_
