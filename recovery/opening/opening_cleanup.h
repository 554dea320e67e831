// SPDX-License-Identifier: Apache-2.0
// opening_cleanup: moves the head of a log that was chosen, before its epoch is
// installed.
//
// Idea: an opening adds an entry to the epoch table, and one that has no more
// room can't be opened, so that nobody could clean it. The records that an
// operator names are cleaned by the opening itself: the installation brings the
// new head to each replica in the superline update that sets the epoch, and the
// epochs that own nothing behind it leave. Cut off, the log has the head of the
// highest epoch that was installed anywhere, as after any head update (P-A4.4).
//
// Invariants:
//   OC1. The head moves over chosen records only, to the place and chain behind
//        the last of them (P-L10, CH3 of chooser.h).
// Thread safety: pure.
// References: protocol P-A2, P-A4.4, P-A6; local_opening.h has the same for a
// log on one node.
#ifndef ALPHEUS_RECOVERY_OPENING_OPENING_CLEANUP_H_
#define ALPHEUS_RECOVERY_OPENING_OPENING_CLEANUP_H_

#include <span>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "recovery/opening/chooser.h"
#include "recovery/protocol/answer.h"

namespace alpheus {

// The head of `decision` is behind `through`, or where it was if that is later.
// Requires: `decision` was chosen from these answers. Errors: OutOfRange
// (`through` was never given; nothing was changed).
absl::Status CleanThrough(Lsn through, std::span<const Answer> answers,
                          Decision& decision);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_OPENING_OPENING_CLEANUP_H_
