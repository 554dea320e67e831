// SPDX-License-Identifier: Apache-2.0
// state_report_checker: checks that the words of replicas to openers are on
// their media when they are said.
//
// Idea: others build upon a promise, a state report, a begun repair and a
// finished installation. So at that moment a power cut must not undo what they
// say. watched_replica.h calls this between the word and its sending.
//
// Checked, for the replica that speaks:
//   P-A4.2   the promise that it gives is on its medium
//   P-INV-7  each record that it claims to have is persistent there, unchanged;
//            but for records before its place that a fault took (DMG1 of
//            damage_checker.h)
//   P-INV-9  it claims every durable record on its medium, so it never nacks
//            one; it claims everything that its medium proves
//   P-INV-9  it nacks no record that its medium proves and a fault destroyed
//   P-INV-12 if its medium is marked `repairing` it says so; BeginRepair has
//            marked it
//   P-INV-16 a blank replica knows nothing, and nothing is installed on it
//   P-INV-25 after a failed fence it knows nothing until it has installed an
//            epoch
//   P-A8     no process serves another region than its own replica
//   P-A4.3   log epoch, table and head of the report are those of the medium
//   P-INV-3  the log that it claims to have installed is the medium's log epoch
// Not seen: the opener's conclusions; the history and the other checkers judge
// those.
// Thread safety: one thread.
// References: protocol P-A4, P-H6, P-H7, P-H9, P-H12.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_STATE_REPORT_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_STATE_REPORT_CHECKER_H_

#include <string>

#include "log/base/ids.h"
#include "log/core/ring/region_state.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/state_report.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class StateReportChecker {
 public:
  explicit StateReportChecker(World& world) : world_(world) {}

  void Promised(int machine, const quorum::Promise& promise);
  void RepairBegan(int machine);
  void Reported(int machine, const recovery::StateReport& report);
  void Installed(int machine, Epoch epoch);

 private:
  // Returns whether the machine has a replica of the checked log. A participant
  // that has none must be blank.
  bool IsReplica(int machine);
  // Judges the fields that rank a report.
  void JudgeFrame(int machine, const recovery::StateReport& report,
                  const RegionState& medium);
  void JudgePlace(int machine, const recovery::StateReport& report,
                  const RegionState& medium);
  void JudgeRecord(int machine, Lsn lsn,
                   const recovery::ReportedRecord& record);
  void Violate(int machine, const char* invariant, const std::string& what);

  World& world_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_STATE_REPORT_CHECKER_H_
