// SPDX-License-Identifier: Apache-2.0
// client_faults: what clients of a log do that is hard on it, though they may.
//
// Idea: nobody cleans and all append, so that the ring gets full; a thread
// reserves a record and goes away with it, so that nothing behind it becomes
// durable, and all others run into what may be exposed.
//
// Thread safety: one thread.
// References: protocol P-F1, P-F6; workload.h, wal_workload.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_CLIENT_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_CLIENT_FAULTS_H_

#include "tools/sim/faults/faults.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// As Inject, of FaultKind::kFullRing and kKeepReservation. They count once a
// call found the ring full, and once the record is reserved.
bool InjectIntoClients(World& world, const Fault& fault);

// Clients are themselves again.
void CalmClients(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_CLIENT_FAULTS_H_
