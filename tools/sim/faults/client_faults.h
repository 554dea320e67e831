// SPDX-License-Identifier: Apache-2.0
// client_faults: allowed, but hard, behaviour of a log's clients.
//
// Idea: nobody cleans and all append, so that the ring fills. A thread keeps a
// reserved record, so that no later record becomes durable, and all others hit
// the exposure cap.
//
// Thread safety: one thread.
// References: protocol P-F1, P-F6; workload.h, wal_workload.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_CLIENT_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_CLIENT_FAULTS_H_

#include "tools/sim/faults/faults.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Injects FaultKind::kFullRing and kKeepReservation. They count once a call
// found the ring full, and once the record is reserved.
bool InjectIntoClients(World& world, const Fault& fault);

// Ends these faults.
void CalmClients(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_CLIENT_FAULTS_H_
