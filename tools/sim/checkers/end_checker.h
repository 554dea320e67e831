// SPDX-License-Identifier: Apache-2.0
// end_checker: whether the replicas of a log at rest are equal, byte by byte.
//
// Idea: when no client calls any more and all in-sync backups have acknowledged
// all there is, the media of as many machines as are in sync must hold the
// whole log of the running epoch, read with the reader of a node; and each of
// its records has the same bytes everywhere, headers and payloads, CLEANED
// words, watermarks and PADs apart. Behind a payload lies what nobody reads.
//
// What it can't see: machines that are out of sync, and whether the log is the
// right one: the history judges that.
// Thread safety: one thread.
// References: design of the tests, section 3.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_END_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_END_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "log/core/read/record_cursor.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class EndChecker {
 public:
  explicit EndChecker(World& world) : world_(world) {}

  // The log is at rest in that epoch, LSN `next` is the next one, and so many
  // replicas are in sync. Returns on how many media it is whole.
  int CompareMedia(Epoch epoch, Lsn next, uint32_t in_sync);
  // A log that was closed in good order before LSN `closed` was opened again,
  // and ends before LSN `opened` (P-C4).
  void CompareEnds(Lsn closed, Lsn opened);
  // Nobody writes a log: of those who have that epoch installed both copies are
  // equal (P-INV-S2).
  void LookAtRest(Epoch epoch);

 private:
  // True: it holds all up to `next`.
  bool Compare(World::Machine& machine, Epoch epoch, Lsn next);
  void CompareRecord(int machine, const RecordView& record,
                     const std::byte* bytes);

  World& world_;
  // By LSN: of whoever was read first.
  std::map<uint64_t, std::span<const std::byte>> records_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_END_CHECKER_H_
