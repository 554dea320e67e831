// SPDX-License-Identifier: Apache-2.0
// group_commit: the force policy that the paper compares with: records are
// forced in groups of a fixed size.
//
// Idea: a counter under a mutex keeps the window of records that are completed
// and not forced. Who fills the window leads: it forces all of it before
// anyone may open the next one, so that the window is a bound. Built on the
// public calls of the log.
//
// Invariants:
//   G1. At most group + threads - 1 records are completed and not durable.
// Thread safety: any number of threads.
// References: Arcadia §4.4, §5.5.
#ifndef ALPHEUS_BENCH_LOCAL_GROUP_COMMIT_H_
#define ALPHEUS_BENCH_LOCAL_GROUP_COMMIT_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "alpheus/log.h"
#include "log/base/mutex.h"

namespace alpheus::bench {

class GroupCommit {
 public:
  // `log` must outlive it. Requires: group > 0.
  GroupCommit(Log& log, uint64_t group) : log_(log), group_(group) {}

  // The caller has completed `lsn`.
  absl::Status Completed(Lsn lsn) {
    const MutexLock lock(mutex_);
    last_ = std::max(last_, lsn);
    if (++count_ < group_) return absl::OkStatus();
    count_ = 0;
    return log_.Force(last_);
  }

 private:
  Log& log_;
  const uint64_t group_;
  Mutex mutex_;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;  // completed since the force
  Lsn last_ ABSL_GUARDED_BY(mutex_);            // highest of them
};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_GROUP_COMMIT_H_
