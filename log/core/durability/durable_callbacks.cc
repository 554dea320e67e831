// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/durable_callbacks.h"

#include <algorithm>
#include <utility>

namespace alpheus {

void DurableCallbacks::AddTo(size_t heap_index, uint64_t due,
                             DurableCallback callback) {
  if (!observes_.exchange(true, std::memory_order_acq_rel)) {
    progress_.Observe(*this);
  }
  {
    const MutexLock lock(mutex_);
    Heap& heap = heaps_[heap_index];
    heap.entries.push_back({due, added_++, std::move(callback)});
    std::push_heap(heap.entries.begin(), heap.entries.end());
    heap.first.store(heap.entries.front().due, std::memory_order_relaxed);
  }
  // Pairs with the fence of the thread that moves the word: either this thread
  // sees the new value, or that one sees the entry.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  OnProgress();
}

void DurableCallbacks::OnProgress() {
  for (const Heap& heap : heaps_) {
    if (IsDue(heap, heap.first.load(std::memory_order_relaxed))) {
      RunDue();
      return;
    }
  }
}

void DurableCallbacks::RunDue() {
  {
    const MutexLock lock(mutex_);
    // The other thread checks again before it stops.
    if (running_) return;
    running_ = true;
    runner_.store(ThreadToken(), std::memory_order_relaxed);
  }
  absl::Status outcome;
  while (std::optional<Entry> entry = TakeDue(&outcome)) {
    entry->callback(outcome);
  }
}

std::optional<DurableCallbacks::Entry> DurableCallbacks::TakeDue(
    absl::Status* outcome) {
  const MutexLock lock(mutex_);
  for (Heap& heap : heaps_) {
    if (heap.entries.empty() || !IsDue(heap, heap.entries.front().due)) {
      continue;
    }
    Entry entry = TakeFirst(heap);
    const bool is_reached =
        entry.due <= heap.word.load(std::memory_order_acquire);
    *outcome = is_reached ? absl::OkStatus() : failure_.status();
    return entry;
  }
  running_ = false;
  runner_.store(0, std::memory_order_relaxed);
  return std::nullopt;
}

DurableCallbacks::Entry DurableCallbacks::TakeFirst(Heap& heap) {
  std::pop_heap(heap.entries.begin(), heap.entries.end());
  Entry entry = std::move(heap.entries.back());
  heap.entries.pop_back();
  heap.first.store(heap.entries.empty() ? kNone : heap.entries.front().due,
                   std::memory_order_relaxed);
  return entry;
}

void DurableCallbacks::Abandon(const absl::Status& status) {
  for (Heap& heap : heaps_) {
    for (;;) {
      std::optional<Entry> entry;
      {
        const MutexLock lock(mutex_);
        if (heap.entries.empty()) break;
        entry = TakeFirst(heap);
      }
      entry->callback(status);
    }
  }
}

}  // namespace alpheus
