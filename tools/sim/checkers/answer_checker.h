// SPDX-License-Identifier: Apache-2.0
// answer_checker: whether what replicas tell those who open epochs is on their
// media when they tell it.
//
// Idea: a promise, an answer, a repair begun and an installation done are words
// that others build upon, so at that moment a power cut must not take back what
// they say. watched_replica.h calls this between the word and its way out.
//
// What is held, of the replica that speaks:
//   P-A4.2   the promise that it gives stands on its medium
//   P-INV-7  each record that it says to have is persistent there, as it is
//   P-INV-9  it says to have what is durable and lies on its medium, and so
//            never nacks that; it says to have proven what its medium proves
//   P-INV-12 with `repairing` on the medium it says so; BeginRepair put it
//            there
//   P-INV-9  nor what its medium proves to have had, and a fault took from it
//   P-INV-25 once a fence has failed it knows nothing, until it has installed
//            an epoch
//   P-INV-16 a blank one knows nothing, and nothing is installed on it
//   P-A8     nobody serves another region than its own replica
//   P-A4.3   log epoch, table and head of the answer are those of the medium
//   P-INV-3  a log that it says to have installed is the medium's log epoch
// What it can't see: what the opener makes of it; the history and the other
// checkers judge that.
// Thread safety: one thread.
// References: protocol P-A4, P-H6, P-H7, P-H9, P-H12.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_ANSWER_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_ANSWER_CHECKER_H_

#include <string>

#include "log/base/ids.h"
#include "log/core/ring/region_state.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/answer.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class AnswerChecker {
 public:
  explicit AnswerChecker(World& world) : world_(world) {}

  void Promised(int machine, const Promise& promise);
  void RepairBegan(int machine);
  void Answered(int machine, const Answer& answer);
  void Installed(int machine, Epoch epoch);

 private:
  // Of the log that is checked. Whoever is not, and takes part, must be blank.
  bool IsReplica(int machine);
  // What is ranked and judged by.
  void JudgeFrame(int machine, const Answer& answer, const RegionState& medium);
  void JudgeHeld(int machine, Lsn lsn, const HeldRecord& record);
  void Violate(int machine, const char* invariant, const std::string& what);

  World& world_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_ANSWER_CHECKER_H_
