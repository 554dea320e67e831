// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/service_thread.h"

#include <utility>

#include "log/base/clock.h"

namespace alpheus {

ServiceThread::ServiceThread(Work work, Progress& progress, Waiter& waiter,
                             std::chrono::microseconds interval)
    : work_(std::move(work)),
      progress_(progress),
      waiter_(waiter),
      interval_(interval) {}

absl::Status ServiceThread::Start() {
  if (interval_.count() == 0) return absl::OkStatus();
  stopped_.store(0, std::memory_order_release);
  return thread_.Start([this] { Run(); });
}

// seq_cst: the waiting thread stores that it waits, then reads the word
// (activity_watch.h).
void ServiceThread::Stop() {
  stopped_.store(1, std::memory_order_seq_cst);
  waiter_.WakeAll(stopped_);
  progress_.Notify();
  thread_.Join();
}

void ServiceThread::Run() {
  while (!IsStopped()) {
    work_.check();
    if (work_.poll() == Polled::kMoved) {
      PassInterval();
      continue;
    }
    const uint32_t seen = progress_.Announce();
    const Deadline next_check = work_.check();
    if (!IsStopped() && work_.poll() == Polled::kIdle) {
      work_.wait(seen, next_check);
    }
    progress_.Withdraw();
  }
}

// Wakes for `look`, which may be due before the interval ends.
void ServiceThread::PassInterval() {
  const Deadline end = Deadline::In(interval_);
  do {
    const Deadline next_check = work_.check();
    const Deadline until =
        next_check.at_nanos() < end.at_nanos() ? next_check : end;
    while (!IsStopped() && work_.poll_acks(until, stopped_)) {
    }
    waiter_.Wait(stopped_, 0, until);
  } while (!IsStopped() && !end.HasPassed(Clock::Real().NowNanos()));
}

}  // namespace alpheus
