// SPDX-License-Identifier: Apache-2.0
// primary_replica: the replica in a running primary's own process, as seen by
// code that maintains it beside the log.
//
// Thread safety: ReleaseRegion, RestoreBytes and RepairCopies by one thread at
// a time.
// Called under: step_mutex_ of the log, from inside Poll of its replication.
// May block: the repairs for the Reclaimer's lock, for fences and for page
// faults; ReleaseRegion for calls under way, and for the region's lock.
// References: protocol P-A7, P-A8; region_claim.h, own_scrub.h.
#ifndef ALPHEUS_RECOVERY_REPLICA_PRIMARY_REPLICA_H_
#define ALPHEUS_RECOVERY_REPLICA_PRIMARY_REPLICA_H_

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/format/layout.h"

namespace alpheus::recovery {

class PrimaryReplica {
 public:
  virtual ~PrimaryReplica() = default;

  // Detaches this process from the region, so that none of its later stores
  // reach it, and releases the lock. Errors: the medium has failed, or the
  // mapping can't be replaced; the lock then stays.
  virtual absl::Status ReleaseRegion() = 0;
  // These are as the calls of that name in RegionRepair (region_repair.h).
  virtual bool IsUsable() const = 0;
  virtual std::byte* RingOnMedium() const = 0;
  virtual void WithRingFrozen(absl::FunctionRef<void()> work) = 0;
  virtual absl::Status RestoreBytes(RingOffset offset,
                                    std::span<const std::byte> bytes) = 0;
  virtual absl::StatusOr<int> RepairCopies() = 0;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_REPLICA_PRIMARY_REPLICA_H_
