// SPDX-License-Identifier: Apache-2.0
// installer: the writes that open an epoch on one region.
//
// Idea: a local opening and a replica change superline, epoch table and
// watermarks in the same steps. The steps are here, once. The caller decides
// which it takes, in which order: see the caller's crash states.
//
// Invariants:
//   INS1. No step overwrites the only good copy of anything: the copy that is
//         damaged, older or not named goes first (P-A2).
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
#include "log/format/watermark.h"
#include "log/pmem/persistence.h"

namespace alpheus::recovery {

template <Persistence P>
class Installer {
 public:
  // `state` is what was read of the region. It must outlive the installer.
  Installer(P& pmem, std::span<std::byte> region, const RegionState& state)
      : pmem_(pmem), region_(region), state_(state) {}

  // Flushes all that lies before the ring. Bytes that recovery read there may
  // be visible only, and lost by a power cut, since kill -9 leaves stores in
  // caches (P-H7). A copy of superline, table or watermark that is overwritten
  // next may be the only one on media. Fence persists it.
  void FlushBeforeRing();
  // Flushes [begin, end) of the ring. Requires: no more than one lap.
  void FlushRing(RingOffset begin, RingOffset end);
  // Rewrites damaged PADs. `table` owns the records after the PADs. Fence
  // persists them.
  void RewritePads(const EpochTable& table, std::span<const DamagedPad> pads);
  absl::Status Fence() { return Fenced(pmem_.Fence()); }

  // Each call below has persisted its writes when it returns OK. Errors:
  // Unavailable (medium); what is on the medium is then unknown.

  // Clears the clean-close word. Call it before any copy is changed, or a copy
  // torn by a power cut is taken for damage.
  absl::Status UnmarkCleanClose();
  // Writes both copies. Requires: `seq` is above that of the copy that holds.
  absl::Status WriteSuperline(const Superline& superline, uint64_t seq);
  // Writes the table copy that the superline does not name, then the superline
  // (which names it: the commit), then the other table copy.
  absl::Status InstallEpoch(const EpochTable& table, const Superline& superline,
                            uint64_t superline_seq);
  // Makes the table copy that the superline does not name equal to the other.
  absl::Status RepairTable();
  // Makes both lines equal to `watermark`; writes one after the other, a bad
  // one first, so that one always holds.
  absl::Status RenewWatermarks(const Watermark& watermark);

 private:
  absl::Status Fenced(bool persisted) const {
    return persisted ? absl::OkStatus() : pmem_.Error();
  }

  P& pmem_;
  const std::span<std::byte> region_;
  const RegionState& state_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_REPLICA_INSTALLER_H_
