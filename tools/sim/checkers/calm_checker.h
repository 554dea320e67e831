// SPDX-License-Identifier: Apache-2.0
// calm_checker: checks what must not happen while no fault strikes and no
// connection breaks.
//
// Checked, for one primary and for the network:
//   P-A3.3   a replica in sync stays in sync, unless another process opens the
//            log: a service may let another machine go first in good order
//   P-INV-R1 no message comes without a credit, that is, without a waiting
//            receive
// Thread safety: one thread.
// References: protocol P-A3.3, P-R1.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_CALM_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_CALM_CHECKER_H_

#include <cstdint>

#include "tools/sim/world/options.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

class CalmChecker {
 public:
  CalmChecker(Oracle& oracle, const RunOptions& options)
      : oracle_(oracle), is_calm_(IsCalm(options)) {}

  // Notes the number of replicas in sync with the primary. `has_rival`: another
  // process was there, or came, since the primary was started.
  void InSync(uint32_t replicas, bool has_rival);
  // Notes the number of messages without a credit.
  void WithoutCredit(uint64_t messages);

 private:
  Oracle& oracle_;
  const bool is_calm_;
  uint32_t in_sync_ = 0;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CALM_CHECKER_H_
