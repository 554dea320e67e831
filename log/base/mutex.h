// SPDX-License-Identifier: Apache-2.0
// mutex: a lock of one word, annotated for clang's thread-safety analysis.
//
// Idea: a free lock is taken and released by one instruction each, and nearly
// all of ours are free. std::mutex takes some 60 for both and two calls into
// the C library, and an append to a backup takes ten locks at both ends. A
// thread that must wait marks the word, and sleeps.
//
//   0 free | 1 held | 2 held, and a thread may sleep
//
// Not absl::Mutex: the packaged library is not instrumented, so that
// ThreadSanitizer would not see what it orders. All of it is in the header: the
// RocksDB plugin uses it where only the C functions of libalpheus are exported.
//
// Invariants:
//   1. Only the holder releases. It wakes one sleeper if the word says that
//      there may be one. A woken thread leaves the word so, for the sleepers
//      after it.
//   2. The next holder sees what the last one did.
// Thread safety: all members; not recursive. May be destroyed once it is free
// and no thread waits, even while its last holder's Unlock has not returned.
// References: Drepper, "Futexes Are Tricky" (2011), section 6, mutex2.
#ifndef ALPHEUS_LOG_BASE_MUTEX_H_
#define ALPHEUS_LOG_BASE_MUTEX_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"

namespace alpheus {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (!TryToTake()) [[unlikely]]
      LockAfterOthers();
  }
  // Takes the lock if it is free.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return TryToTake(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    if (word_.exchange(kFree, std::memory_order_release) == kAwaited)
        [[unlikely]] {
      WakeOne();
    }
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kLocked = 1;
  static constexpr uint32_t kAwaited = 2;

  bool TryToTake() {
    uint32_t word = kFree;
    return word_.compare_exchange_strong(
        word, kLocked, std::memory_order_acquire, std::memory_order_relaxed);
  }
  [[gnu::cold, gnu::noinline]] void LockAfterOthers() {
    // Leaves the word awaited, for threads that may sleep after this one.
    while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
      word_.wait(kAwaited, std::memory_order_relaxed);
    }
  }
  [[gnu::cold, gnu::noinline]] void WakeOne() { word_.notify_one(); }

  std::atomic<uint32_t> word_{kFree};
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
