// SPDX-License-Identifier: Apache-2.0
// flush_order: the order in which a batch reaches the own replica and the
// backups.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_FLUSH_ORDER_H_
#define ALPHEUS_LOG_CORE_DURABILITY_FLUSH_ORDER_H_

namespace alpheus {

// Order for finished records (Arcadia §5.3). In all of them the own replica
// counts only after its own fence (P-H22).
enum class FlushOrder {
  // Posts, then flushes and fences: the adapter reads the bytes from the cache,
  // and the fence runs while they travel. The fastest in the paper.
  kRemoteFirst,
  // Flushes and fences, then posts.
  kLocalFirst,
  // Starts the flushes, posts, then fences. Where flushes start nothing by
  // themselves (msync), equal to kRemoteFirst.
  kParallel,
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_FLUSH_ORDER_H_
