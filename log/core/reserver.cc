// SPDX-License-Identifier: Apache-2.0
#include "log/core/reserver.h"

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

}  // namespace alpheus
