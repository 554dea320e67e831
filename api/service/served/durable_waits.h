// SPDX-License-Identifier: Apache-2.0
// durable_waits: callers that wait until a record of a log is durable, and may
// leave before.
//
// Idea: the log keeps a callback until its record is durable, and gives none
// back. A record may stay where it is for long, and callers come and go. So
// callers wait here, and the log has one callback for the first of them.
//
//   waiting   LSN 41   c       LSN 43   a, b       LSN 47   d
//   the log has a callback for 41: then for 43, then for 47
//
// Invariants:
//   DWT1. A caller is told once: that its record is durable, or how the log has
//         failed. One that has left is not told, but for a call that is under
//         way.
//   DWT2. A caller that has left leaves nothing behind. However many come and
//         go, the log has at most one callback for each record that is not
//         durable.
// Thread safety: all members by many threads. A caller may be told inside of
// its own call, or inside of any other call of the log.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_SERVICE_SERVED_DURABLE_WAITS_H_
#define ALPHEUS_API_SERVICE_SERVED_DURABLE_WAITS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "alpheus/log.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"

namespace alpheus::service {

// Owned by a shared_ptr: callbacks of the log may outlive it.
class DurableWaits : public std::enable_shared_from_this<DurableWaits> {
 public:
  using Tell = std::function<void(const absl::Status&)>;

  // `log` must be open while there is a caller.
  explicit DurableWaits(Log& log) : log_(log) {}

  // Calls `tell` once the record is durable, or the log has failed. Forces
  // nothing. `caller` is a name; nobody else waits by it. Errors, after which
  // nobody is told: OutOfRange (never assigned).
  absl::Status Wait(const void* caller, Lsn lsn, Tell tell);
  // Forgets the caller, if it waits.
  void Leave(const void* caller);

  // Returns how many wait.
  size_t count();
  // Returns how many callbacks the log has for them.
  size_t watches();

 private:
  struct Caller {
    Lsn lsn;
    Tell tell;
  };

  // Has the log tell of the first record that is waited for.
  void Watch();
  // The log says that this record is durable, or why it can't be.
  void OnTold(Lsn lsn, const absl::Status& status);
  // Takes callers that wait for records up to this one.
  std::vector<Tell> TakeThrough(Lsn last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Log& log_;
  Mutex mutex_;
  std::map<const void*, Caller> callers_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<Lsn, const void*>> by_lsn_ ABSL_GUARDED_BY(mutex_);
  // Records for which the log has a callback.
  std::set<Lsn> watched_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_SERVED_DURABLE_WAITS_H_
