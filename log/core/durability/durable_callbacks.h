// SPDX-License-Identifier: Apache-2.0
// durable_callbacks: runs the callbacks that wait until replicas have persisted
// a record: W of them, this process's own, or all in sync (persisted_by.h).
//
// Idea: callbacks wait in three heaps by LSN. A thread that moves one of the
// three LSNs, or finds that the log failed, runs those that are due, with no
// lock held. So no extra thread is needed, and the only added latency is the
// callbacks' own. Appends pay nothing before the first callback is added.
//
// Invariants:
//   DC1. Each callback runs exactly once: with OK when those replicas have its
//        LSN, else with the log's failure.
//   DC2. Callbacks of one log run one at a time; due ones of one heap in LSN
//        order.
// Thread safety: Add and OnProgress concurrently, also from callbacks; Abandon
// alone.
// References: Arcadia §4.4; protocol P-A3.3, P-F7.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_DURABLE_CALLBACKS_H_
#define ALPHEUS_LOG_CORE_DURABILITY_DURABLE_CALLBACKS_H_

#include <array>
#include <atomic>
#include <cstddef>
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
#include "log/core/durability/persisted_by.h"
#include "log/core/write/log_failure.h"

namespace alpheus {

using DurableCallback = std::function<void(const absl::Status&)>;

// The LSNs up to which replicas have persisted the log.
struct PersistedWords {
  const std::atomic<uint64_t>& own_replica;
  const std::atomic<uint64_t>& quorum;
  const std::atomic<uint64_t>& all_in_sync;
};

class DurableCallbacks final : public ProgressObserver {
 public:
  DurableCallbacks(const PersistedWords& words, const LogFailure& failure,
                   Progress& progress)
      : heaps_{Heap(words.own_replica), Heap(words.quorum),
               Heap(words.all_in_sync)},
        failure_(failure),
        progress_(progress) {}

  // Runs `callback` when `lsn` is persisted so; before returning if it is
  // already.
  void Add(PersistedBy by, Lsn lsn, DurableCallback callback);

  // Runs the callbacks that are due.
  void OnProgress() override;

  // Returns the last LSN that these replicas have persisted, with all before.
  Lsn persisted_lsn(PersistedBy by) const {
    return Lsn(heaps_[static_cast<size_t>(by)].persisted_lsn.load(
        std::memory_order_acquire));
  }

  // Returns whether a callback waits for an LSN up to `lsn`.
  bool AreWaitingFor(Lsn lsn) const {
    for (const Heap& heap : heaps_) {
      if (heap.first_lsn.load(std::memory_order_acquire) <= lsn.value) {
        return true;
      }
    }
    return false;
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

  // Callbacks that wait for the same replicas. Guarded by mutex_, but for
  // first_lsn.
  struct Heap {
    explicit Heap(const std::atomic<uint64_t>& word) : persisted_lsn(word) {}

    const std::atomic<uint64_t>& persisted_lsn;
    std::atomic<uint64_t> first_lsn{kNone};  // lowest in entries
    std::vector<Entry> entries;
  };

  bool IsDue(const Heap& heap, uint64_t lsn) const {
    if (lsn == kNone) return false;
    return lsn <= heap.persisted_lsn.load(std::memory_order_acquire) ||
           failure_.failed();
  }
  // Takes a callback that is due, and sets what it is told.
  std::optional<Entry> TakeDue(absl::Status* outcome);
  Entry TakeFirst(Heap& heap) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunDue();

  std::array<Heap, kPersistedByCount> heaps_;  // in the order of PersistedBy
  const LogFailure& failure_;
  Progress& progress_;
  std::atomic<bool> observes_{false};

  Mutex mutex_;
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // a thread runs callbacks
  std::atomic<uint32_t> runner_{0};               // its token
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_DURABLE_CALLBACKS_H_
