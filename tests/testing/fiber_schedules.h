// SPDX-License-Identifier: Apache-2.0
// fiber_schedules: runs a few threads of a test as fibers under every schedule
// with a bounded number of preemptions.
//
// Idea: most concurrency bugs need only two preemptions (CHESS). A run is
// decided by a list of choices: at each switch point who goes on, and who goes
// on when a fiber blocks or ends. The explorer replays the list of the last
// run, changes its last choice that has an alternative left, and takes the
// first alternative from there on: a depth-first search without any state but
// the list.
//
//   FiberSchedules schedules({.preemptions_max = 2});
//   while (schedules.Begin()) {
//     ... build what the fibers work on ...
//     schedules.Run({[&] {...}, [&] {...}});
//   }
//
// Requires: fibers are deterministic apart from the schedule, and hold no lock
// at a switch point that another fiber may want.
// Thread safety: one thread of the operating system.
#ifndef ALPHEUS_TESTS_TESTING_FIBER_SCHEDULES_H_
#define ALPHEUS_TESTS_TESTING_FIBER_SCHEDULES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "log/base/waiter.h"
#include "tools/sim/fiber_context.h"

namespace alpheus::testing {

class FiberSchedules {
 public:
  struct Options {
    int preemptions_max = 2;
  };

  explicit FiberSchedules(const Options& options) : options_(options) {}

  // Moves to the next schedule; false when all were run.
  bool Begin();

  // Runs the fibers to their ends under the present schedule. `on_switch` is
  // called with the number of the fiber that goes on, each time one does.
  // False: some fibers wait for ever (they are abandoned as they are).
  bool Run(const std::vector<std::function<void()>>& fibers,
           const std::function<void(size_t)>& on_switch);

  // Called by a fiber where another one may be preferred to it.
  void SwitchPoint();
  // Called by a fiber that can't go on before `ready` returns true.
  void BlockUntil(std::function<bool()> ready);

  size_t running() const { return running_; }
  // True once the run differs from the one before: what it does from here on
  // was not seen yet.
  bool IsNew() const { return next_choice_ >= replayed_; }

  uint64_t schedules() const { return schedules_; }
  // Who ran when: fiber numbers, in order; a star after each preemption.
  std::string Describe() const { return trace_; }

 private:
  struct Choice {
    size_t chosen = 0;
    size_t options = 0;
  };
  struct Fiber {
    std::unique_ptr<std::byte[]> stack;
    sim::FiberContext context;
    std::function<void()> body;
    std::function<bool()> ready;  // empty: can go on
    bool done = true;
  };

  static void Enter(void* self);
  // One of `options` alternatives, as the schedule says.
  size_t Choose(size_t options);
  std::vector<size_t> ReadyOthers() const;
  void LeaveRunning();

  const Options options_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  sim::FiberContext main_;
  std::function<void(size_t)> on_switch_;
  size_t running_ = 0;
  size_t next_ = 0;

  std::vector<Choice> choices_;
  size_t next_choice_ = 0;
  size_t replayed_ = 0;  // choices taken over from the last run
  bool started_ = false;
  int preemptions_ = 0;  // in this run
  uint64_t schedules_ = 0;
  std::string trace_;
};

// Lets a fiber that waits for progress hand over to the others.
class FiberWaiter final : public Waiter {
 public:
  explicit FiberWaiter(FiberSchedules& schedules) : schedules_(schedules) {}

  bool Spin(int /*round*/) override { return false; }
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline deadline) override;
  void WakeAll(const std::atomic<uint32_t>& /*generation*/) override {}

 private:
  FiberSchedules& schedules_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TESTING_FIBER_SCHEDULES_H_
