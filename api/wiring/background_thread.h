// SPDX-License-Identifier: Apache-2.0
// background_thread: a thread of the library inside a user's program.
//
// The program's signals are for the program's threads: this one blocks them. It
// leaves those that the thread itself can cause, such as SIGBUS at a page that
// its file has lost (bus_guard.h). It has the library's name in debuggers and
// `top -H`.
//
// Thread safety: one thread starts and joins.
#ifndef ALPHEUS_API_WIRING_BACKGROUND_THREAD_H_
#define ALPHEUS_API_WIRING_BACKGROUND_THREAD_H_

#include <pthread.h>

#include <functional>

#include "absl/status/status.h"

namespace alpheus {

class BackgroundThread {
 public:
  BackgroundThread() = default;
  // Joins.
  ~BackgroundThread() { Join(); }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Runs `run` once. Errors: ResourceExhausted (the system has no thread left).
  // Requires: not started, or joined since.
  absl::Status Start(std::function<void()> run);

  // Waits until `run` has returned; returns at once if nothing was started.
  void Join();

 private:
  static void* Main(void* self);

  std::function<void()> run_;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_BACKGROUND_THREAD_H_
