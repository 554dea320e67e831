// SPDX-License-Identifier: Apache-2.0
// sim_case: a seed with its fixed parameters: printed as a command line, and
// shortened as far as it still fails in the same way.
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

// Returns numbers of faults as "0-3,5", without spaces. Empty for none.
std::string NumbersText(const std::set<uint32_t>& numbers);
// Parses such a list; nothing if the text is none.
std::optional<std::set<uint32_t>> ParseNumbers(std::string_view text);

// Returns the command that runs the seed with these parameters.
std::string CommandLine(uint64_t seed, const Fixed& fixed);

std::string_view CanaryName(Canary canary);
std::optional<Canary> CanaryOfName(std::string_view name);

// Returns the faults of the plan that are not left out.
std::vector<Fault> FaultsLeft(const RunOptions& options);

// Convert the part of a run that the shrinker works on.
ShrinkCase CaseOf(const RunOptions& options);
Fixed WithCase(uint64_t seed, const Fixed& fixed, const ShrinkCase& wanted);

// Returns whether a run fails in the same way.
bool IsSameViolation(const Violation& a, const std::optional<Violation>& b);

struct ShortestRun {
  Fixed fixed;
  Violation violation;
  int tries = 0;
};

// Searches the shortest schedule within that time.
// Errors: as SeedRunner.
absl::StatusOr<ShortestRun> FindShortest(uint64_t seed, const Fixed& fixed,
                                         const Violation& violation,
                                         SeedRunner& runner, const Clock& clock,
                                         int64_t nanos_max);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_RUN_SIM_CASE_H_
