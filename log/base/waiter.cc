// SPDX-License-Identifier: Apache-2.0
#include "log/base/waiter.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace alpheus {
namespace {

constexpr int kPausesPerRound = 20;

timespec ToTimespec(int64_t nanos) {
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  nanos = std::max<int64_t>(nanos, 0);
  return {static_cast<time_t>(nanos / kNanosPerSecond),
          static_cast<long>(nanos % kNanosPerSecond)};
}

}  // namespace

bool FutexWaiter::Spin(int round) {
  const auto rounds = static_cast<uint32_t>(round);
  if (rounds < patience_.spins) {
    for (int i = 0; i < kPausesPerRound; ++i) PauseCore();
    return true;
  }
  if (rounds < patience_.spins + patience_.yields) {
    sched_yield();
    return true;
  }
  return false;
}

void FutexWaiter::Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
                       Deadline deadline) {
  timespec timeout{};
  timespec* limit = nullptr;
  if (deadline.is_set()) {
    timeout = ToTimespec(deadline.at_nanos() - clock_.NowNanos());
    limit = &timeout;
  }
  syscall(SYS_futex, &generation, FUTEX_WAIT_PRIVATE, seen, limit, nullptr, 0);
}

void FutexWaiter::WakeAll(const std::atomic<uint32_t>& generation) {
  syscall(SYS_futex, &generation, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
          0);
}

void Progress::NotifyThoseWhoCare() {
  const uint32_t attention = attention_.load(std::memory_order_acquire);
  if ((attention & ~kObserved) != 0) {
    generation_.fetch_add(1, std::memory_order_seq_cst);
    waiter_.WakeAll(generation_);
  }
  if ((attention & kObserved) != 0) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    observer_.load(std::memory_order_relaxed)->OnProgress();
  }
}

}  // namespace alpheus
