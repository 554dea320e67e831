// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/threads.h"

#include <limits>
#include <utility>

#include "log/base/check.h"
#include "log/base/thread_token.h"
#include "log/core/write/own_reservations.h"

namespace alpheus::sim {

struct Threads::Thread {
  uint32_t number = 0;
  ProcessId process = 0;  // 0: free
  FiberStack stack;
  FiberContext context;
  std::function<void()> body;
  const void* waits_for = nullptr;
  uint64_t ticket = 0;    // of the event that makes it run; others are stale
  bool deferred = false;  // it would have run, had its process not paused
  uint64_t own_reservations = 0;  // the log counts them per thread
};

Threads::Threads(model::SimNetwork& network, RandomSource& random,
                 int64_t delay_ns_max)
    : network_(network), random_(random), delay_ns_max_(delay_ns_max) {}

Threads::~Threads() = default;

Threads::Thread& Threads::NewThread() {
  for (const auto& thread : threads_) {
    if (thread->process == 0) return *thread;
  }
  threads_.push_back(std::make_unique<Thread>());
  return *threads_.back();
}

void Threads::Start(ProcessId process, std::function<void()> body) {
  Thread& thread = NewThread();
  thread.number = next_number_++;
  thread.process = process;
  thread.body = std::move(body);
  thread.own_reservations = 0;
  if (free_stacks_.empty()) {
    thread.stack = FiberStack::Map();
  } else {
    thread.stack = std::move(free_stacks_.back());
    free_stacks_.pop_back();
  }
  thread.context.Make(thread.stack.bottom(), FiberStack::kBytes, &Enter, this);
  MakeReady(thread);
}

void Threads::Enter(void* self) {
  auto& threads = *static_cast<Threads*>(self);
  threads.running_->body();
  threads.running_->process = 0;
  threads.SwitchAway();
}

void Threads::Kill(ProcessId process) {
  paused_.erase(process);
  delays_.erase(process);
  steady_since_.erase(process);
  bool is_own = false;
  for (const auto& thread : threads_) {
    if (thread->process != process) continue;
    thread->process = 0;
    ++thread->ticket;
    if (thread.get() == running_) {
      is_own = true;  // Run frees it
      continue;
    }
    FreeStack(*thread);
  }
  if (is_own) SwitchAway();
}

void Threads::FreeStack(Thread& thread) {
  // The body may own objects that a crash must not destroy (TH1).
  if (thread.body) new std::function<void()>(std::move(thread.body));
  thread.body = nullptr;
  thread.waits_for = nullptr;
  thread.deferred = false;
  free_stacks_.push_back(std::move(thread.stack));
}

void Threads::Pause(ProcessId process) { ++paused_[process]; }

void Threads::ContinueAll() {
  while (!paused_.empty()) EndPauses(paused_.begin()->first);
}

void Threads::SetDelay(ProcessId process, int64_t delay_ns_max) {
  if (delays_.erase(process) != 0) steady_since_[process] = now();
  if (delay_ns_max != 0) delays_[process] = delay_ns_max;
}

void Threads::Continue(ProcessId process) {
  const auto paused = paused_.find(process);
  if (paused == paused_.end() || --paused->second != 0) return;
  EndPauses(process);
}

void Threads::EndPauses(ProcessId process) {
  if (paused_.erase(process) == 0) return;
  steady_since_[process] = now();
  for (const auto& thread : threads_) {
    if (thread->process != process || !thread->deferred) continue;
    thread->deferred = false;
    MakeReady(*thread);
  }
}

int64_t Threads::SteadySince(ProcessId process) const {
  if (IsPaused(process) || delays_.contains(process)) {
    return std::numeric_limits<int64_t>::max();
  }
  const auto since = steady_since_.find(process);
  return since == steady_since_.end() ? 0 : since->second;
}

ProcessId Threads::running_process() const {
  return running_ == nullptr ? 0 : running_->process;
}

void Threads::MakeReady(Thread& thread) {
  thread.waits_for = nullptr;
  int64_t delay_max = delay_ns_max_;
  const auto slow = delays_.find(thread.process);
  if (slow != delays_.end()) delay_max += slow->second;
  ScheduleRun(thread, static_cast<int64_t>(
                          random_.Below(static_cast<uint64_t>(delay_max) + 1)));
}

void Threads::ScheduleRun(Thread& thread, int64_t after_ns) {
  network_.Schedule(after_ns, [this, &thread, ticket = ++thread.ticket] {
    Run(thread, ticket);
  });
}

void Threads::Run(Thread& thread, uint64_t ticket) {
  if (thread.process == 0 || thread.ticket != ticket) return;
  thread.waits_for = nullptr;
  if (IsPaused(thread.process)) {
    thread.deferred = true;
    return;
  }
  ALPHEUS_CHECK(running_ == nullptr, "a thread lets no events happen (TH3)");
  running_ = &thread;
  SetThreadToken(thread.number);
  if (on_switch_) on_switch_(thread.number);
  std::swap(OwnReservationsMax(), thread.own_reservations);
  FiberContext::Switch(scheduler_, thread.context);
  std::swap(OwnReservationsMax(), thread.own_reservations);
  running_ = nullptr;
  if (thread.process == 0) FreeStack(thread);
}

void Threads::SwitchAway() {
  FiberContext::Switch(running_->context, scheduler_);
}

void Threads::Yield() {
  MakeReady(*running_);
  SwitchAway();
}

void Threads::SleepUntil(int64_t nanos) {
  const int64_t left = nanos - network_.clock().NowNanos();
  ScheduleRun(*running_, left > 0 ? left : 0);
  SwitchAway();
}

void Threads::WaitFor(const void* key, Deadline deadline) {
  running_->waits_for = key;
  ++running_->ticket;
  if (deadline.is_set()) {
    const int64_t left = deadline.at_nanos() - network_.clock().NowNanos();
    ScheduleRun(*running_, left > 0 ? left : 0);
  }
  SwitchAway();
}

void Threads::Wake(const void* key) {
  for (const auto& thread : threads_) {
    if (thread->process != 0 && thread->waits_for == key) MakeReady(*thread);
  }
}

void Threads::WakeAll(ProcessId process) {
  for (const auto& thread : threads_) {
    if (thread->process == process && thread->waits_for != nullptr) {
      MakeReady(*thread);
    }
  }
}

}  // namespace alpheus::sim
