// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/fiber_schedules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus::testing {
namespace {

// Recovery runs on them too, inside the hooks of the crash model.
constexpr size_t kStackBytes = 512 << 10;

}  // namespace

bool FiberSchedules::Begin() {
  if (started_) {
    while (!choices_.empty() &&
           choices_.back().chosen + 1 == choices_.back().options) {
      choices_.pop_back();
    }
    if (choices_.empty()) return false;
    ++choices_.back().chosen;
  }
  started_ = true;
  replayed_ = choices_.size();
  next_choice_ = 0;
  preemptions_ = 0;
  trace_.clear();
  ++schedules_;
  return true;
}

bool FiberSchedules::Run(const std::vector<std::function<void()>>& fibers,
                         const std::function<void(size_t)>& on_switch) {
  on_switch_ = on_switch;
  while (fibers_.size() < fibers.size()) {
    fibers_.push_back(std::make_unique<Fiber>());
    fibers_.back()->stack = std::make_unique<std::byte[]>(kStackBytes);
  }
  for (auto& fiber : fibers_) fiber->done = true;
  for (size_t i = 0; i < fibers.size(); ++i) {
    Fiber& fiber = *fibers_[i];
    fiber.body = fibers[i];
    fiber.ready = nullptr;
    fiber.done = false;
    fiber.context.Make(fiber.stack.get(), kStackBytes, &Enter, this);
  }
  running_ = fibers.size();  // nobody
  for (;;) {
    const std::vector<size_t> ready = ReadyOthers();
    if (ready.empty()) break;
    next_ = ready[Choose(ready.size())];
    // Until a fiber blocks or ends; preemptions come back here as well.
    do {
      running_ = next_;
      fibers_[running_]->ready = nullptr;
      absl::StrAppend(&trace_, running_, " ");
      on_switch_(running_);
      next_ = fibers.size();
      sim::FiberContext::Switch(main_, fibers_[running_]->context);
    } while (next_ != fibers.size());
    running_ = fibers.size();
  }
  for (const auto& fiber : fibers_) {
    if (!fiber->done) return false;
  }
  return true;
}

void FiberSchedules::Enter(void* self) {
  auto& schedules = *static_cast<FiberSchedules*>(self);
  Fiber& fiber = *schedules.fibers_[schedules.running_];
  fiber.body();
  fiber.done = true;
  schedules.LeaveRunning();
}

void FiberSchedules::SwitchPoint() {
  if (preemptions_ == options_.preemptions_max) return;
  const std::vector<size_t> others = ReadyOthers();
  if (others.empty()) return;
  const size_t chosen = Choose(others.size() + 1);
  if (chosen == 0) return;
  ++preemptions_;
  absl::StrAppend(&trace_, "* ");
  next_ = others[chosen - 1];
  LeaveRunning();
}

void FiberSchedules::BlockUntil(std::function<bool()> ready) {
  if (ready()) return;
  fibers_[running_]->ready = std::move(ready);
  LeaveRunning();
}

void FiberSchedules::LeaveRunning() {
  sim::FiberContext::Switch(fibers_[running_]->context, main_);
}

size_t FiberSchedules::Choose(size_t options) {
  if (options == 1) return 0;
  if (next_choice_ == choices_.size()) choices_.push_back({0, options});
  const Choice& choice = choices_[next_choice_++];
  ALPHEUS_CHECK(choice.options == options,
                "fibers are deterministic (fiber_schedules.h)");
  return choice.chosen;
}

std::vector<size_t> FiberSchedules::ReadyOthers() const {
  std::vector<size_t> ready;
  for (size_t i = 0; i < fibers_.size(); ++i) {
    const Fiber& fiber = *fibers_[i];
    if (i == running_ || fiber.done) continue;
    if (!fiber.ready || fiber.ready()) ready.push_back(i);
  }
  return ready;
}

void FiberWaiter::Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
                       Deadline) {
  schedules_.BlockUntil([&generation, seen] {
    return generation.load(std::memory_order_seq_cst) != seen;
  });
}

}  // namespace alpheus::testing
