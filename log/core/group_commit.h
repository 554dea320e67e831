// SPDX-License-Identifier: Apache-2.0
// group_commit: the window of the group commit policy.
//
// Idea: every completed record joins the window; the one that fills it forces
// all that joined, and until that is done nobody may join the next one. The
// counter is shared by all threads, which is why the frequency policy scales
// better (Arcadia §4.4); this one is kept because people know it, and as the
// baseline that the paper compares with.
//
// Invariants:
//   GC1. At most `records` records joined and are not durable.
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
#include "log/base/thread_token.h"

namespace alpheus {

class GroupCommit {
 public:
  // `lsn` is completed. False: a group is being forced; try again after the
  // next progress. `due` is set if the record is the `records`-th of its
  // group: the caller forces up to there, then calls Done. So it does with a
  // record that a callback appends while the caller's own thread forces a
  // group: nobody else would end that.
  bool TryJoin(Lsn lsn, uint32_t records, std::optional<Lsn>* due) {
    const MutexLock lock(mutex_);
    if (forcing_ > 0 && forcer_ == ThreadToken()) {
      ++forcing_;
      *due = lsn;
      return true;
    }
    if (forcing_ > 0) return false;
    last_ = std::max(last_, lsn);
    if (++count_ < records) return true;
    count_ = 0;
    forcing_ = 1;
    forcer_ = ThreadToken();
    *due = last_;
    return true;
  }
  void Done() {
    const MutexLock lock(mutex_);
    --forcing_;
  }

 private:
  Mutex mutex_;
  uint32_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  Lsn last_ ABSL_GUARDED_BY(mutex_);              // highest that joined
  uint32_t forcing_ ABSL_GUARDED_BY(mutex_) = 0;  // calls, all of one thread
  uint32_t forcer_ ABSL_GUARDED_BY(mutex_) = 0;   // that thread's token
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_GROUP_COMMIT_H_
