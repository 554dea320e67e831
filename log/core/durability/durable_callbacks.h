// SPDX-License-Identifier: Apache-2.0
// durable_callbacks: runs the callbacks that wait until replicas have persisted
// a record: W of them, this process's own, or all in sync (persisted_by.h);
// those that wait for a confirmation of the epoch (RF6, replicated_forcer.h);
// and those that wait until reservations go on that are held.
//
// Idea: callbacks wait in five heaps by a number: an LSN, the number of a round
// of confirmation, or how often reservations have gone on. A thread that moves
// one of the five words, or finds that the log failed, runs those that are due,
// with no lock held. So no extra
// thread is needed, and the only added latency is the callbacks' own. Appends
// pay nothing before the first callback is added.
//
// Invariants:
//   DC1. Each callback runs exactly once: with OK when its word has reached its
//        number, else with the log's failure.
//   DC2. Callbacks of one log run one at a time; due ones of one heap in the
//        order of their numbers.
// Thread safety: Add and OnProgress concurrently, also from callbacks; Abandon
// alone.
// References: Arcadia §4.4; protocol P-A3.3, P-A3.8, P-F7.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_DURABLE_CALLBACKS_H_
#define ALPHEUS_LOG_CORE_DURABILITY_DURABLE_CALLBACKS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
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

// The LSNs up to which replicas have persisted the log, and the last round by
// which the epoch is confirmed.
struct PersistedWords {
  const std::atomic<uint64_t>& own_replica;
  const std::atomic<uint64_t>& quorum;
  const std::atomic<uint64_t>& all_in_sync;
  const std::atomic<uint64_t>& confirmed_round;
};

class DurableCallbacks final : public ProgressObserver {
 public:
  DurableCallbacks(const PersistedWords& words, const LogFailure& failure,
                   Progress& progress)
      : heaps_{Heap(words.own_replica), Heap(words.quorum),
               Heap(words.all_in_sync), Heap(words.confirmed_round),
               Heap(resumptions_)},
        failure_(failure),
        progress_(progress) {}

  // Runs `callback` when `lsn` is persisted so; before returning if it is
  // already.
  void Add(PersistedBy by, Lsn lsn, DurableCallback callback) {
    AddTo(static_cast<size_t>(by), lsn.value, std::move(callback));
  }
  // Runs `callback` when the epoch is confirmed by this round, as Add.
  void AddConfirmation(uint64_t round, DurableCallback callback) {
    AddTo(kConfirmations, round, std::move(callback));
  }

  // Runs `callback` once reservations have gone on so often, as Add.
  void AddResumption(uint64_t number, DurableCallback callback) {
    AddTo(kResumptions, number, std::move(callback));
  }
  // Returns how often reservations have gone on that were held.
  uint64_t resumptions() const {
    return resumptions_.load(std::memory_order_seq_cst);
  }
  // Notes that they go on; a Notify of the progress must follow.
  void NoteResumed() { resumptions_.fetch_add(1, std::memory_order_seq_cst); }

  // Runs the callbacks that are due.
  void OnProgress() override;

  // Returns the last LSN that these replicas have persisted, with all before.
  Lsn persisted_lsn(PersistedBy by) const {
    return Lsn(
        heaps_[static_cast<size_t>(by)].word.load(std::memory_order_acquire));
  }

  // Returns whether a callback waits for an LSN up to `lsn`.
  bool AreWaitingFor(Lsn lsn) const {
    for (size_t i = 0; i < kPersistedByCount; ++i) {
      if (heaps_[i].first.load(std::memory_order_acquire) <= lsn.value) {
        return true;
      }
    }
    return false;
  }
  // Returns whether a callback waits for a confirmation.
  bool AreConfirming() const {
    return heaps_[kConfirmations].first.load(std::memory_order_acquire) !=
           kNone;
  }

  // Returns whether this thread is running a callback.
  bool AreRunHere() const {
    return runner_.load(std::memory_order_relaxed) == ThreadToken();
  }

  // Runs all remaining callbacks with `status`.
  void Abandon(const absl::Status& status);

 private:
  struct Entry {
    uint64_t due = 0;     // value of the word
    uint64_t number = 0;  // in the order of adding, among equal ones
    DurableCallback callback;

    // For a heap with the lowest one on top.
    bool operator<(const Entry& other) const {
      return due != other.due ? other.due < due : other.number < number;
    }
  };

  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  // The heaps behind those of PersistedBy.
  static constexpr size_t kConfirmations = kPersistedByCount;
  static constexpr size_t kResumptions = kConfirmations + 1;

  // Callbacks that wait for the same word. Guarded by mutex_, but for `first`.
  struct Heap {
    explicit Heap(const std::atomic<uint64_t>& awaited) : word(awaited) {}

    const std::atomic<uint64_t>& word;
    std::atomic<uint64_t> first{kNone};  // lowest in entries
    std::vector<Entry> entries;
  };

  void AddTo(size_t heap, uint64_t due, DurableCallback callback);
  bool IsDue(const Heap& heap, uint64_t due) const {
    if (due == kNone) return false;
    return due <= heap.word.load(std::memory_order_acquire) ||
           failure_.failed();
  }
  // Takes a callback that is due, and sets what it is told.
  std::optional<Entry> TakeDue(absl::Status* outcome);
  Entry TakeFirst(Heap& heap) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunDue();

  std::atomic<uint64_t> resumptions_{0};
  std::array<Heap, kResumptions + 1> heaps_;  // first those of PersistedBy
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
