// SPDX-License-Identifier: Apache-2.0
// platforms: what keeps records on the machines of a run.
//
// Idea: each machine has a platform of its own, which its node declares and
// which is the truth; the production planner chooses the method by it. Only
// such are drawn for which a method is built in and that the simulated network
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

// The words of platform.h. Errors: InvalidArgument (those of ParsePlatform; a
// platform that is not simulated); Unimplemented (no method persists records
// there).
absl::StatusOr<Platform> SimulatedPlatform(const std::string& words);

// One for each machine with a replica; in every fourth run the weakest for all.
std::vector<Platform> DrawPlatforms(uint64_t seed, int machines,
                                    const std::optional<Platform>& fixed);

// "all dmp,ddio,..." or those that differ, by machine.
std::string PlatformsText(const std::vector<Platform>& platforms);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_PLATFORMS_H_
