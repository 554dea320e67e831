// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/membership.h"

#include "absl/strings/str_cat.h"

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

std::string CounterWarning(Epoch ballot) {
  const uint64_t counter = BallotCounter(ballot);
  if (counter <= kBallotCounterAlarm) return "";
  return absl::StrCat(
      "the ballots of the log count up to ", kBallotCounterMax, ", and are at ",
      counter,
      ". No number of openings gets there: a superline or the service's "
      "register was wrong. At the end the log can't be opened any more: move "
      "its records to a new log before");
}

bool IsFirst(const Membership& membership, const PrimaryId& process) {
  return membership.session().state == SessionState::kConnected &&
         !membership.candidates().empty() &&
         membership.candidates().front().primary == process;
}

}  // namespace alpheus::quorum
