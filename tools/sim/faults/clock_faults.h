// SPDX-License-Identifier: Apache-2.0
// clock_faults: faults of one process's clock.
//
// Idea: the clock jumps ahead, by milliseconds or by up to an hour, as after a
// machine was suspended; or it runs fast or slow for a while. No promise may
// depend on how long something takes, and a caller learns by its own clock that
// a deadline has passed.
//
// Thread safety: one thread.
// References: process_clock.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_CLOCK_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_CLOCK_FAULTS_H_

#include "tools/sim/faults/faults.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Injects FaultKind::kClockJump.
bool InjectIntoClock(World& world, const Fault& fault);

// Makes all clocks run like the world's from now on.
void HealClocks(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_CLOCK_FAULTS_H_
