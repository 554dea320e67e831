// SPDX-License-Identifier: Apache-2.0
// storage_faults: changes of regions while their machine is down.
//
// Idea: each fault first cuts the power, if there is some, so that nobody has
// the region open. Then the file or its bytes change, as far as the budget
// allows; then the power is back. Misplaced files are put back later.
//
// Thread safety: one thread.
// References: protocol P-A8; region_store.h, fault_budget.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_STORAGE_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_STORAGE_FAULTS_H_

#include "tools/sim/faults/faults.h"

namespace alpheus::sim {

// Injects a fault.
bool InjectIntoStorage(World& world, const Fault& fault);

// Puts all files back, and cancels pending faults.
void EndStorageFaults(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_STORAGE_FAULTS_H_
