// SPDX-License-Identifier: Apache-2.0
// mutex: std::mutex with the annotations that clang's thread-safety analysis
// reads.
//
// Not absl::Mutex: the packaged library is not instrumented, so that
// ThreadSanitizer would not see what it orders.
#ifndef ALPHEUS_LOG_BASE_MUTEX_H_
#define ALPHEUS_LOG_BASE_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace alpheus {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  // Takes it if it is free; may also fail then.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return mutex_.try_lock();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_MUTEX_H_
