// SPDX-License-Identifier: Apache-2.0
// log_failure: the failure that ends a log instance: nothing is acknowledged
// after it.
//
// Idea: after a failed force the record may or may not be on the medium. If the
// log continued, a later force would make durable what the application believes
// lost (P-H20). So the first failure sticks, and every later call returns it
// until the log is opened again.
//
// The thread that meets a failure may hold locks that a callback needs. So Fail
// only remembers it, and Notify notifies once no lock is held.
//
// Thread safety: all members concurrently.
#ifndef ALPHEUS_LOG_CORE_WRITE_LOG_FAILURE_H_
#define ALPHEUS_LOG_CORE_WRITE_LOG_FAILURE_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "log/base/mutex.h"
#include "log/base/waiter.h"

namespace alpheus {

class LogFailure {
 public:
  // A failure wakes all threads that wait on `progress`: their event may never
  // come.
  explicit LogFailure(Progress& progress) : progress_(progress) {}

  // Remembers the first failure; from now on failed(). The caller ensures that
  // Notify is called soon, by itself or by its own caller.
  // Requires: !status.ok().
  void Fail(const absl::Status& status) {
    {
      const MutexLock lock(mutex_);
      if (status_.ok()) status_ = status;
    }
    failed_.store(true, std::memory_order_release);
  }

  // Notifies waiting threads and callbacks of a failure, once.
  // Requires: the caller holds no lock of the log.
  void Notify() {
    // If two threads meet failures either may notify: both failures are
    // remembered.
    if (!failed_.load(std::memory_order_acquire) ||
        is_notified_.exchange(true, std::memory_order_acq_rel)) {
      return;
    }
    progress_.Notify();
  }

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  absl::Status status() const {
    if (!failed_.load(std::memory_order_acquire)) return absl::OkStatus();
    const MutexLock lock(mutex_);
    return status_;
  }

 private:
  Progress& progress_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> is_notified_{false};
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_LOG_FAILURE_H_
