// SPDX-License-Identifier: Apache-2.0
// service_thread: calls Poll of one log, while there is anything to do.
//
// Idea: the protocol does nothing on a thread of its own; whoever embeds it
// calls Poll. In a program that is this thread: it wakes once per interval as
// long as the log is used, and sleeps while it is idle. The first append
// afterwards wakes it. While something is under way that nobody else takes in
// it attends to that within the interval. Whether the log is used or not, it
// looks after the log's file twice a second, which takes microseconds; a log
// without a file takes no time of a core while it is idle.
//
// Thread safety: Start and Stop by one thread at a time.
#ifndef ALPHEUS_API_WIRING_SERVICE_THREAD_H_
#define ALPHEUS_API_WIRING_SERVICE_THREAD_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "api/wiring/background_thread.h"
#include "log/base/deadline.h"
#include "log/base/waiter.h"

namespace alpheus {

class ServiceThread {
 public:
  // What it does for a log: `poll` returns true to be called again after an
  // interval, false to be called after the next progress, for which
  // `wait(seen, until)` waits (Progress::Wait). `attend(until, stop)` is called
  // within the interval as long as it returns true; it may wait, until then at
  // most, and until `stop` is not 0: the waiter's WakeAll is called for that
  // word. `look` is called before each poll, and when it said that it is to be
  // called again, whatever else there is to do.
  struct Work {
    std::function<bool()> poll;
    std::function<void(uint32_t seen, Deadline until)> wait;
    std::function<bool(Deadline until, const std::atomic<uint32_t>& stop)>
        attend = [](Deadline /*until*/, const std::atomic<uint32_t>& /*stop*/) {
          return false;
        };
    std::function<Deadline()> look = [] { return Deadline(); };
  };

  // `waiter` wakes out of `attend`, too. An interval of 0: no thread is
  // started.
  ServiceThread(Work work, Progress& progress, Waiter& waiter,
                std::chrono::microseconds interval);
  ~ServiceThread() { Stop(); }

  // Errors: as BackgroundThread::Start.
  absl::Status Start();
  // Returns when `poll` runs no more.
  void Stop();

 private:
  void Run();
  bool Poll();
  void PassInterval();
  bool IsStopped() const {
    return stopped_.load(std::memory_order_acquire) != 0;
  }

  const Work work_;
  Progress& progress_;
  Waiter& waiter_;
  const std::chrono::microseconds interval_;
  std::atomic<uint32_t> stopped_{0};
  BackgroundThread thread_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_SERVICE_THREAD_H_
