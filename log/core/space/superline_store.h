// SPDX-License-Identifier: Apache-2.0
// superline_store: the superline of an open region and the right to change it.
//
// Idea: one object owns the current superline and writes it as a whole through
// the atomic cell. Callers name the fields to change, under one lock (P-S4: one
// writer).
//
// Thread safety: all members concurrently.
#ifndef ALPHEUS_LOG_CORE_SPACE_SUPERLINE_STORE_H_
#define ALPHEUS_LOG_CORE_SPACE_SUPERLINE_STORE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/mutex.h"
#include "log/core/write/log_failure.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class SuperlineStore {
 public:
  // Requires: both copies on media hold `superline` with number `seq`.
  SuperlineStore(P& pmem, std::span<std::byte> region,
                 const Superline& superline, uint64_t seq, LogFailure& failure)
      : pmem_(pmem),
        failure_(failure),
        place_(SuperlinePlace(region)),
        superline_(superline),
        seq_(seq) {}

  Superline Current() const {
    const MutexLock lock(mutex_);
    return superline_;
  }

  // Goes on with what another writer of the region has left there. Requires:
  // both copies on media hold `superline` with number `seq`.
  void Continue(const Superline& superline, uint64_t seq) {
    const MutexLock lock(mutex_);
    superline_ = superline;
    seq_ = seq;
  }

  // Returns the number of the superline on media.
  uint64_t seq() const {
    const MutexLock lock(mutex_);
    return seq_;
  }

  // Applies `change` and persists both copies before it returns OK.
  // Errors: Unavailable (medium): the update may or may not have happened, and
  // the log has failed; the caller notifies of that (log_failure.h). In a log
  // that has failed nothing is changed: the same error.
  template <class Change>
  absl::Status Update(Change change) {
    const MutexLock lock(mutex_);
    if (failure_.failed()) return failure_.status();
    Superline next = superline_;
    change(next);
    // When nothing is being written both copies are equal, so either may be
    // overwritten first.
    if (!WriteCell(pmem_, place_, /*newest=*/0, seq_ + 1,
                   EncodeSuperline(next))) {
      // Both copies may differ now; another update must not choose wrongly.
      failure_.Fail(pmem_.Error());
      return failure_.status();
    }
    superline_ = next;
    ++seq_;
    return absl::OkStatus();
  }

  // Rewrites both copies if they differ. Returns true if they did. Errors: as
  // Update.
  absl::StatusOr<bool> Repair() {
    const MutexLock lock(mutex_);
    if (failure_.failed()) return failure_.status();
    const CellState read = ReadCell(place_);
    if (read.copies_agree()) {
      absl::StatusOr<bool> repaired = RepairCellOnMedium(pmem_, place_);
      if (repaired.ok()) return repaired;
      failure_.Fail(repaired.status());
      return failure_.status();
    }
    std::optional<int> whole = read.newest;
    if (!WriteCell(pmem_, place_, whole, seq_ + 1,
                   EncodeSuperline(superline_))) {
      failure_.Fail(pmem_.Error());
      return failure_.status();
    }
    ++seq_;
    return true;
  }

 private:
  P& pmem_;
  LogFailure& failure_;
  const CellPlace place_;
  mutable Mutex mutex_;
  Superline superline_ ABSL_GUARDED_BY(mutex_);
  uint64_t seq_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_SPACE_SUPERLINE_STORE_H_
