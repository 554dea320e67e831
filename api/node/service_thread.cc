// SPDX-License-Identifier: Apache-2.0
#include "api/node/service_thread.h"

#include <pthread.h>

#include <csignal>
#include <utility>

#include "log/base/deadline.h"

namespace alpheus {

ServiceThread::ServiceThread(std::function<bool()> poll, Progress& progress,
                             Waiter& waiter, std::chrono::microseconds interval)
    : poll_(std::move(poll)),
      progress_(progress),
      waiter_(waiter),
      interval_(interval) {}

void ServiceThread::Start() {
  if (interval_.count() == 0) return;
  stopped_.store(0, std::memory_order_release);
  // The program's signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ServiceThread::Stop() {
  if (!thread_.joinable()) return;
  stopped_.store(1, std::memory_order_release);
  waiter_.WakeAll(stopped_);
  progress_.Notify();
  thread_.join();
}

void ServiceThread::Run() {
  pthread_setname_np(pthread_self(), "alpheus");
  while (!IsStopped()) {
    if (poll_()) {
      waiter_.Wait(stopped_, 0, Deadline::In(interval_));
      continue;
    }
    const uint32_t seen = progress_.Announce();
    if (!IsStopped() && !poll_()) progress_.Wait(seen, Deadline());
    progress_.Withdraw();
  }
}

}  // namespace alpheus
