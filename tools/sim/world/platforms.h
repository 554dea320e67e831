// SPDX-License-Identifier: Apache-2.0
// platforms: the platforms of a run's machines.
//
// Idea: each machine has a platform of its own, which its node declares
// truthfully; the production planner chooses the method by it. Only platforms
// are drawn for which a method is built in and which the simulated network
// knows: no iWARP, and receive buffers in DRAM, where sessions post them.
//
// Thread safety: pure functions.
// References: platform.h, planner.h, staged_memory.h.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_PLATFORMS_H_
#define ALPHEUS_TOOLS_SIM_WORLD_PLATFORMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::sim {

// Parses the words of platform.h. Errors: InvalidArgument (as ParsePlatform; a
// platform that is not simulated); Unimplemented (no method persists records
// there).
absl::StatusOr<replication::Platform> SimulatedPlatform(
    const std::string& words);

// Draws one for each machine with a replica; in every fourth run the weakest
// for all.
std::vector<replication::Platform> DrawPlatforms(
    uint64_t seed, int machines,
    const std::optional<replication::Platform>& fixed);

// Returns "all dmp,ddio,..." or those that differ, by machine.
std::string PlatformsText(const std::vector<replication::Platform>& platforms);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_PLATFORMS_H_
