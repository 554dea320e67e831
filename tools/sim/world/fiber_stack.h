// SPDX-License-Identifier: Apache-2.0
// fiber_stack: the stack of a simulated thread.
//
// Idea: mapped by itself, above a page that nobody may touch. A thread that
// needs more than there is dies of a signal at once, where it would otherwise
// write over whatever lies there and make the run lie.
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

  // The lowest byte that may be used, of kBytes. Requires: mapped.
  std::byte* bottom() const;

 private:
  std::byte* mapped_ = nullptr;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_FIBER_STACK_H_
