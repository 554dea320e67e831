// SPDX-License-Identifier: Apache-2.0
// threads: the threads of all simulated processes, as fibers of one thread, in
// virtual time.
//
// Idea: production code that blocks (an append, a force) is called as it is; a
// waiter that is injected into it hands the processor to this scheduler. Who
// goes on, and when, is an event of the simulated network's queue like any
// message: a thread that is woken goes on after a drawn delay. So one queue
// and one source of randomness decide the whole run.
//
//   Start -> [ready] --event--> [running] --Yield--> [ready]
//                                  |  \--WaitFor--> [waiting] --Wake, deadline,
//                                  |                            chance--> ready
//                                  \--body returns, or Kill--> gone
//
// Invariants:
//   TH1. A thread of a process that was killed never runs again, and what lies
//        on its stack is never destroyed: a crash runs no destructor.
//   TH2. A paused process runs nothing; what would have woken its threads is
//        remembered.
//   TH3. Between two switch points (Yield, Wait, Sleep, the end) nothing else
//        runs.
//   TH4. What the log keeps for each thread of the operating system, its token
//        and the count of its open reservations, each of these threads has for
//        itself.
//   TH5. A thread that overflows its stack dies of a signal (fiber_stack.h).
// Thread safety: one thread of the operating system.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_THREADS_H_
#define ALPHEUS_TOOLS_SIM_WORLD_THREADS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/base/waiter.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/sim/world/fiber_context.h"
#include "tools/sim/world/fiber_stack.h"
#include "tools/sim/world/process_clock.h"

namespace alpheus::sim {

// A process: what is killed and paused as a whole. 0: none.
using ProcessId = uint32_t;

class Threads {
 public:
  // A thread that can go on does so after up to `delay_ns_max` nanoseconds.
  // Network and randomness must outlive it.
  Threads(SimNetwork& network, RandomSource& random, int64_t delay_ns_max);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Called with the number of the thread that goes on, each time one does.
  // Numbers count from 1 and are never used again.
  void SetOnSwitch(std::function<void(uint32_t thread)> on_switch) {
    on_switch_ = std::move(on_switch);
  }

  ProcessId NewProcess() { return next_process_++; }
  // The process gets one more thread, which begins at the next chance.
  void Start(ProcessId process, std::function<void()> body);

  // Its threads stop where they are (TH1). By one of them: does not return.
  void Kill(ProcessId process);
  // Counted, so that pauses may overlap.
  void Pause(ProcessId process);
  void Continue(ProcessId process);
  // However often it was paused.
  void EndPauses(ProcessId process);
  void ContinueAll();
  bool IsPaused(ProcessId process) const { return paused_.contains(process); }
  // Since when it is neither paused nor slowed down; the end of time while it
  // is.
  int64_t SteadySince(ProcessId process) const;
  // Its threads go on up to so much later than others; 0: as others.
  void SetDelay(ProcessId process, int64_t delay_ns_max);

  bool InThread() const { return running_ != nullptr; }
  ProcessId running_process() const;

  // The rest but Wake: only by threads.
  // Lets others go on, and goes on after a drawn time.
  void Yield();
  void SleepUntil(int64_t nanos);
  // Goes on at the deadline, or after a Wake(key) from now on.
  void WaitFor(const void* key, Deadline deadline);
  void Wake(const void* key);
  // By anybody: all that wait in that process look once more whether it is
  // time.
  void WakeAll(ProcessId process);

 private:
  struct Thread;

  static void Enter(void* self);
  void MakeReady(Thread& thread);
  void ScheduleRun(Thread& thread, int64_t after_ns);
  void Run(Thread& thread, uint64_t ticket);
  void SwitchAway();
  void FreeStack(Thread& thread);
  Thread& NewThread();
  int64_t now() const { return network_.clock().NowNanos(); }

  SimNetwork& network_;
  RandomSource& random_;
  const int64_t delay_ns_max_;
  std::function<void(uint32_t)> on_switch_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<FiberStack> free_stacks_;
  std::map<ProcessId, int> paused_;
  std::map<ProcessId, int64_t> delays_;
  std::map<ProcessId, int64_t> steady_since_;  // of those that were not
  Thread* running_ = nullptr;
  FiberContext scheduler_;
  ProcessId next_process_ = 1;
  uint32_t next_number_ = 1;
};

// The waiter of a log whose callers are such threads.
class ThreadsWaiter final : public Waiter {
 public:
  // `clock`: that deadlines are of.
  ThreadsWaiter(Threads& threads, const ProcessClock& clock)
      : threads_(threads), clock_(clock) {}

  bool Spin(int /*round*/) override { return false; }
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline deadline) override {
    if (generation.load(std::memory_order_seq_cst) != seen) return;
    threads_.WaitFor(&generation, clock_.InWorld(deadline));
  }
  void WakeAll(const std::atomic<uint32_t>& generation) override {
    threads_.Wake(&generation);
  }

 private:
  Threads& threads_;
  const ProcessClock& clock_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_THREADS_H_
