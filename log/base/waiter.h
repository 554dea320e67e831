// SPDX-License-Identifier: Apache-2.0
// waiter: the way in which a blocking call waits, injected so that a simulator
// can.
//
// Idea: every blocking call of the log is a loop over a non-blocking step:
// `step; if not done, wait until something progressed; again`. Progress is a
// generation counter. A waiter announces itself before its last step. So a
// thread that makes progress afterwards sees it and bumps the counter.
//
// Thread safety: all members may be called concurrently.
#ifndef ALPHEUS_LOG_BASE_WAITER_H_
#define ALPHEUS_LOG_BASE_WAITER_H_

#include <atomic>
#include <cstdint>

#include "log/base/asymmetric_barrier.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"

namespace alpheus {

// Tells the core that this thread waits for another thread's store.
inline void PauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Waiter {
 public:
  virtual ~Waiter() = default;

  // Passes a little time without sleeping and returns true, while that is worth
  // it; returns false once the caller should Wait. `round` counts from 0 within
  // one call of the log.
  virtual bool Spin(int round) = 0;

  // Waits until `generation` is no longer `seen`, or until the deadline. May
  // return without a reason.
  virtual void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
                    Deadline deadline) = 0;

  // Ends the waits on `generation`, which the caller has just changed.
  virtual void WakeAll(const std::atomic<uint32_t>& generation) = 0;
};

// Spins, then yields the core, then sleeps on a futex.
class FutexWaiter final : public Waiter {
 public:
  // Rounds before the thread sleeps. A fence takes 0.2 us and a context switch
  // 2 us, so a few hundred pauses outlast most batches of another thread.
  // Yielding then lets that thread run where there are fewer cores than
  // threads.
  struct Patience {
    uint32_t spins = 20;
    uint32_t yields = 20;
  };

  explicit FutexWaiter(const Clock& clock) : FutexWaiter(clock, Patience()) {}
  FutexWaiter(const Clock& clock, const Patience& patience)
      : clock_(clock), patience_(patience) {}

  bool Spin(int round) override;
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline deadline) override;
  void WakeAll(const std::atomic<uint32_t>& generation) override;

 private:
  const Clock& clock_;
  const Patience patience_;
};

// Observer that is called on every progress, by the thread that made it.
class ProgressObserver {
 public:
  virtual ~ProgressObserver() = default;
  // The progress is visible to this thread; so are stores of other threads
  // before a seq_cst fence that came before this thread's.
  virtual void OnProgress() = 0;
};

// Generation counter, with the number of threads that wait for it.
class Progress {
 public:
  using PaidBy = AsymmetricBarrier::PaidBy;

  // `paid_by`: by both sides where threads sleep for each record.
  explicit Progress(Waiter& waiter, PaidBy paid_by = PaidBy::kRareSide)
      : waiter_(waiter), barrier_(paid_by) {}

  // Announces a waiter; the caller then takes its last step. Either that step
  // sees the producer's store, or the producer's load in Notify sees the
  // announcement: the barrier acts on both threads (asymmetric_barrier.h).
  uint32_t Announce() {
    attention_.fetch_add(1, std::memory_order_seq_cst);
    barrier_.Heavy();
    return generation_.load(std::memory_order_seq_cst);
  }
  void Withdraw() { attention_.fetch_sub(1, std::memory_order_release); }

  // Spins. Spinners are not announced: waking them costs no system call.
  bool Spin(int round) { return waiter_.Spin(round); }

  void Wait(uint32_t seen, Deadline deadline) {
    waiter_.Wait(generation_, seen, deadline);
  }

  // Returns whether there was progress since Announce returned `seen`.
  bool HasMoved(uint32_t seen) const {
    return generation_.load(std::memory_order_seq_cst) != seen;
  }

  // Registers `observer`; the same one each time. It must outlive the last
  // Notify.
  void Observe(ProgressObserver& observer) {
    observer_.store(&observer, std::memory_order_relaxed);
    attention_.fetch_or(kObserved, std::memory_order_seq_cst);
    barrier_.Heavy();
  }

  // Wakes waiting threads. Call it after the store that is the progress, no
  // lock needed. If the waiters pay for the barrier, no locked instruction
  // while no thread sleeps or observes, since this is on the append path.
  void Notify() {
    barrier_.Light();
    if (attention_.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    NotifyThoseWhoCare();
  }

 private:
  static constexpr uint32_t kObserved = 1u << 31;

  void NotifyThoseWhoCare();

  Waiter& waiter_;
  const AsymmetricBarrier barrier_;
  std::atomic<ProgressObserver*> observer_{nullptr};
  // Number of sleepers, and kObserved.
  alignas(64) std::atomic<uint32_t> attention_{0};
  std::atomic<uint32_t> generation_{0};
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_WAITER_H_
