// SPDX-License-Identifier: Apache-2.0
// faults: what happens to the machines of a run, and when.
//
// Idea: the plan is drawn before the run, one fault after the other, each from
// the seed and its own number alone; so that a run can be had again with some
// of them left out, and the shortest schedule be looked for.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_FAULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/sim/faults/trap.h"
#include "tools/sim/world/options.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

struct Fault {
  uint32_t number = 0;
  FaultKind kind = FaultKind::kKillPrimary;
  int64_t at_ns = 0;     // virtual time
  uint64_t machine = 0;  // drawn wide: whichever it means of those there are
  uint64_t other = 0;
  int64_t lasts_ns = 0;
  // Of the persistence primitive until it strikes, such as it aims at; 0: now.
  uint64_t calls = 0;
  TrapAim aim = TrapAim::kAnyCall;
};

std::vector<Fault> DrawFaults(const RunOptions& options);
std::string Describe(const Fault& fault);

// Lets the fault happen, and end after its time. False: there was nothing for
// it to strike.
bool Inject(World& world, const Fault& fault);

// Ends all that lasts: power, links, pauses.
void Heal(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_FAULTS_H_
