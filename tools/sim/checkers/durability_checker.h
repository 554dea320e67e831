// SPDX-License-Identifier: Apache-2.0
// durability_checker: checks that records stay on W media once they are
// durable.
//
// Idea: image_checker checks a record when it becomes durable. This one keeps a
// copy and checks again until the record is cleaned: when power is cut, when an
// epoch opens, and every few events. No repair, no rival and no cut may leave
// fewer than W media that have it at its place. Media do not count if their log
// epoch is older than that of the counting primary (their bytes are in flight,
// and nobody may build upon them), or if the configuration of that epoch does
// not name them. Records taken by a storage fault, or by a flip on their way to
// a suspect replica, count as if they were there, until a later epoch is shown.
// Its records must be on W media again, or be among those that a medium lacks
// and need not have read for that epoch (DMG2 of damage_checker.h). Within the
// fault budget one medium has each record whole (DMG5).
//
// Not seen: records that were durable before their primary counted them.
// Thread safety: one thread.
// References: protocol P-C1, P-A5, P-INV-9, P-INV-22, P-H12.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_DURABILITY_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_DURABILITY_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "log/core/read/record_cursor.h"
#include "recovery/protocol/state_report.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Returns whether both are the same record, except for CLEANED words and the
// bytes after the payload, which nobody reads.
bool AreOneRecord(const std::byte* a, const std::byte* b, uint64_t bytes);

class DurabilityChecker {
 public:
  explicit DurabilityChecker(World& world) : world_(world) {}

  // Notes a record that is durable on W media with that log epoch or a later
  // one; `bytes` is its place.
  void Learn(const RecordView& record, const std::byte* bytes, Epoch log_epoch);
  // Checks all media.
  void Check();
  // Returns false if another record is durable in its place, on a medium with
  // that epoch; such a medium may not know one of a later epoch.
  bool Agrees(const RecordView& record, Epoch log_epoch) const;
  // Return the LSNs of records that nobody has cleaned; and of these, those on
  // the machine's medium now, whether it counts or not.
  std::set<uint64_t> Needed() const;
  std::set<uint64_t> RecordsOn(int machine) const;
  // Judges that a replica that knows its records claims every durable one on
  // its medium.
  void JudgeReport(int machine, const recovery::StateReport& report) const;
  // Judges that it denies no damaged record that it proves to have had.
  void JudgeDamaged(int machine, const recovery::StateReport& report) const;

 private:
  struct Copy {
    Epoch epoch;
    uint32_t header_crc = 0;
    RingOffset offset;
    Epoch log_epoch;  // of the primary that counted it
    std::vector<std::byte> bytes;
  };

  // Returns whether the machine's medium counts for the copy.
  bool Counts(int machine, const Copy& copy) const;
  // Returns whether the copy is there, and was acknowledged or installed there,
  // or could have been.
  bool Holds(int machine, const Copy& copy) const;
  // Returns whether it would be there, had a storage fault not taken it.
  bool Lacks(int machine, const Copy& copy) const;
  // Returns whether it was there until a storage fault took it.
  bool RecordsBefore(int machine, const Copy& copy) const;
  bool LiesIn(std::span<const std::byte> image, const Copy& copy) const;
  int Holders(const Copy& copy) const;
  // Returns whether any medium has it, counting or not.
  bool IsAnywhere(const Copy& copy) const;

  World& world_;
  std::map<uint64_t, Copy> copies_;  // by LSN
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_DURABILITY_CHECKER_H_
