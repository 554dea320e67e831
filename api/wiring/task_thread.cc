// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/task_thread.h"

#include <utility>

namespace alpheus {

TaskThread::~TaskThread() {
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  changes_.fetch_add(1, std::memory_order_release);
  changes_.notify_one();
  thread_.Join();
}

absl::Status TaskThread::Start() {
  return thread_.Start([this] { Run(); });
}

void TaskThread::Post(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changes_.fetch_add(1, std::memory_order_release);
  changes_.notify_one();
}

void TaskThread::Run() {
  for (;;) {
    // Read before the tasks: one that is posted behind them changes it.
    const uint32_t seen = changes_.load(std::memory_order_acquire);
    std::vector<std::function<void()>> tasks;
    bool is_over = false;
    {
      const MutexLock lock(mutex_);
      tasks.swap(tasks_);
      is_over = is_over_;
    }
    for (const auto& task : tasks) task();
    if (!tasks.empty()) continue;
    if (is_over) return;
    changes_.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace alpheus
