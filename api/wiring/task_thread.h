// SPDX-License-Identifier: Apache-2.0
// task_thread: a thread that runs short tasks, one after the other.
//
// Thread safety: Post by any thread. Start, and the destructor, by one, while
// nobody posts.
#ifndef ALPHEUS_API_WIRING_TASK_THREAD_H_
#define ALPHEUS_API_WIRING_TASK_THREAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "api/wiring/background_thread.h"
#include "log/base/mutex.h"

namespace alpheus {

class TaskThread {
 public:
  TaskThread() = default;
  // Runs what was posted, then ends the thread.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Errors: ResourceExhausted (no thread).
  absl::Status Start();
  // Has the task run, after those that were posted before. Does not wait.
  void Post(std::function<void()> task);

 private:
  void Run();

  Mutex mutex_;
  std::vector<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<uint32_t> changes_{0};
  BackgroundThread thread_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_TASK_THREAD_H_
