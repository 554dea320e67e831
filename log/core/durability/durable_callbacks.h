// SPDX-License-Identifier: Apache-2.0
// durable_callbacks: runs the callbacks that wait for records to become
// durable.
//
// Idea: callbacks wait in a heap by LSN. A thread that moves the durable LSN,
// or finds that the log failed, runs those that are due, with no lock held. So
// no extra thread is needed, and the only added latency is the callbacks' own.
// Appends pay nothing before the first callback is added.
//
// Invariants:
//   DC1. Each callback runs exactly once: with OK when its LSN is durable, else
//        with the log's failure.
//   DC2. Callbacks of one log run one at a time; due ones in LSN order.
// Thread safety: Add and OnProgress concurrently, also from callbacks; Abandon
// alone.
// References: Arcadia §4.4; protocol P-A3.3, P-F7.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_DURABLE_CALLBACKS_H_
#define ALPHEUS_LOG_CORE_DURABILITY_DURABLE_CALLBACKS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/thread_token.h"
#include "log/base/waiter.h"
#include "log/core/write/log_failure.h"

namespace alpheus {

using DurableCallback = std::function<void(const absl::Status&)>;

class DurableCallbacks final : public ProgressObserver {
 public:
  DurableCallbacks(const std::atomic<uint64_t>& durable_lsn,
                   const LogFailure& failure, Progress& progress)
      : durable_lsn_(durable_lsn), failure_(failure), progress_(progress) {}

  // Runs `callback` when `lsn` is durable; before returning if it is already.
  void Add(Lsn lsn, DurableCallback callback);

  // Runs the callbacks that are due.
  void OnProgress() override;

  // Returns whether a callback waits for an LSN up to `lsn`.
  bool AreWaitingFor(Lsn lsn) const {
    return first_lsn_.load(std::memory_order_acquire) <= lsn.value;
  }

  // Returns whether this thread is running a callback.
  bool AreRunHere() const {
    return runner_.load(std::memory_order_relaxed) == ThreadToken();
  }

  // Runs all remaining callbacks with `status`.
  void Abandon(const absl::Status& status);

 private:
  struct Entry {
    Lsn lsn;
    uint64_t number = 0;  // in order of Add, among equal LSNs
    DurableCallback callback;

    // For a heap with the lowest LSN on top.
    bool operator<(const Entry& other) const {
      return lsn != other.lsn ? other.lsn < lsn : other.number < number;
    }
  };

  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  bool IsDue(uint64_t lsn) const {
    if (lsn == kNone) return false;
    return lsn <= durable_lsn_.load(std::memory_order_acquire) ||
           failure_.failed();
  }
  std::optional<Entry> TakeDue();
  Entry TakeFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunDue();

  const std::atomic<uint64_t>& durable_lsn_;
  const LogFailure& failure_;
  Progress& progress_;
  std::atomic<bool> observes_{false};
  std::atomic<uint64_t> first_lsn_{kNone};  // lowest in entries_

  Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // a heap
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // a thread runs callbacks
  std::atomic<uint32_t> runner_{0};               // its token
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_DURABLE_CALLBACKS_H_
