// SPDX-License-Identifier: Apache-2.0
// calm_checker: what must not happen where nothing happens to anybody: no fault
// strikes, and no connection breaks.
//
// What is held, of one primary and of the network:
//   P-A3.3   a replica that is in sync stays it, unless somebody else opens the
//            log: a service may let another machine go first in good order
//   P-INV-R1 no message comes without a credit, that is, without a receive that
//            waits for it
// Thread safety: one thread.
// References: protocol P-A3.3, P-R1.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_CALM_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_CALM_CHECKER_H_

#include <cstdint>

#include "tools/sim/world/options.h"
#include "tools/sim/world/referee.h"

namespace alpheus::sim {

class CalmChecker {
 public:
  CalmChecker(Referee& referee, const RunOptions& options)
      : referee_(referee), is_calm_(IsCalm(options)) {}

  // So many replicas of the primary are in sync now. `has_rival`: another
  // process was there, or came, since the primary was started.
  void InSync(uint32_t replicas, bool has_rival);
  // So many messages came without a credit.
  void WithoutCredit(uint64_t messages);

 private:
  Referee& referee_;
  const bool is_calm_;
  uint32_t in_sync_ = 0;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CALM_CHECKER_H_
