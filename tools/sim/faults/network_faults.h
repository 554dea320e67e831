// SPDX-License-Identifier: Apache-2.0
// network_faults: what happens to links and adapters for a while.
//
// Idea: a link holds back what is sent, one way or both, or is slow. An adapter
// has no receives left, so that what comes is tried again and then refused, its
// last part at least; or its completion queue is too short, and one completion
// too many breaks all of its connections. Neither happens to an adapter that is
// used as it should be: these are what others do who share it. Or one bit of
// what is written to a replica, or of a message of either end, is another one,
// where the link checks nothing.
//
// Thread safety: one thread.
// References: sim_network.h; fabric.h, FB6 and FB9; protocol P-R1, P-R3.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_NETWORK_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_NETWORK_FAULTS_H_

#include "tools/sim/faults/faults.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// As Inject, of FaultKind::kCutLink to kOverrunQueue, and kFlipInTransit. What
// happens to an adapter counts once it struck something.
bool InjectIntoNetwork(World& world, const Fault& fault);

// Ends all of them but cuts, which World::MendLink does.
void EndNetworkFaults(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_NETWORK_FAULTS_H_
