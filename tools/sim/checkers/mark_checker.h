// SPDX-License-Identifier: Apache-2.0
// mark_checker: whether what a medium says of its log's two ends only moves
// forward.
//
// Idea: the watermark says what was persisted, the head what is no longer
// needed. Both are read from the persistent image after each fence that changed
// a line of them.
//
// What is held, of each medium:
//   P-A3.5  within one log epoch the LSN that its watermarks prove never goes
//           back, over sessions, restarts and power cuts
//   P-A6    within one log epoch its head never goes back; an installation may
//           take it back, as nobody else may know of it
// What it can't see: whether the watermark is true; epoch_checker.h looks at
// that.
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
#include "tools/sim/world/referee.h"

namespace alpheus::sim {

class MarkChecker {
 public:
  MarkChecker(Referee& referee, Uuid log_id, size_t machines)
      : referee_(referee), log_id_(log_id), seen_(machines) {}

  // Its superline says so.
  void OnSuperline(int machine, Epoch log_epoch, Lsn head);
  // Looks at the watermarks of that medium.
  void Look(int machine, std::span<const std::byte> medium);
  // The medium is another one.
  void Forget(int machine) { seen_[machine] = {}; }
  // Where the log begins on that medium.
  Lsn head(int machine) const {
    return seen_[static_cast<size_t>(machine)].head;
  }
  // The highest LSN before which no log begins on `write_quorum` media, which
  // have these heads.
  static Lsn DurableHead(std::vector<Lsn> heads, int write_quorum);

  uint64_t looks() const { return looks_; }

 private:
  struct Seen {
    Epoch log_epoch;
    Lsn head = Lsn(0);
    Lsn proven = Lsn(0);
    std::array<WatermarkFormat, 2> lines = {};
  };

  Referee& referee_;
  const Uuid log_id_;
  std::vector<Seen> seen_;
  uint64_t looks_ = 0;  // at lines that had changed
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_MARK_CHECKER_H_
