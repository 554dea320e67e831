// SPDX-License-Identifier: Apache-2.0
// scrubbed_replica: a replica as its scrubber sees it: one that this node
// serves, or the own one of a primary.
//
// Thread safety: one thread, except for what WithRingFrozen says.
// References: protocol P-A8; scrubbing.h.
#ifndef ALPHEUS_RECOVERY_SCRUB_SCRUBBED_REPLICA_H_
#define ALPHEUS_RECOVERY_SCRUB_SCRUBBED_REPLICA_H_

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/layout.h"
#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

class ScrubbedReplica {
 public:
  virtual ~ScrubbedReplica() = default;

  virtual Uuid log_id() const = 0;
  // Changes when the replica was made again, as its log may have been; 0: it
  // never is.
  virtual uint64_t incarnation() const { return 0; }
  // Returns true if it is unknown what was persisted last: the replica is of no
  // more use. Open the region again, as suspect (state_report.h).
  virtual bool medium_failed() const = 0;
  // Returns the bytes of the records. Their address never changes.
  virtual std::span<std::byte> ring() const = 0;
  // Returns the persisted bytes as the medium holds them: another address where
  // the ring is a copy in memory.
  virtual std::span<std::byte> ring_on_medium() const { return ring(); }
  // Returns its state, with its table.
  virtual Followed followed() const = 0;

  // Runs `work` while no other thread writes a byte from the head of followed()
  // to the last persisted record; not even a CLEANED word. `work` must be
  // short: a primary's threads may wait for it.
  virtual void WithRingFrozen(absl::FunctionRef<void()> work) { work(); }
  // Writes the bytes at their place in the ring, and persists them. Requires:
  // called from WithRingFrozen; the bytes don't cross the ring's end. Errors:
  // the medium's.
  virtual absl::Status RestoreBytes(RingOffset offset,
                                    std::span<const std::byte> bytes) = 0;
  // Rewrites damaged copies of superline and epoch table; returns how many.
  // Errors: the medium's, and as that of LocalReplica.
  virtual absl::StatusOr<int> RepairCopies() = 0;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SCRUB_SCRUBBED_REPLICA_H_
