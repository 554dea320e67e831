// SPDX-License-Identifier: Apache-2.0
// local_opening: recovers a log that has one replica and opens its next epoch.
//
// Idea: protocol P-A4 with N = W = R = 1. The region's lock is the fence: no
// other process can write. So the scan may come before the promise, and a
// region that can't be opened is left exactly as it was. Promise and install
// are one superline update. The scan reads a few MiB, whatever the size of the
// log: from the proven place (region_state.h) to the ceiling (ceiling.h).
//
// Invariants:
//   LO1. Nothing is written before the verdict; an error changes no byte.
//   LO2. Everything that was recovered is persisted before the new epoch's
//        superline is (P-H7). Records that nothing proves persisted (WMK1,
//        watermark.h) are flushed first, with everything before the ring.
//   LO3. The log is shown only after the superline update (P-H3).
//   LO4. Damage before the place where the scan began is no error here, the
//        header at the head excepted. It shortens no log: it is an error when
//        the record is read (P-A4.6).
// Persistence, crash states in order; each reopens as the log before, or, from
// the superline on, as the log after:
//   1. unproven records flushed, damaged PADs rewritten
//   2. clean-close word cleared
//   3. epoch table with the new entry in one copy (the superline names the
//      other, which may be damaged)
//   4. superline: log_epoch = e, names the new table        <- commit
//   5. epoch table in the other copy
//   6. watermark lines of epoch e, one after the other
// Thread safety: one thread, which holds the region's lock.
// References: protocol P-A4; Arcadia §4.2, §4.3.
#ifndef ALPHEUS_RECOVERY_REPLICA_LOCAL_OPENING_H_
#define ALPHEUS_RECOVERY_REPLICA_LOCAL_OPENING_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "log/core/ring/ring_log.h"
#include "log/core/space/ceiling.h"
#include "log/pmem/file_view.h"
#include "log/pmem/persistence.h"

namespace alpheus::recovery {

struct LocalOpeningOptions {
  std::string name;  // name of the region, for messages
  std::optional<Uuid> expected_log_id = std::nullopt;
  Lsn cleanup_through{0};
  FileView file = {};  // file of the region, or none
  // See OpeningScanOf (region_state.h).
  uint64_t read_whole_bytes_max = kReadWholeBytesMax;
  // As RingLogOptions::ceiling_step_bytes (ring_log.h).
  uint64_t ceiling_step_bytes = kCeilingStepBytes;
};

struct OpenedEpoch {
  RingLogStart start;    // RingLog starts from here
  Epoch epoch;           // opened now
  Epoch previous_epoch;  // 0 for a new log
  bool was_closed_cleanly = false;
  // Head of the recovered range, which ends before start.end.
  LogPosition head;
  ScanResult scan;  // verdict complete or torn
  std::vector<std::string> repairs;
};

// Opens the next epoch. Errors: as Log::Open (alpheus/log.h).
template <Persistence P>
absl::StatusOr<OpenedEpoch> OpenEpochLocally(P& pmem,
                                             std::span<std::byte> region,
                                             const LocalOpeningOptions& options,
                                             RandomSource& random);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_REPLICA_LOCAL_OPENING_H_
