// SPDX-License-Identifier: Apache-2.0
// totals: what many seeds came to.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_RUN_TOTALS_H_
#define ALPHEUS_TOOLS_SIM_RUN_TOTALS_H_

#include <cstdint>
#include <string>

#include "tools/sim/run/seed_runner.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

struct Totals {
  uint64_t seeds = 0;
  uint64_t violated = 0;
  World::Counters counters;
  uint64_t acknowledged = 0;
  int64_t virtual_ns = 0;
  int64_t cpu_ns = 0;  // of all processors

  void Add(const SeedOutcome& outcome);

  uint64_t faults() const;  // that took effect, of all classes
  double PerSeed(uint64_t count) const;
  double PerCpuSecond(uint64_t count) const;
};

// Several lines.
std::string Describe(const Totals& totals);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_RUN_TOTALS_H_
