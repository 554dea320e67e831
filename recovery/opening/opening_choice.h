// SPDX-License-Identifier: Apache-2.0
// opening_choice: decides from the reports how an opening goes on: it chooses a
// log and a configuration, waits for more reports, or ends.
//
// Idea: chooser.h chooses the log, opening_quorums.h says whose promises count.
// This joins the two with the list of members that the process was given. The
// log's configuration must be that list's, or in a change one of the two lists.
//
// Thread safety: pure.
// References: protocol P-A4.4, P-A5; chooser.h, opening_quorums.h.
#ifndef ALPHEUS_RECOVERY_OPENING_OPENING_CHOICE_H_
#define ALPHEUS_RECOVERY_OPENING_OPENING_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/members/configuration.h"
#include "recovery/opening/chooser.h"
#include "recovery/opening/opening_quorums.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// The list of members that the process was given; in a change the new one.
struct GivenMembers {
  std::vector<NodeId> nodes;
  quorum::QuorumSizes sizes;
  uint64_t configuration_id = 1;
  const MembersChange* change = nullptr;  // nullptr: no change
};

struct OpeningChoice {
  bool is_chosen = false;
  std::string wait_reason;  // why more reports are needed, if it is not
  Decision decision;
  Configuration target;  // configuration to be installed
  Promises promises;
};

// Errors: as Choose; FailedPrecondition (the log has another list of members).
absl::StatusOr<OpeningChoice> ChooseForOpening(
    const GivenMembers& given, const std::vector<StateReport>& reports);

// Returns the error for a list of members that is newer than configuration
// `found`, which the log has. `expected`: id of the list from which an opening
// or a change starts.
absl::Status MembersAreNotYet(bool is_change, uint64_t found,
                              uint64_t expected);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_OPENING_CHOICE_H_
