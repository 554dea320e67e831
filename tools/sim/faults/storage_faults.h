// SPDX-License-Identifier: Apache-2.0
// storage_faults: regions that are not what they were when a machine comes
// back.
//
// Idea: each begins with a cut of the power, if there is some, so that nobody
// has the region open; then something happens to the file or to its bytes, as
// far as the budget goes; then the power is back. Files that are only not in
// their places are put back later.
//
// Thread safety: one thread.
// References: protocol P-A8; region_store.h, fault_budget.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_STORAGE_FAULTS_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_STORAGE_FAULTS_H_

#include "tools/sim/faults/faults.h"

namespace alpheus::sim {

// As Inject.
bool InjectIntoStorage(World& world, const Fault& fault);

// All files are put back, and what was still to happen does not.
void EndStorageFaults(World& world);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_STORAGE_FAULTS_H_
