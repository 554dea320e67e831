// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/fiber_stack.h"

#include <sys/mman.h>

#include "log/base/check.h"

namespace alpheus::sim {
namespace {

// A page of every machine that this runs on, and more: a frame that is larger
// than the guard could step over it.
constexpr size_t kGuardBytes = 64 << 10;

}  // namespace

FiberStack::~FiberStack() {
  if (mapped_ != nullptr) munmap(mapped_, kGuardBytes + kBytes);
}

FiberStack FiberStack::Map() {
  // The stack is not populated: most of it is never used.
  void* const mapped =
      mmap(nullptr, kGuardBytes + kBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  ALPHEUS_CHECK(mapped != MAP_FAILED, "there is memory for a stack");
  ALPHEUS_CHECK(mprotect(mapped, kGuardBytes, PROT_NONE) == 0,
                "a stack has a guard below it");
  FiberStack stack;
  stack.mapped_ = static_cast<std::byte*>(mapped);
  return stack;
}

std::byte* FiberStack::bottom() const { return mapped_ + kGuardBytes; }

}  // namespace alpheus::sim
