// SPDX-License-Identifier: Apache-2.0
// candidate: something that appends records of one size, to be timed.
//
// The time of a batch is taken inside the candidate, around its plain loop, so
// that neither a virtual call nor the clock is paid per append. What a full
// log costs (cleaning, rewinding) is timed apart: it comes once per lap of the
// ring, in one batch of hundreds, and would vanish from a median.
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATE_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATE_H_

#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "log/pmem/counters.h"

namespace alpheus::bench {

inline int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Time that this thread had the core. For work of many milliseconds, which on a
// shared machine nearly always loses the core in between; too dear for a batch.
inline int64_t ThreadCpuNanos() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What all candidates of one comparison have in common.
struct Workload {
  std::string folder;          // of the region files
  uint64_t ring_bytes = 0;     // what each has for its records
  uint64_t payload_bytes = 0;  // of each record
};

struct BatchResult {
  int64_t append_ns = 0;  // of all appends, reclaiming left out
  // Of the core, by ThreadCpuNanos; 0 if the batch met no full log.
  int64_t reclaim_ns = 0;
  int64_t reclaim_elapsed_ns = 0;
  uint64_t reclaims = 0;
  uint64_t reclaimed_records = 0;
  // Of the appends alone; only of stores through Alpheus' own primitive.
  PersistenceCounters counters;
};

class Candidate {
 public:
  virtual ~Candidate() = default;

  virtual std::string name() const = 0;

  // Appends `ops` records, each durable before the next begins.
  // Errors: whatever the log returns other than "full".
  virtual absl::StatusOr<BatchResult> Run(uint64_t ops) = 0;
};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATE_H_
