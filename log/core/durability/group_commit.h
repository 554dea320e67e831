// SPDX-License-Identifier: Apache-2.0
// group_commit: the window of the group commit policy.
//
// Idea: every completed record joins the window. The record that fills it
// forces all that joined. Until that is done no record may join the next
// window. All threads share the counter, so the frequency policy scales better
// (Arcadia §4.4). This policy is kept because it is well known, and is the
// baseline of the paper.
//
// Invariants:
//   GC1. At most `records` records joined and are not durable.
// Thread safety: concurrently.
// References: Arcadia §4.4, §5.4; Helland et al. 1987.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_GROUP_COMMIT_H_
#define ALPHEUS_LOG_CORE_DURABILITY_GROUP_COMMIT_H_

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
  // Adds the completed record `lsn` to the window. Returns false while a group
  // is being forced; try again after the next progress. Sets `due` if the
  // record is the `records`-th of its group: the caller forces up to there,
  // then calls Done. Also sets `due` for a record that a callback appends while
  // its own thread forces a group: no other thread would end that.
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
  Lsn last_ ABSL_GUARDED_BY(mutex_);              // highest LSN that joined
  uint32_t forcing_ ABSL_GUARDED_BY(mutex_) = 0;  // calls, all of one thread
  uint32_t forcer_ ABSL_GUARDED_BY(mutex_) = 0;   // that thread's token
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_GROUP_COMMIT_H_
