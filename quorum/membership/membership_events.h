// SPDX-License-Identifier: Apache-2.0
// membership_events: the events that a Membership has for its owner, until the
// owner takes them.
//
// Thread safety: none; belongs to the thread that polls the membership.
// References: membership.h.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_EVENTS_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_EVENTS_H_

#include <vector>

#include "quorum/membership/membership.h"

namespace alpheus::quorum {

class MembershipEvents {
 public:
  void Note(MembershipEvent event);
  // Returns events since the last call, each kind once, in the order in which
  // they came.
  std::vector<MembershipEvent> Take();

 private:
  std::vector<MembershipEvent> events_;
};

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_EVENTS_H_
