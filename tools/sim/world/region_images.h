// SPDX-License-Identifier: Apache-2.0
// region_images: what the regions of a cluster were some time ago, for whoever
// restores one from a copy.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_REGION_IMAGES_H_
#define ALPHEUS_TOOLS_SIM_WORLD_REGION_IMAGES_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "tools/sim/faults/region_damage.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class RegionImages {
 public:
  static constexpr size_t kImagesMax = 6;

  explicit RegionImages(World& world)
      : world_(world), images_(world.machines().size()) {}

  // Copies all media as a power cut would leave them now.
  void Take();
  // The machine has another replica now.
  void Forget(int machine) { images_[static_cast<size_t>(machine)].clear(); }
  // Those of one machine, the oldest first.
  const std::deque<RegionImage>& of(int machine) const {
    return images_[machine];
  }

 private:
  World& world_;
  std::vector<std::deque<RegionImage>> images_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_REGION_IMAGES_H_
