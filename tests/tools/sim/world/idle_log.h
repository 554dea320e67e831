// SPDX-License-Identifier: Apache-2.0
// idle_log: a log that a simulated application wrote to three replicas, all
// in sync, and that nobody writes any more; for tests that damage it then.
#ifndef ALPHEUS_TESTS_TOOLS_SIM_WORLD_IDLE_LOG_H_
#define ALPHEUS_TESTS_TOOLS_SIM_WORLD_IDLE_LOG_H_

#include "tests/tools/sim/world/checked_world.h"
#include "tests/tools/sim/world/medium.h"
#include "tools/sim/actors/primary_process.h"

namespace alpheus::sim {

class IdleLogTest : public CheckedWorldTest {
 protected:
  IdleLogTest();

  PrimaryProcess& primary() { return *world_.machine(0).primary; }
  Medium MediumOf(int machine) { return Medium(world_.machine(machine)); }
  // The last record, on machine 0's medium.
  RecordView LastRecord();
  // The place of the record's payload in the region.
  uint64_t PayloadOf(const RecordView& record) const;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TESTS_TOOLS_SIM_WORLD_IDLE_LOG_H_
