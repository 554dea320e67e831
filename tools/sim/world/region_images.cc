// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/region_images.h"

#include "tools/sim/world/region_store.h"

namespace alpheus::sim {

void RegionImages::Take() {
  for (size_t i = 0; i < images_.size(); ++i) {
    const int machine = static_cast<int>(i);
    const auto* const medium = world_.store().medium(machine);
    if (medium == nullptr || world_.store().IsHurt(machine)) continue;
    images_[i].push_back(medium->CutKeepingNone());
    if (images_[i].size() > kImagesMax) images_[i].pop_front();
  }
}

}  // namespace alpheus::sim
