// SPDX-License-Identifier: Apache-2.0
// choice_checker: whether the log that an opening shows may end where it ends.
//
// Idea: all answers of replicas are heard before they are on their way
// (answer_checker.h), and the rule of the end is written down a second time,
// from the protocol's text: LSN end is dropped only if N - W + 1 replicas say
// that nobody was told of it.
//
// What is held, of each opening that shows its log:
//   P-INV-2  so many replicas that promised the epoch, members of the
//            configuration that was found and not suspect, nacked the first LSN
//            that is not shown, or are blank
// What it can't see: which answers were there when it was chosen; of those that
// came later one may have been the last nack; and the end of a log whose
// highest epoch was answered too late, or not ranked highest. Thread safety:
// one thread. References: protocol P-A4.4, P-H2, P-INV-2;
// recovery/opening/chooser.h.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_CHOICE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_CHOICE_CHECKER_H_

#include <map>
#include <utility>

#include "log/base/ids.h"
#include "recovery/protocol/answer.h"
#include "tools/sim/world/referee.h"

namespace alpheus::sim {

class ChoiceChecker {
 public:
  explicit ChoiceChecker(Referee& referee) : referee_(referee) {}

  // That machine has promised the epoch, and answers whoever opens it.
  void Answered(int machine, Epoch promised, const Answer& answer) {
    answers_[promised].insert_or_assign(machine, answer);
  }
  // The epoch is shown. `previous`: the log epoch that ranked highest; `found`:
  // its configuration, by whose `write_quorum` its records became durable.
  void Opened(Epoch epoch, Epoch previous, Lsn end, const Configuration& found,
              int write_quorum);

 private:
  Referee& referee_;
  std::map<Epoch, std::map<int, Answer>> answers_;  // by promise, by machine
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CHOICE_CHECKER_H_
