// SPDX-License-Identifier: Apache-2.0
#include "log/core/reserver.h"

namespace alpheus {

Reserver::Next Reserver::Unpack(uint64_t word, uint64_t durable_lsn,
                                uint64_t reuse_limit) const {
  const uint64_t head = reuse_limit - capacity_;
  Next next;
  next.lsn = Lsn(Rebuild(durable_lsn, word >> kLineBits, kLsnMask));
  next.tail = RingOffset(
      Rebuild(head / kLineBytes, word & kLineMask, kLineMask) * kLineBytes);
  return next;
}

Reserver::Outcome Reserver::TryReserve(uint64_t record_bytes, Space* space) {
  // Acquire: the references below must not be older than the word.
  uint64_t word = word_.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t durable = durable_lsn_.load(std::memory_order_acquire);
    const uint64_t limit = reuse_limit_.load(std::memory_order_acquire);
    const Next now = Unpack(word, durable, limit);
    space->lsn = now.lsn;
    space->begin = now.tail;
    space->offset = now.tail;
    const uint64_t until_end = capacity_ - now.tail.value % capacity_;
    if (record_bytes > until_end) space->offset = now.tail + until_end;
    space->end = space->offset + record_bytes;

    Outcome outcome = Outcome::kReserved;
    if (now.lsn.value - durable > exposure_records_max_) {
      outcome = Outcome::kExposureFull;
    } else if (space->end.value > limit) {
      outcome = Outcome::kRingFull;
    }
    if (outcome != Outcome::kReserved) {
      // A refusal, too, counts only if the word was current.
      const uint64_t current = word_.load(std::memory_order_acquire);
      if (current == word) return outcome;
      word = current;
      continue;
    }
    // Acq_rel: the next thread to reserve sees what this one saw of durable
    // and limit; on failure `word` is reloaded before the references.
    if (word_.compare_exchange_weak(word, Pack({space->lsn + 1, space->end}),
                                    std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      return Outcome::kReserved;
    }
  }
}

Reserver::Next Reserver::next() const {
  uint64_t word = word_.load(std::memory_order_acquire);
  for (;;) {
    const Next now = Unpack(word, durable_lsn_.load(std::memory_order_acquire),
                            reuse_limit_.load(std::memory_order_acquire));
    const uint64_t current = word_.load(std::memory_order_acquire);
    if (current == word) return now;
    word = current;
  }
}

}  // namespace alpheus
