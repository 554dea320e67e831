// SPDX-License-Identifier: Apache-2.0
// installer: the writes with which an epoch is opened on one region.
//
// Idea: whoever opens an epoch, locally or as one of several replicas, changes
// superline, epoch table and watermarks in the same steps; they are here once.
// Which steps, and in which order, is the caller's: see its crash states.
//
// Invariants:
//   INS1. No step overwrites the only good copy of anything: the copy that is
//         damaged, behind or not named goes first (P-A2).
//   INS2. The superline never names a table that is not on media.
//   INS3. One watermark line holds at every power cut (WMK2).
// Thread safety: one thread, which holds the region's lock.
// References: protocol P-A2, P-A4.5, P-H7, P-S1 to P-S4.
#ifndef ALPHEUS_RECOVERY_REPLICA_INSTALLER_H_
#define ALPHEUS_RECOVERY_REPLICA_INSTALLER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class Installer {
 public:
  // `state` is what was read of the region, and must outlive the installer.
  Installer(P& pmem, std::span<std::byte> region, const RegionState& state)
      : pmem_(pmem), region_(region), state_(state) {}

  // What recovery read may only have been visible (P-H7): kill -9 leaves stores
  // in the cache that a later power cut takes. That goes for the copies of
  // superline, table and watermark too: the one that is about to be
  // overwritten may be the only one on media. Persisted by Fence.
  void FlushBeforeRing();
  // Of the ring, [begin, end). Requires: no more than a lap.
  void FlushRing(RingOffset begin, RingOffset end);
  // `table` owns the records behind the PADs. Persisted by Fence.
  void RewritePads(const EpochTable& table, std::span<const DamagedPad> pads);
  absl::Status Fence() { return Fenced(pmem_.Fence()); }

  // Each of the following is persisted when it returns OK. Errors: Unavailable
  // (medium): what is on it is unknown.

  // Before any copy is touched, so that a copy that a power cut tears from
  // there on is not taken for damage.
  absl::Status UnmarkCleanClose();
  // Both copies. Requires: `seq` is above that of the one that holds.
  absl::Status WriteSuperline(const Superline& superline, uint64_t seq);
  // The table copy that the superline does not name, the superline, which
  // names it and is the commit, the other table copy.
  absl::Status InstallEpoch(const EpochTable& table, const Superline& superline,
                            uint64_t superline_seq);
  // Makes the table copy that the superline does not name equal to the other.
  absl::Status MendTable();
  // One line after the other, a bad one first, so that one always holds.
  absl::Status RenewWatermarks(Epoch epoch, Lsn lsn);

 private:
  absl::Status Fenced(bool persisted) const {
    return persisted ? absl::OkStatus() : pmem_.Error();
  }

  P& pmem_;
  const std::span<std::byte> region_;
  const RegionState& state_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REPLICA_INSTALLER_H_
