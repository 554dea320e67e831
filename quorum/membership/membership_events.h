// SPDX-License-Identifier: Apache-2.0
// membership_events: what a Membership has to tell its owner, until it is asked
// for it.
//
// Thread safety: none; belongs to whoever polls the membership.
// References: membership.h.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_EVENTS_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_EVENTS_H_

#include <vector>

#include "quorum/membership/membership.h"

namespace alpheus {

class MembershipEvents {
 public:
  void Note(MembershipEvent event);
  // Since the last time, each kind once, in the order in which they came.
  std::vector<MembershipEvent> Take();

 private:
  std::vector<MembershipEvent> events_;
};

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_EVENTS_H_
