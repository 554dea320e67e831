// SPDX-License-Identifier: Apache-2.0
// threads: the threads of all simulated processes, as fibers of one thread, in
// virtual time.
//
// Idea: production code that blocks (an append, a force) is called unchanged; a
// waiter injected into it passes the processor to this scheduler. Each step of
// a thread is an event in the simulated network's queue, like any message: a
// woken thread continues after a drawn delay. So one queue and one source of
// randomness decide the whole run.
//
//   Start -> [ready] --event--> [running] --Yield--> [ready]
//                                  |  \--WaitFor--> [waiting] --Wake, deadline,
//                                  |                            chance--> ready
//                                  \--body returns, or Kill--> gone
//
// Invariants:
//   TH1. A thread of a killed process never runs again, and its stack is never
//        destroyed: a crash runs no destructor.
//   TH2. A paused process runs nothing; wake-ups of its threads are remembered.
//   TH3. Between two switch points (Yield, Wait, Sleep, the end) nothing else
//        runs.
//   TH4. Each of these threads has the log's data per operating-system thread
//        for itself: its token, and the count of its open reservations.
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

// Process: the unit that is killed and paused. 0: none.
using ProcessId = uint32_t;

class Threads {
 public:
  // A ready thread continues after up to `delay_ns_max` nanoseconds. Network
  // and randomness must outlive this object.
  Threads(model::SimNetwork& network, RandomSource& random,
          int64_t delay_ns_max);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Sets a function that is called with the number of each thread that
  // continues. Numbers count from 1 and are never reused.
  void SetOnSwitch(std::function<void(uint32_t thread)> on_switch) {
    on_switch_ = std::move(on_switch);
  }

  ProcessId NewProcess() { return next_process_++; }
  // Adds a thread to the process, which starts at the next chance.
  void Start(ProcessId process, std::function<void()> body);

  // Stops its threads where they are (TH1). Called by one of them: does not
  // return.
  void Kill(ProcessId process);
  // Pauses it. Counted, so that pauses may overlap.
  void Pause(ProcessId process);
  void Continue(ProcessId process);
  // Ends all its pauses.
  void EndPauses(ProcessId process);
  void ContinueAll();
  bool IsPaused(ProcessId process) const { return paused_.contains(process); }
  // Returns the time since which it is neither paused nor slowed down; the end
  // of time while it is.
  int64_t SteadySince(ProcessId process) const;
  // Delays its threads by up to `delay_ns_max` more; 0: like others.
  void SetDelay(ProcessId process, int64_t delay_ns_max);

  bool InThread() const { return running_ != nullptr; }
  ProcessId running_process() const;

  // The following calls except Wake are for threads only.
  // Yield lets others run, and continues after a drawn time.
  void Yield();
  void SleepUntil(int64_t nanos);
  // Waits for the deadline, or for a Wake(key) from now on.
  void WaitFor(const void* key, Deadline deadline);
  void Wake(const void* key);
  // Makes all waiting threads of that process check the time again; any caller.
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

  model::SimNetwork& network_;
  RandomSource& random_;
  const int64_t delay_ns_max_;
  std::function<void(uint32_t)> on_switch_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<FiberStack> free_stacks_;
  std::map<ProcessId, int> paused_;
  std::map<ProcessId, int64_t> delays_;
  std::map<ProcessId, int64_t> steady_since_;  // of those once disturbed
  Thread* running_ = nullptr;
  FiberContext scheduler_;
  ProcessId next_process_ = 1;
  uint32_t next_number_ = 1;
};

// Waiter of a log whose callers are such threads.
class ThreadsWaiter final : public Waiter {
 public:
  // `clock`: the clock of the deadlines.
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
