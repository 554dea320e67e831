// SPDX-License-Identifier: Apache-2.0
// counters: counts of the persistence primitive's work, per thread.
//
// Speed here is a count before it is a time: one fence per forced record, no
// flush of clean lines. The counters are plain thread-local integers, cheap
// enough to stay on in release builds; tests assert them per operation.
//
// Invariants:
//   TPC1. To count costs an append at most 8 instructions, none of them locked
//         (instruction_count_test.cc).
// Thread safety: each thread reads and writes its own.
#ifndef ALPHEUS_LOG_PMEM_COUNTERS_H_
#define ALPHEUS_LOG_PMEM_COUNTERS_H_

#include <cstdint>

namespace alpheus {

struct PersistenceCounters {
  uint64_t fences = 0;         // store fences that drain flushes and NT stores
  uint64_t flushed_lines = 0;  // lines given to the flush instruction
  uint64_t copied_bytes = 0;   // bytes copied through the cache
  uint64_t msyncs = 0;         // system calls of the msync backend
};

// The calling thread's counters since it started.
//
// Their place is fixed when the program is loaded: to count takes two
// instructions. Otherwise each count in a shared library is a call, around
// which an append saves its registers.
inline PersistenceCounters& ThreadPersistenceCounters() {
  static constinit thread_local PersistenceCounters counters
      [[gnu::tls_model("initial-exec")]];
  return counters;
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_COUNTERS_H_
