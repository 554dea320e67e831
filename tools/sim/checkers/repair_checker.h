// SPDX-License-Identifier: Apache-2.0
// repair_checker: checks that a scrub's repair writes the record that was
// there.
//
// Idea: replica_upkeep.h and watched_replica.h call this around each repair. It
// compares the medium before and after, and checks the bytes against the record
// as history and durability_checker know it: not against the source replica,
// nor by a checksum.
//
// Checked (P-A8), for the machine that is repaired:
//   * The region is its replica, and no repair by an opening, no scan and no
//     installation is in progress (P-INV-12, SCR2 and SCR3 of scrubbing.h).
//   * Each record lies between the head and the last LSN that the replica has
//     persisted, and is of the epoch that owns its LSN there.
//   * Its payload is one that a client wrote for this LSN in this epoch; a
//     durable LSN gets exactly its durable record.
//   * Cleaned records stay cleaned; durable records on the medium stay there.
//   * The written bytes are on the medium when the repair ends.
// Not seen: damage that no scrub finds.
// Thread safety: one thread.
// References: protocol P-A8; docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_REPAIR_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_REPAIR_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class RepairChecker {
 public:
  // State that the replica reports.
  struct Bounds {
    EpochTable table;
    Lsn head;
    Lsn last;                 // last persisted LSN
    bool is_at_work = false;  // it scans, or installs an epoch
  };
  using Restore = absl::FunctionRef<absl::Status(std::span<const std::byte>)>;

  explicit RepairChecker(World& world) : world_(world) {}

  // Calls `restore`, which writes `bytes` at that place of the ring. Errors:
  // those of `restore`.
  absl::Status Watch(int machine, const Bounds& bounds, RingOffset offset,
                     std::span<const std::byte> bytes, Restore restore);

 private:
  void JudgeReplica(int machine, const Bounds& bounds);
  // Judges the records; returns their LSNs.
  std::set<uint64_t> JudgeRecords(int machine, const Bounds& bounds,
                                  RingOffset offset,
                                  std::span<const std::byte> bytes);
  void JudgeRecord(int machine, const Bounds& bounds, RingOffset at,
                   const HeaderWords& header,
                   std::span<const std::byte> payload);
  // Returns the places of cleaned records in the range to be written.
  std::set<uint64_t> Cleaned(int machine, const Bounds& bounds,
                             RingOffset offset, size_t bytes) const;
  const std::byte* RingOf(int machine) const;
  void Violate(int machine, const std::string& what);

  World& world_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_REPAIR_CHECKER_H_
