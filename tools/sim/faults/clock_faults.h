// SPDX-License-Identifier: Apache-2.0
// clock_faults: what happens to the clock of one process.
//
// Idea: it jumps ahead, by milliseconds or by up to an hour, as after a machine
// was suspended; or it runs fast or slow for a while. Nothing that is promised
// may rest on how long something takes, and whoever is told that a deadline has
// passed is told so by his own clock.
//
// Thread safety: one thread.
// References: process_clock.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_CLOCK_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_CLOCK_FAULTS_H_

#include "tools/sim/faults/faults.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// As Inject, of FaultKind::kClockJump.
bool InjectIntoClock(World& world, const Fault& fault);

// All clocks go as the world's from now on.
void HealClocks(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_CLOCK_FAULTS_H_
