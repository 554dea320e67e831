// SPDX-License-Identifier: Apache-2.0
// damage_checker: checks what becomes of records that a storage fault took.
//
// Idea: an opening reads each replica from its place on (P-A3.7). A record that
// was damaged before the place is not seen by it, by design. The rule is that
// such a record is never taken for other bytes, nor for the end of the log:
// whoever reads it gets an error or a repaired record. region_store.h knows the
// records that a medium lacks, with their bytes. So this checker knows a medium
// with these records put back, and can walk over the damage: what lies behind
// it is judged as if nothing was damaged.
//
// Checked:
//   DMG1. A state report names no record that its medium lacks. A report may
//         claim such a record only by its place, which lies after it.
//   DMG2. An installation leaves a lacking record unread only if the record
//         lies before the place that the medium had, if the replica knew what
//         it had, and if the installed log has the record. All others are read,
//         and must be back (P-INV-3).
//   DMG3. A reader of the recovered log gets each record with its bytes, up to
//         the end, which the damage does not move. The reader gets DataLoss
//         instead at the first unreadable record, and only there: the own
//         medium lacks that record, and it lies before the place from which the
//         opening read. The same holds for a tail, which also shows cleaned
//         records that the head has not passed: nobody repairs those.
//   DMG4. A client's call is refused with DataLoss only for a record of DMG3
//         whose header is damaged, and only if the call moves the head or needs
//         room (call_judge.h). A close is not refused.
//   DMG5. As long as no more is lost and damaged than a log must survive, each
//         durable record is whole on some medium.
// Not seen: damage of the region's fixed part, whose copies the other checkers
// read; damage of PADs, which nobody needs.
// Thread safety: one thread.
// References: protocol P-A3.7, P-A4.6, P-A8, P-C6;
// docs/design/recovery.md#short-reports.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_DAMAGE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_DAMAGE_CHECKER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/core/ring/region_state.h"
#include "log/core/ring/ring_log.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "recovery/opening/epoch_opening.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/lacks.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class DamageChecker {
 public:
  using Bytes = std::vector<std::byte>;

  explicit DamageChecker(World& world) : world_(world) {}

  // Returns the bytes of the machine's region with the records put back that it
  // lacks, as far as they are of the log with that table and head.
  Bytes Restored(int machine, std::span<const std::byte> region,
                 const EpochTable& table, Lsn head) const;
  // The same for the log that the region has; all as it is if it has none.
  Bytes Restored(int machine, std::span<const std::byte> region) const;
  // Returns whether the machine's medium lacks the record now.
  bool IsLacking(int machine, Lsn lsn) const;

  // Returns the records that the medium lacks still, once it has installed an
  // epoch (DMG2). `before`: superline and watermarks before that.
  Lacks LeftUnread(int machine, const RegionState& before,
                   const RegionState& now) const;
  // Notes that records may be back (SRS2).
  void MayBeRepaired(int machine);

  // Judges a record that a report names (DMG1).
  void Named(int machine, Lsn lsn);

  // Reads the opened log as an application does, and judges what that gets
  // (DMG3). `ring` is that of the own replica, or of a working copy, which
  // lacks nothing. `records`: the log's, with the ones put back that the
  // medium lacks. Returns whether it could read all of them.
  bool ReadRecovered(std::optional<int> machine, const Ring& ring,
                     const recovery::EpochOpened& opened,
                     std::span<const History::Shown> records);
  // Reads the log from its head on as a tail in the same process does, and
  // judges what that gets (DMG3).
  void ReadTail(std::optional<int> machine, const RingLog<World::Model>& log,
                Lsn read_from);

  // Returns whether a call may be refused so (DMG4).
  bool MayRefuse(int machine, Lsn read_from, const absl::Status& status) const;

 private:
  // Returns whether the opening may have left damage at that LSN unseen.
  bool MayBeUnseen(std::optional<int> machine, Lsn lsn, Lsn read_from) const;
  // Returns whether an opening may have left that damage although it saw it.
  bool MayBeLeft(Lsn lsn) const;
  void Violate(const char* invariant, const std::string& what);

  World& world_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_DAMAGE_CHECKER_H_
