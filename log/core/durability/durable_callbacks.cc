// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/durable_callbacks.h"

#include <algorithm>
#include <utility>

namespace alpheus {

void DurableCallbacks::Add(Lsn lsn, DurableCallback callback) {
  if (!observes_.exchange(true, std::memory_order_acq_rel)) {
    progress_.Observe(*this);
  }
  {
    const MutexLock lock(mutex_);
    entries_.push_back({lsn, added_++, std::move(callback)});
    std::push_heap(entries_.begin(), entries_.end());
    first_lsn_.store(entries_.front().lsn.value, std::memory_order_relaxed);
  }
  // With the fence in Notify: either this thread sees the new durable LSN, or
  // the one that moves it sees the entry.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  OnProgress();
}

void DurableCallbacks::OnProgress() {
  if (IsDue(first_lsn_.load(std::memory_order_relaxed))) RunDue();
}

void DurableCallbacks::RunDue() {
  {
    const MutexLock lock(mutex_);
    // The other thread looks again before it stops.
    if (running_) return;
    running_ = true;
    runner_.store(ThreadToken(), std::memory_order_relaxed);
  }
  while (std::optional<Entry> entry = TakeDue()) {
    entry->callback(entry->lsn.value <=
                            durable_lsn_.load(std::memory_order_acquire)
                        ? absl::OkStatus()
                        : failure_.status());
  }
}

std::optional<DurableCallbacks::Entry> DurableCallbacks::TakeDue() {
  const MutexLock lock(mutex_);
  if (entries_.empty() || !IsDue(entries_.front().lsn.value)) {
    running_ = false;
    runner_.store(0, std::memory_order_relaxed);
    return std::nullopt;
  }
  return TakeFirst();
}

DurableCallbacks::Entry DurableCallbacks::TakeFirst() {
  std::pop_heap(entries_.begin(), entries_.end());
  Entry entry = std::move(entries_.back());
  entries_.pop_back();
  first_lsn_.store(entries_.empty() ? kNone : entries_.front().lsn.value,
                   std::memory_order_relaxed);
  return entry;
}

void DurableCallbacks::Abandon(const absl::Status& status) {
  for (;;) {
    std::optional<Entry> entry;
    {
      const MutexLock lock(mutex_);
      if (entries_.empty()) return;
      entry = TakeFirst();
    }
    entry->callback(status);
  }
}

}  // namespace alpheus
