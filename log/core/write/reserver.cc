// SPDX-License-Identifier: Apache-2.0
#include "log/core/write/reserver.h"

namespace alpheus {

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

uint64_t Reserver::Exposed() const {
  uint64_t word = word_.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t durable = durable_lsn_.load(std::memory_order_acquire);
    const Next now =
        Unpack(word, durable, reuse_limit_.load(std::memory_order_acquire));
    const uint64_t current = word_.load(std::memory_order_acquire);
    // The word was current when `durable` was read, so the two belong together.
    if (current == word) return now.lsn.value - 1 - durable;
    word = current;
  }
}

bool Reserver::TryQuiesce() {
  uint64_t word = word_.load(std::memory_order_acquire);
  const uint64_t durable = durable_lsn_.load(std::memory_order_acquire);
  const Next next =
      Unpack(word, durable, reuse_limit_.load(std::memory_order_acquire));
  const bool idle = next.lsn.value == durable + 1;
  if ((word & kQuiescedBit) != 0 || !idle) return false;
  // Acquire: sees what the last appender wrote. Release: to quiesce comes
  // before what the caller does under it.
  return word_.compare_exchange_strong(word, word | kQuiescedBit,
                                       std::memory_order_acq_rel);
}

bool Reserver::TryHold() {
  const uint64_t before =
      word_.fetch_or(kQuiescedBit, std::memory_order_acq_rel);
  return (before & kQuiescedBit) == 0;
}

void Reserver::Unhold() {
  word_.fetch_and(~kQuiescedBit, std::memory_order_release);
}

}  // namespace alpheus
