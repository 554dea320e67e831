// SPDX-License-Identifier: Apache-2.0
#include "log/base/asymmetric_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log/base/check.h"

namespace alpheus {
namespace {

bool Membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

// Registered before main, so before any thread uses a barrier. A log opened by
// an earlier static constructor finds false and pays for fences.
const bool internal::kMembarrierWorks =
    Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);

void internal::FenceAllThreads() {
  if (Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // Registers again where the registration was lost, over a fork for example.
  Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  ALPHEUS_CHECK(Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
                "a registered process can use membarrier(2)");
}

}  // namespace alpheus
