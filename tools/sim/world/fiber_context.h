// SPDX-License-Identifier: Apache-2.0
// fiber_context: the state of a fiber, and the switch to another one.
//
// Idea: swapcontext also saves and restores the signal mask by two system calls
// per switch, which took two fifths of a simulated cluster's time. So ucontext
// only starts a fiber on its stack. After that _setjmp and _longjmp, which
// leave the mask alone, switch between started fibers. Sanitizers know
// swapcontext, and not jumps to another stack: built with one, every switch is
// a swapcontext.
//
// Invariants:
//   FIB1. A fiber continues where it was left, on its own stack, with all
//         registers of its caller.
//   FIB2. A fiber that is never switched to again costs nothing and destroys
//         nothing: another one may use its stack.
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
  // State of the running fiber; Switch fills it in.
  FiberContext() = default;
  FiberContext(const FiberContext&) = delete;
  FiberContext& operator=(const FiberContext&) = delete;

  // Prepares a fiber: the next switch to it calls entry(argument), which must
  // not return, on the stack of `bytes` bytes from `stack` on. This object must
  // not move.
  void Make(void* stack, size_t bytes, void (*entry)(void*), void* argument);

  // Saves the caller's state in `from` and switches to `to`; returns when
  // another fiber switches to `from`. Requires: `to` was made, or left.
  static void Switch(FiberContext& from, FiberContext& to);

 private:
  static void Enter(unsigned high, unsigned low);

  ucontext_t context_;             // start; with a sanitizer, the present state
  [[maybe_unused]] jmp_buf left_;  // present state, once it has begun
  bool has_begun_ = true;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_FIBER_CONTEXT_H_
