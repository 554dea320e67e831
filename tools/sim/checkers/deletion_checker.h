// SPDX-License-Identifier: Apache-2.0
// deletion_checker: holds the deletion of the log against the marks that are on
// media.
//
// It judges
//   P-D3  an opening that begins once the deletion is decided does not succeed
//   P-D4  a replica says that the deletion is decided, and its records may go,
//         only once it is; so does the deletion itself
// Whether it is decided is counted here from the media, and not asked of
// anybody. A fault of storage may take a mark. Who was told of it before counts
// it, as this does for what happens after a decision: with at most W - 1 lost,
// the log stays closed. A mark that went without such a fault does not count.
//
// Thread safety: one thread.
// References: protocol P-D1 to P-D5.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_DELETION_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_DELETION_CHECKER_H_

#include <cstdint>
#include <vector>

#include "log/format/superline.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class DeletionChecker {
 public:
  explicit DeletionChecker(World& world) : world_(world) {}

  // Returns whether it is decided by what media have now.
  bool IsDecided();
  // Returns whether it is by the marks that media have, or had before a fault
  // of storage; looks.
  bool WasDecided();
  // Returns whether a medium has a mark, or had one.
  bool HasMarks();

  // Notes an opening that has succeeded. `was_decided`: when it began.
  void Opened(bool was_decided);
  // Notes that a machine's node has persisted its mark.
  void Marks(int machine);
  // Notes that a machine's node is about to say that it is decided.
  void Removes(int machine);
  // Notes that a deletion has returned OK.
  void Returned();
  // Returns whether all replicas that are there say that it is decided.
  bool IsRemovedEverywhere();

 private:
  // A mark that a medium had when it had met so many faults.
  struct Mark {
    int machine = 0;
    Superline superline;
    uint64_t faults = 0;
  };

  // Notes that a medium has this mark now.
  void Note(int machine, const Superline& marked);

  World& world_;
  std::vector<Mark> marks_;  // of each replica and list one
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_DELETION_CHECKER_H_
