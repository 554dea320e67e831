// SPDX-License-Identifier: Apache-2.0
// membership_faults: what happens to the membership service of a run, and to a
// machine's links to it.
//
// Thread safety: one thread.
// References: membership_service.h; faults.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_MEMBERSHIP_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_MEMBERSHIP_FAULTS_H_

#include "tools/sim/faults/faults.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// As Inject. Cuts and delays count when they first take something.
// Requires: IsOfMembership(fault.kind).
bool InjectIntoMembership(World& world, const Fault& fault);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_MEMBERSHIP_FAULTS_H_
