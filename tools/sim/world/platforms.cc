// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/platforms.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/mix.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "replication/persist/plan/planner.h"

namespace alpheus::sim {

using replication::Platform;

namespace {

// Makes draws here independent of others.
constexpr uint64_t kPlatforms = 0x91a7f0135;

bool IsSimulated(const Platform& platform) {
  return platform.transport != replication::Transport::kIwarp &&
         platform.receive_buffers == replication::ReceiveBuffers::kDram;
}

// DMP, which loses most, as often as the others together.
Platform DrawOne(RandomSource& random) {
  Platform platform;
  const uint64_t domain = random.Below(4);
  if (domain == 2) platform.domain = replication::PersistenceDomain::kHierarchy;
  if (domain == 3) platform.domain = replication::PersistenceDomain::kSystem;
  platform.ddio = random.Below(2) == 0;
  if (random.Below(3) != 0)
    platform.transport = replication::Transport::kInfiniBand;
  return replication::MakeRecordPlan(platform).ok() ? platform : Platform();
}

}  // namespace

absl::StatusOr<Platform> SimulatedPlatform(const std::string& words) {
  ALPHEUS_ASSIGN_OR_RETURN(const Platform platform,
                           replication::ParsePlatform(words));
  if (!IsSimulated(platform)) {
    return absl::InvalidArgumentError(
        absl::StrCat("platform \"", words,
                     "\" is not simulated; take tcp or infiniband, and dram"));
  }
  ALPHEUS_RETURN_IF_ERROR(replication::MakeRecordPlan(platform).status());
  return platform;
}

std::vector<Platform> DrawPlatforms(uint64_t seed, int machines,
                                    const std::optional<Platform>& fixed) {
  const auto count = static_cast<size_t>(machines);
  if (fixed) return std::vector<Platform>(count, *fixed);
  Random random(Mix(seed, kPlatforms));
  std::vector<Platform> platforms(count);
  if (random.Below(4) == 0) return platforms;
  for (Platform& platform : platforms) platform = DrawOne(random);
  return platforms;
}

std::string PlatformsText(const std::vector<Platform>& platforms) {
  if (platforms.empty()) return "none";
  const bool is_one = std::ranges::all_of(
      platforms, [&](const Platform& other) { return other == platforms[0]; });
  if (is_one)
    return absl::StrCat("all ", replication::PlatformToString(platforms[0]));
  return absl::StrJoin(
      platforms, " ", [](std::string* text, const Platform& platform) {
        absl::StrAppend(text, replication::PlatformToString(platform));
      });
}

}  // namespace alpheus::sim
