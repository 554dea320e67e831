// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/libpmem_persistence.h"

#include <libpmem.h>

#include "log/base/clock.h"

namespace alpheus {

bool LibpmemPersistence::DetectAutoFlush() {
  return pmem_has_auto_flush() == 1;
}

void LibpmemPersistence::FlushLines(const void* address, size_t bytes) {
  pmem_flush(address, bytes);
}

void LibpmemPersistence::Drain() { pmem_drain(); }

void LibpmemPersistence::SpinEmulatedLatency() const {
  const Clock& clock = Clock::Real();
  const int64_t until = clock.NowNanos() + options_.emulated_latency_ns;
  while (clock.NowNanos() < until) {
  }
}

}  // namespace alpheus
