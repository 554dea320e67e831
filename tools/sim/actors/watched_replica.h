// SPDX-License-Identifier: Apache-2.0
// watched_replica: replicas whose words the answer_checker hears before anybody
// else does.
//
// Thread safety: as what is watched.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_WATCHED_REPLICA_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_WATCHED_REPLICA_H_

#include <memory>

#include "recovery/replica/own_replica.h"
#include "recovery/server/served_log.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Of the node of that machine.
std::unique_ptr<ServedLog> Watch(World& world, int machine,
                                 std::unique_ptr<ServedLog> log);
// Of the primary of that machine.
std::unique_ptr<OwnReplica> Watch(World& world, int machine,
                                  std::unique_ptr<OwnReplica> replica);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_WATCHED_REPLICA_H_
