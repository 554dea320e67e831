// SPDX-License-Identifier: Apache-2.0
// group_commit: the window of the group commit policy.
//
// Idea: every completed record joins the window; the one that fills it forces
// all that joined. The counter is shared by all threads, which is why the
// frequency policy scales better (Arcadia §4.4); this one is kept because
// people know it, and as the baseline that the paper compares with.
//
// Thread safety: concurrently.
// References: Arcadia §4.4, §5.4; Helland et al. 1987.
#ifndef ALPHEUS_LOG_CORE_GROUP_COMMIT_H_
#define ALPHEUS_LOG_CORE_GROUP_COMMIT_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"

namespace alpheus {

class GroupCommit {
 public:
  // `lsn` is completed. Returns up to where the caller must force, if its
  // record is the `records`-th since the last group.
  std::optional<Lsn> Join(Lsn lsn, uint32_t records) {
    const MutexLock lock(mutex_);
    last_ = std::max(last_, lsn);
    if (++count_ < records) return std::nullopt;
    count_ = 0;
    return last_;
  }

 private:
  Mutex mutex_;
  uint32_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  Lsn last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_GROUP_COMMIT_H_
