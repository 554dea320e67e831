// SPDX-License-Identifier: Apache-2.0
// asymmetric_barrier: a store-load barrier that is free on one of its two
// sides.
//
// Idea: two threads each store, then load the other's word; at least one must
// see the other's store. Instead of a fence on each side, the rare side makes
// the kernel run a fence on every thread of the process (membarrier(2)). The
// frequent side only keeps the compiler from moving its load. Where the kernel
// has no membarrier, both sides pay for a fence. They do so too where the rare
// side is not rare: membarrier interrupts every core that runs the process,
// which costs more than many fences.
//
// Thread safety: all functions concurrently.
// References: membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED.
#ifndef ALPHEUS_LOG_BASE_ASYMMETRIC_BARRIER_H_
#define ALPHEUS_LOG_BASE_ASYMMETRIC_BARRIER_H_

#include <atomic>

namespace alpheus {

namespace internal {

// True once the process has registered for membarrier(2).
extern const bool kMembarrierWorks;

// Runs a fence on every thread of the process, by the kernel.
void FenceAllThreads();

}  // namespace internal

class AsymmetricBarrier {
 public:
  enum class PaidBy { kRareSide, kBothSides };

  explicit AsymmetricBarrier(PaidBy paid_by)
      : is_light_free_(paid_by == PaidBy::kRareSide &&
                       internal::kMembarrierWorks) {}

  // Orders a store before a load, for the frequent side.
  void Light() const {
    if (is_light_free_) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  // Orders a store before a load, for the rare side. A system call, unless both
  // sides pay.
  void Heavy() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_light_free_) internal::FenceAllThreads();
  }

 private:
  const bool is_light_free_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_ASYMMETRIC_BARRIER_H_
