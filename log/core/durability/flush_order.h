// SPDX-License-Identifier: Apache-2.0
// flush_order: in which order a batch reaches the own replica and the backups.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_FLUSH_ORDER_H_
#define ALPHEUS_LOG_CORE_DURABILITY_FLUSH_ORDER_H_

namespace alpheus {

// What is done first with finished records (Arcadia §5.3). Whatever it is, the
// own replica counts only after its own fence (P-H22).
enum class FlushOrder {
  // Post, then flush and fence: the adapter reads the bytes from the cache, and
  // the fence runs while they are on their way. The fastest in the paper.
  kRemoteFirst,
  // Flush and fence, then post.
  kLocalFirst,
  // Start the flushes, post, then fence. Where flushes start nothing by
  // themselves (msync) the same as kRemoteFirst.
  kParallel,
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_FLUSH_ORDER_H_
