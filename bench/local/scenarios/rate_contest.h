// SPDX-License-Identifier: Apache-2.0
// rate_contest: records per second of several threads, candidates and numbers
// of threads by turns.
#ifndef ALPHEUS_BENCH_LOCAL_SCENARIOS_RATE_CONTEST_H_
#define ALPHEUS_BENCH_LOCAL_SCENARIOS_RATE_CONTEST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/local/candidates/contestants.h"
#include "bench/local/scenarios/scenarios.h"

namespace alpheus::bench {

// Each candidate with each number of threads in each round; the sample is the
// median of the round's slices that were disturbed least. Adds to the report
// one measurement for each pair.
absl::Status MeasureRates(const Settings& settings, const std::string& scenario,
                          const Candidates& candidates,
                          const std::vector<int>& threads, uint64_t bytes,
                          Report* report);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_SCENARIOS_RATE_CONTEST_H_
