// SPDX-License-Identifier: Apache-2.0
// choice_checker: checks that the log that an opening shows may end where it
// ends.
//
// Idea: all state reports of replicas are recorded before they are sent
// (state_report_checker.h). The rule of the end is written a second time, from
// the protocol's text: an LSN is cut only if N - W + 1 replicas say that they
// never acknowledged it.
//
// Checked, for each opening that shows its log:
//   P-INV-2  N - W + 1 replicas have nacked the first LSN that is not shown, or
//            are blank. They have promised the epoch, are members of the
//            configuration that was found, and are not suspect
// Not seen: which reports had come when the end was chosen (one that came later
// may have been the last nack); and the end of a log whose highest epoch was
// reported too late, or not ranked highest.
// Thread safety: one thread.
// References: protocol P-A4.4, P-H2, P-INV-2; recovery/opening/chooser.h.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_CHOICE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_CHOICE_CHECKER_H_

#include <map>
#include <utility>

#include "log/base/ids.h"
#include "recovery/protocol/state_report.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

class ChoiceChecker {
 public:
  explicit ChoiceChecker(Oracle& oracle) : oracle_(oracle) {}

  // Notes that the machine has promised the epoch, and answers its opener.
  void Reported(int machine, Epoch promised,
                const recovery::StateReport& report) {
    reports_[promised].insert_or_assign(machine, report);
  }
  // Judges an epoch that is shown. `previous`: the log epoch that ranked
  // highest; `found`: its configuration, by whose `write_quorum` its records
  // became durable.
  void Opened(Epoch epoch, Epoch previous, Lsn end, const Configuration& found,
              int write_quorum);

 private:
  Oracle& oracle_;
  std::map<Epoch, std::map<int, recovery::StateReport>>
      reports_;  // by promise, by machine
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CHOICE_CHECKER_H_
