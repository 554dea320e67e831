// SPDX-License-Identifier: Apache-2.0
// opening_cleanup: moves the head of a chosen log before its epoch is
// installed.
//
// Idea: an opening adds an entry to the epoch table. A log whose table is full
// can't be opened, and a log that is not open can't be cleaned. So the opening
// itself cleans the records that an operator names. Epochs that own nothing
// from the new head on leave the table. Each replica gets the new head in the
// superline update that sets the epoch. If the installation is cut off, the log
// has the head of the highest epoch that was installed anywhere, as after any
// head update (P-A4.4).
//
// Invariants:
//   OC1. The head moves over chosen records only, to the place and chain after
//        the last of them (P-L10, CH3 of chooser.h).
// Thread safety: pure.
// References: protocol P-A2, P-A4.4, P-A6; local_opening.h does this for a log
// on one node.
#ifndef ALPHEUS_RECOVERY_OPENING_OPENING_CLEANUP_H_
#define ALPHEUS_RECOVERY_OPENING_OPENING_CLEANUP_H_

#include <span>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "recovery/opening/chooser.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// Moves the head of `decision` past `through`, unless it is further already.
// Requires: `decision` was chosen from these reports. Errors: OutOfRange
// (`through` was never assigned; nothing was changed).
absl::Status CleanThrough(Lsn through, std::span<const StateReport> reports,
                          Decision& decision);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_OPENING_CLEANUP_H_
