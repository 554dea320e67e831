// SPDX-License-Identifier: Apache-2.0
// writer_watch: tells whether one thread writes the log, or several do.
//
// Idea: every seventh record is examined. If its thread differs from that of
// the last one examined, several threads write; that result holds for a
// thousand records, and for half of them no thread looks again. So a lone
// writer only reads two words, and several writers seldom store. (A line that
// one of them stores is a cache miss for the others.)
// Threads that take turns in sevens are not noticed. The answer only selects
// the faster of two ways.
//
// Thread safety: all members concurrently.
#ifndef ALPHEUS_LOG_CORE_WRITE_WRITER_WATCH_H_
#define ALPHEUS_LOG_CORE_WRITE_WRITER_WATCH_H_

#include <atomic>
#include <cstdint>

#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/base/thread_token.h"

namespace alpheus {

class WriterWatch {
 public:
  static constexpr uint64_t kEvery = 7;
  static constexpr uint64_t kHoldsFor = 1024;  // records

  // Returns whether several threads write. Called by the thread that reserved
  // `lsn`.
  bool IsShared(Lsn lsn) {
    uint64_t until = shared_until_.load(std::memory_order_relaxed);
    if (lsn.value % kEvery == 0 && until < lsn.value + kHoldsFor / 2) {
      until = Check(lsn, until);
    }
    return lsn.value < until;
  }

 private:
  uint64_t Check(Lsn lsn, uint64_t until) {
    const uint32_t writer = ThreadToken();
    const uint32_t before = writer_.load(std::memory_order_relaxed);
    if (before == writer) return until;
    writer_.store(writer, std::memory_order_relaxed);
    if (before == 0) return until;
    until = lsn.value + kHoldsFor;
    shared_until_.store(until, std::memory_order_relaxed);
    return until;
  }

  // On a line that is seldom written.
  alignas(kLineBytes) std::atomic<uint64_t> shared_until_{0};
  std::atomic<uint32_t> writer_{0};  // of the last record examined
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_WRITER_WATCH_H_
