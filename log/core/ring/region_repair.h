// SPDX-License-Identifier: Apache-2.0
// region_repair: the changes that scrubbing may make to the region of a log
// while threads write the log.
//
// Idea: a scrubber of the primary's own replica (recovery/scrub/own_scrub.h)
// reads records that no thread changes, and puts back bytes and copies that the
// medium has lost. It never changes what the log says.
//
// Invariants:
//   RGR1. Bytes are restored between the last head given to the sink and the
//         last durable record only. No thread of the log writes there while
//         WithRingFrozen runs the work.
//   RGR2. After an error of the medium the log has failed (RL4): nothing more
//         is acknowledged.
// Crash states, of each repair: any part of the new bytes may be persisted.
// They only replace bytes that were not good, or equal ones.
// Thread safety: one thread repairs; others use the log meanwhile.
// References: protocol P-A8, P-H20; docs/design/reading_and_scrubbing.md.
#ifndef ALPHEUS_LOG_CORE_RING_REGION_REPAIR_H_
#define ALPHEUS_LOG_CORE_RING_REGION_REPAIR_H_

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/space/reclaimer.h"
#include "log/core/space/superline_store.h"
#include "log/core/write/log_failure.h"
#include "log/format/layout.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class RegionRepair {
 public:
  // All are those of one log, and must outlive the object.
  RegionRepair(P& pmem, std::span<std::byte> region, const Ring& ring,
               SuperlineStore<P>& superline, const Reclaimer<P>& reclaimer,
               LogFailure& failure)
      : pmem_(pmem),
        region_(region),
        ring_(ring),
        superline_(superline),
        reclaimer_(reclaimer),
        failure_(failure) {}

  // Runs `work` while no other thread writes a byte between the places of RGR1.
  // Cleaning and tails wait for it. Called from inside the sink's Poll.
  void WithRingFrozen(absl::FunctionRef<void()> work) const {
    reclaimer_.WithRingFrozen(work);
  }
  // Returns the ring's bytes on the medium, between the same two places; the
  // ring itself unless it is a shadow (shadow_persistence.h).
  std::byte* RingOnMedium() const;
  // Writes the bytes at their place in the ring, and persists them. Requires:
  // the log is usable; called in WithRingFrozen; the bytes don't cross the
  // ring's end (RGR1). Errors: the log's failure.
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes);
  // Rewrites the copies of superline and epoch table that differ from what this
  // log wrote. Returns how many of the two were repaired. Requires: the log is
  // usable. Errors: the log's failure.
  absl::StatusOr<int> RepairCopies();

 private:
  absl::StatusOr<bool> RepairTable();

  P& pmem_;
  const std::span<std::byte> region_;
  const Ring& ring_;
  SuperlineStore<P>& superline_;
  const Reclaimer<P>& reclaimer_;
  LogFailure& failure_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_REGION_REPAIR_H_
