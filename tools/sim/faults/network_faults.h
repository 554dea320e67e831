// SPDX-License-Identifier: Apache-2.0
// network_faults: temporary faults of links and adapters.
//
// Idea: a link holds back messages, one way or both, or is slow. An adapter has
// no receives left, so that messages are retried and then refused, at least the
// last part; or its completion queue is too short, and one completion too many
// breaks all its connections. A correctly used adapter has neither: other
// programs that share it cause them. Or one bit of a write to a replica, or of
// a message, is flipped, on a link without a check of its own.
//
// Thread safety: one thread.
// References: sim_network.h; fabric.h, FB6 and FB9; protocol P-R1, P-R3.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_NETWORK_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_NETWORK_FAULTS_H_

#include "tools/sim/faults/faults.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Injects FaultKind::kCutLink to kOverrunQueue, and kFlipInTransit. Faults of
// an adapter count once they struck something.
bool InjectIntoNetwork(World& world, const Fault& fault);

// Ends all of them except cuts, which World::RestoreLink ends.
void EndNetworkFaults(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_NETWORK_FAULTS_H_
