// SPDX-License-Identifier: Apache-2.0
// fiber_context: where a fiber stands, and the switch to another one.
//
// Idea: swapcontext also saves and restores the mask of signals, two calls of
// the system per switch, which took two fifths of a simulated cluster. So
// ucontext only begins a fiber on its stack; from then on _setjmp and _longjmp,
// which leave the mask alone, go between those that have begun. Sanitizers
// know of swapcontext, and not of jumps to another stack: built with one, every
// switch is a swapcontext.
//
// Invariants:
//   FIB1. What is left is gone on with where it was left, on its own stack,
//         with all that its caller has in registers.
//   FIB2. A fiber that is never switched to again costs nothing and destroys
//         nothing: its stack may be used by another one.
// Thread safety: one thread of the operating system. Signals must have the same
// mask in all fibers.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_FIBER_CONTEXT_H_
#define ALPHEUS_TOOLS_SIM_WORLD_FIBER_CONTEXT_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>

namespace alpheus::sim {

class FiberContext {
 public:
  // That of who runs: Switch fills it in.
  FiberContext() = default;
  FiberContext(const FiberContext&) = delete;
  FiberContext& operator=(const FiberContext&) = delete;

  // The next switch to it begins entry(argument), which must not return, on the
  // stack of `bytes` bytes from `stack` on. This object must stay where it is.
  void Make(void* stack, size_t bytes, void (*entry)(void*), void* argument);

  // `from` is where the caller stands, and is left; returns when somebody
  // switches to `from`. Requires: `to` was made, or left.
  static void Switch(FiberContext& from, FiberContext& to);

 private:
  static void Enter(unsigned high, unsigned low);

  ucontext_t context_;  // where it begins; with a sanitizer, where it stands
  [[maybe_unused]] jmp_buf left_;  // where it stands, once it has begun
  bool has_begun_ = true;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_FIBER_CONTEXT_H_
