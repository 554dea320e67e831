// SPDX-License-Identifier: Apache-2.0
// repair_checker: whether what a scrub writes over a damaged place is the
// record that was there.
//
// Idea: region_care.h and watched_replica.h call this around each repair. It
// looks at the medium before and behind it, and holds the bytes against what
// the history and the holder_checker know of the record: not against the
// replica that they came from, nor by a checksum.
//
// What is held (P-A8), of the machine that is repaired:
//   the region is its replica, and it is not in the middle of a repair by an
//   opening, of a scan or of an installation (P-INV-12, SCR2 and SCR3 of
//   scrubbing.h)
//   each record lies between the head and what the replica has persisted, and
//   is of the epoch that owns its LSN there
//   a payload is one that a client wrote for this LSN in this epoch; what is
//   durable is that very record
//   what was cleaned stays cleaned; what is durable and was on the medium stays
//   what was written is on the medium when the repair is done
// What it can't see: damage that no scrub finds.
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
  // What the replica says of itself.
  struct Bounds {
    EpochTable table;
    Lsn head;
    Lsn last;                 // that it has persisted
    bool is_at_work = false;  // it is scanned, or installs an epoch
  };
  using Restore = absl::FunctionRef<absl::Status(std::span<const std::byte>)>;

  explicit RepairChecker(World& world) : world_(world) {}

  // Has `bytes` written at that place of the ring. Errors: those of `restore`.
  absl::Status Watch(int machine, const Bounds& bounds, RingOffset offset,
                     std::span<const std::byte> bytes, Restore restore);

 private:
  void JudgeReplica(int machine, const Bounds& bounds);
  // Their LSNs.
  std::set<uint64_t> JudgeRecords(int machine, const Bounds& bounds,
                                  RingOffset offset,
                                  std::span<const std::byte> bytes);
  void JudgeRecord(int machine, const Bounds& bounds, RingOffset at,
                   const HeaderWords& header,
                   std::span<const std::byte> payload);
  // Places of records that are cleaned, of those in which something is written.
  std::set<uint64_t> Cleaned(int machine, const Bounds& bounds,
                             RingOffset offset, size_t bytes) const;
  const std::byte* RingOf(int machine) const;
  void Violate(int machine, const std::string& what);

  World& world_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_REPAIR_CHECKER_H_
