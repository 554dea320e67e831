// SPDX-License-Identifier: Apache-2.0
// service_thread: calls Poll of one log while there is work.
//
// Idea: the log has no thread of its own; its owner calls Poll. In a program
// this thread is the one that does. It wakes once per interval while the log is
// used, and sleeps while it is idle; the next append wakes it. Within the
// interval it processes acks that no other thread takes. In any case it checks
// the log's file twice a second, which takes microseconds. An idle log without
// a file uses no CPU time.
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
#include "log/base/polled.h"
#include "log/base/waiter.h"

namespace alpheus {

class ServiceThread {
 public:
  // Callbacks for a log.
  // * poll: returns kMoved to be called again after an interval, kIdle to be
  //   called after the next progress.
  // * wait: waits for that progress (Progress::Wait).
  // * poll_acks: called within the interval while it returns true. It may wait
  //   until `until`, and until `stop` is not 0: the waiter's WakeAll is called
  //   for that word.
  // * check: called before each poll, and at the time that it returned.
  struct Work {
    std::function<Polled()> poll;
    std::function<void(uint32_t seen, Deadline until)> wait;
    std::function<bool(Deadline until, const std::atomic<uint32_t>& stop)>
        poll_acks = [](Deadline /*until*/,
                       const std::atomic<uint32_t>& /*stop*/) { return false; };
    std::function<Deadline()> check = [] { return Deadline(); };
  };

  // `waiter` also ends a wait in `poll_acks`. With an interval of 0 no thread
  // is started.
  ServiceThread(Work work, Progress& progress, Waiter& waiter,
                std::chrono::microseconds interval);
  ~ServiceThread() { Stop(); }

  // Errors: as BackgroundThread::Start.
  absl::Status Start();
  // Stops the thread. Returns when `poll` no longer runs.
  void Stop();

 private:
  void Run();
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
