// SPDX-License-Identifier: Apache-2.0
// sim_case: a seed with what is fixed of it: said on the command line, and made
// as short as it may be while it fails the same way.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_RUN_SIM_CASE_H_
#define ALPHEUS_TOOLS_SIM_RUN_SIM_CASE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "tools/sim/faults/faults.h"
#include "tools/sim/run/seed_runner.h"
#include "tools/sim/run/shrinker.h"
#include "tools/sim/world/options.h"

namespace alpheus::sim {

// "0-3,5": numbers of faults, without spaces. Empty for none.
std::string NumbersText(const std::set<uint32_t>& numbers);
// Nothing if the text is no such list.
std::optional<std::set<uint32_t>> ParseNumbers(std::string_view text);

// The command that runs the seed so.
std::string CommandLine(uint64_t seed, const Fixed& fixed);

std::string_view CanaryName(Canary canary);
std::optional<Canary> CanaryOfName(std::string_view name);

// The faults of the plan that are not left out.
std::vector<Fault> FaultsLeft(const RunOptions& options);

// The part of a run that the shrinker works on, and back.
ShrinkCase CaseOf(const RunOptions& options);
Fixed WithCase(uint64_t seed, const Fixed& fixed, const ShrinkCase& wanted);

// Whether a run that failed one way fails the same way.
bool IsSameViolation(const Violation& a, const std::optional<Violation>& b);

struct ShortestRun {
  Fixed fixed;
  Violation violation;
  int tries = 0;
};

// The shortest schedule that can be found in that time.
// Errors: as SeedRunner.
absl::StatusOr<ShortestRun> FindShortest(uint64_t seed, const Fixed& fixed,
                                         const Violation& violation,
                                         SeedRunner& runner, const Clock& clock,
                                         int64_t nanos_max);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_RUN_SIM_CASE_H_
