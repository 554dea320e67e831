// SPDX-License-Identifier: Apache-2.0
// fiber_stack: the stack of a simulated thread.
//
// Idea: the stack is mapped alone, above a page without access. A thread that
// overflows dies of a signal at once, instead of overwriting other memory and
// falsifying the run.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_FIBER_STACK_H_
#define ALPHEUS_TOOLS_SIM_WORLD_FIBER_STACK_H_

#include <cstddef>
#include <utility>

namespace alpheus::sim {

class FiberStack {
 public:
  // Recovery runs on them.
  static constexpr size_t kBytes = 1024 << 10;

  // None.
  FiberStack() = default;
  FiberStack(FiberStack&& other) noexcept
      : mapped_(std::exchange(other.mapped_, nullptr)) {}
  FiberStack& operator=(FiberStack&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~FiberStack();

  static FiberStack Map();

  // Returns the lowest usable byte, of kBytes. Requires: mapped.
  std::byte* bottom() const;

 private:
  std::byte* mapped_ = nullptr;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_FIBER_STACK_H_
