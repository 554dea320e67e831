// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/membership_events.h"

#include <algorithm>
#include <utility>

namespace alpheus::quorum {

void MembershipEvents::Note(MembershipEvent event) {
  if (std::ranges::find(events_, event) == events_.end()) {
    events_.push_back(event);
  }
}

std::vector<MembershipEvent> MembershipEvents::Take() {
  return std::exchange(events_, {});
}

}  // namespace alpheus::quorum
