// SPDX-License-Identifier: Apache-2.0
// mark_checker: checks that both ends of the log on a medium only move forward.
//
// Idea: the watermark says what was persisted, the head what is no longer
// needed. Both are read from the persistent image after each fence that changed
// one of their lines.
//
// Checked, for each medium:
//   P-A3.5  within one log epoch the LSN that its watermarks prove never goes
//           back, over sessions, restarts and power cuts
//   P-A6    within one log epoch its head never goes back; only an installation
//           may lower it, since no other replica may know of it
// Not seen: whether the watermark is true; epoch_checker.h checks that.
// Thread safety: one thread.
// References: protocol P-A3.5, P-A6, P-L9.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_MARK_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_MARK_CHECKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/base/ids.h"
#include "log/format/watermark.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

class MarkChecker {
 public:
  MarkChecker(Oracle& oracle, Uuid log_id, size_t machines)
      : oracle_(oracle), log_id_(log_id), seen_(machines) {}

  // Notes log epoch and head in a machine's superline.
  void OnSuperline(int machine, Epoch log_epoch, Lsn head);
  // Checks the watermarks of that medium.
  void Check(int machine, std::span<const std::byte> medium);
  // Notes that the medium is another one.
  void Forget(int machine) { seen_[machine] = {}; }
  // Returns the head on that medium.
  Lsn head(int machine) const {
    return seen_[static_cast<size_t>(machine)].head;
  }
  // Returns the highest LSN before which no log begins on `write_quorum` of the
  // media with these heads.
  static Lsn DurableHead(std::vector<Lsn> heads, int write_quorum);

  uint64_t checks() const { return checks_; }

 private:
  struct Seen {
    Epoch log_epoch;
    Lsn head = Lsn(0);
    Lsn proven = Lsn(0);
    std::array<WatermarkFormat, 2> lines = {};
  };

  Oracle& oracle_;
  const Uuid log_id_;
  std::vector<Seen> seen_;
  uint64_t checks_ = 0;  // checks of changed lines
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_MARK_CHECKER_H_
