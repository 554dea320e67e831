// SPDX-License-Identifier: Apache-2.0
// run: one seed, from the first event to the verdict.
//
// *Safety*: faults happen, clients work, a log without a primary gets one.
// *Liveness*: a core of the replicas is healed (surviving_core.h), then
// everything; each time the log must open and become durable again in bounded
// virtual time (P-C8). *End*: the replicas that are in sync must have the same
// bytes.
//
// Thread safety: one thread; several runs at once only in several processes.
#ifndef ALPHEUS_TOOLS_SIM_RUN_RUN_H_
#define ALPHEUS_TOOLS_SIM_RUN_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "tools/sim/world/options.h"
#include "tools/sim/world/oracle.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

struct RunResult {
  std::optional<Violation> violation;
  World::Counters counters;
  uint64_t acknowledged = 0;  // records
  int64_t virtual_ns = 0;
};

// Runs a seed. `trace`, if set, gets a line per event.
RunResult RunSeed(const RunOptions& options,
                  const std::function<void(std::string_view)>& trace);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_RUN_RUN_H_
