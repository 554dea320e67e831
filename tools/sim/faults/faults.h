// SPDX-License-Identifier: Apache-2.0
// faults: the faults of a run's machines, and their times.
//
// Idea: the plan is drawn before the run, each fault from the seed and its own
// number alone. So a run can be repeated without some of them, to find the
// shortest schedule.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_FAULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/sim/faults/breakpoint.h"
#include "tools/sim/world/options.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

struct Fault {
  uint32_t number = 0;
  FaultKind kind = FaultKind::kKillPrimary;
  int64_t at_ns = 0;     // virtual time
  uint64_t machine = 0;  // drawn wide: reduced to a machine there is
  uint64_t other = 0;
  int64_t lasts_ns = 0;
  // Calls of the persistence primitive until it strikes, of those that it aims
  // at; 0: now.
  uint64_t calls = 0;
  BreakpointAim aim = BreakpointAim::kAnyCall;
};

std::vector<Fault> DrawFaults(const RunOptions& options);
std::string Describe(const Fault& fault);

// Starts the fault, which ends after its time. Returns false if there was
// nothing for it to strike.
bool Inject(World& world, const Fault& fault);

// Ends all lasting faults: power, links, pauses.
void Heal(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_FAULTS_H_
