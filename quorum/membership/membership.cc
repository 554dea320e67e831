// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/membership.h"

namespace alpheus::quorum {

std::string_view NameOf(SessionState state) {
  switch (state) {
    case SessionState::kConnecting:
      return "connecting";
    case SessionState::kConnected:
      return "connected";
    case SessionState::kSuspended:
      return "suspended";
    case SessionState::kExpired:
      return "expired";
  }
  return "?";
}

bool IsFirst(const Membership& membership, const PrimaryId& process) {
  return membership.session().state == SessionState::kConnected &&
         !membership.candidates().empty() &&
         membership.candidates().front().primary == process;
}

}  // namespace alpheus::quorum
