// SPDX-License-Identifier: Apache-2.0
// end_checker: checks that the replicas of an idle log are equal, byte by byte.
//
// Idea: no client calls any more, and all in-sync backups have acknowledged
// everything. Then the media of as many machines as are in sync must have the
// whole log of the running epoch, read with a node's reader; but for records
// that a storage fault took and that no opening has read (damage_checker.h),
// which a scrub may not have repaired yet. Each record has
// the same bytes everywhere, headers and payloads, except CLEANED words,
// watermarks and PADs. The bytes after a payload are not read.
//
// Not seen: machines that are out of sync, and whether the log is the right
// one: the history judges that.
// Thread safety: one thread.
// References: docs/verify/simulation.md, "Phases".
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_END_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_END_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "log/core/read/record_cursor.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class EndChecker {
 public:
  explicit EndChecker(World& world) : world_(world) {}

  // Compares media of a log that is idle in that epoch, with next LSN `next`
  // and `in_sync` replicas in sync. Returns the number of media on which it is
  // whole.
  int CompareMedia(Epoch epoch, Lsn next, uint32_t in_sync);
  // Judges a log that was closed in good order before LSN `closed`, was opened
  // again, and ends before LSN `opened` (P-C4).
  void CompareEnds(Lsn closed, Lsn opened);
  // Checks a log that nobody writes: on all media with that epoch both copies
  // are equal (P-INV-S2).
  void CheckWhenIdle(Epoch epoch);

 private:
  // Returns true if the medium has all records up to `next`.
  bool Compare(World::Machine& machine, Epoch epoch, Lsn next);
  void CompareRecord(int machine, const RecordView& record,
                     const std::byte* bytes);

  World& world_;
  // Records by LSN, of the medium read first.
  std::map<uint64_t, std::vector<std::byte>> records_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_END_CHECKER_H_
