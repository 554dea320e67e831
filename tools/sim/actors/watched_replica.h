// SPDX-License-Identifier: Apache-2.0
// watched_replica: replicas whose words the state_report_checker hears first.
//
// Thread safety: as the watched object.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_WATCHED_REPLICA_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_WATCHED_REPLICA_H_

#include <memory>

#include "recovery/replica/openers_replica.h"
#include "recovery/server/served_log.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Wraps the replica of that machine's node.
std::unique_ptr<recovery::ServedLog> Watch(
    World& world, int machine, std::unique_ptr<recovery::ServedLog> log);
// Wraps the replica of that machine's primary.
std::unique_ptr<recovery::OpenersReplica> Watch(
    World& world, int machine,
    std::unique_ptr<recovery::OpenersReplica> replica);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_WATCHED_REPLICA_H_
