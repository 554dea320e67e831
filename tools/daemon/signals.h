// SPDX-License-Identifier: Apache-2.0
// signals: a node's reactions to signals.
//
//   SIGTERM, SIGINT, SIGQUIT        ends
//   SIGHUP                          reloads what can be
//   SIGTSTP, SIGSTOP, SIGCONT       stops and continues, as for any process
//   SIGKILL, faults (SIGSEGV, ...)  ends at once
//   all others                      nothing
//
// A thread waits for signals, so that nothing runs inside a signal handler.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_DAEMON_SIGNALS_H_
#define ALPHEUS_TOOLS_DAEMON_SIGNALS_H_

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "absl/status/status.h"

namespace alpheus::daemon {

class Signals {
 public:
  // Blocks the signals. Made before any other thread, which inherits that.
  Signals();
  ~Signals() { Stop(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Calls the functions on a thread of its own until Stop; `end` once.
  // Errors: ResourceExhausted (no thread).
  absl::Status Start(std::function<void()> end, std::function<void()> reload);
  // Stops; on return no function is called any more.
  void Stop();

 private:
  void Wait();

  sigset_t waited_for_{};
  std::function<void()> end_;
  std::function<void()> reload_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace alpheus::daemon

#endif  // ALPHEUS_TOOLS_DAEMON_SIGNALS_H_
