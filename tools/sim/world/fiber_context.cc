// SPDX-License-Identifier: Apache-2.0
// A fortified longjmp goes up its own stack only.
#undef _FORTIFY_SOURCE

#include "tools/sim/world/fiber_context.h"

#include <cstdint>

#include "absl/base/config.h"
#include "log/base/check.h"

namespace alpheus::sim {

void FiberContext::Make(void* stack, size_t bytes, void (*entry)(void*),
                        void* argument) {
  entry_ = entry;
  argument_ = argument;
  has_begun_ = false;
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&Enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void FiberContext::Enter(unsigned high, unsigned low) {
  auto* self =
      reinterpret_cast<FiberContext*>(static_cast<uintptr_t>(high) << 32 | low);
  // Else AddressSanitizer forgets all that is on the stack at each switch to
  // it, by mapping anew what it knows of it: most of a run.
  self->context_.uc_stack.ss_size = 0;
  self->entry_(self->argument_);
  ALPHEUS_CHECK(false, "a fiber's entry does not return");
}

void FiberContext::Switch(FiberContext& from, FiberContext& to) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  swapcontext(&from.context_, &to.context_);
#else
  if (_setjmp(from.left_) != 0) return;
  if (to.has_begun_) _longjmp(to.left_, 1);
  to.has_begun_ = true;
  setcontext(&to.context_);
#endif
}

}  // namespace alpheus::sim
