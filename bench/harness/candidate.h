// SPDX-License-Identifier: Apache-2.0
// candidate: something that appends records of one size, to be timed.
//
// The time of a batch is taken inside the candidate, around its plain loop, so
// that neither a virtual call nor the clock is paid per append. What a full
// log costs (cleaning, rewinding, zeroing) is timed apart: it comes once per
// lap of the ring, in one batch of hundreds, and would vanish from a median.
//
// Thread safety: Run is called by up to Workload::workers threads at once, each
// with a number of its own.
#ifndef ALPHEUS_BENCH_HARNESS_CANDIDATE_H_
#define ALPHEUS_BENCH_HARNESS_CANDIDATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "log/pmem/counters.h"

namespace alpheus::bench {

// What all candidates of one comparison have in common.
struct Workload {
  std::string folder;          // of the region files
  uint64_t ring_bytes = 0;     // what each has for its records
  uint64_t payload_bytes = 0;  // of each record
  int workers = 1;             // threads that may call Run at once
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

  // Appends `ops` records, each as durable as the candidate's policy makes it
  // before the next begins.
  // Requires: 0 <= worker < Workload::workers.
  // Errors: whatever the log returns other than "full".
  virtual absl::StatusOr<BatchResult> Run(int worker, uint64_t ops) = 0;
};

using MakeCandidate =
    std::function<absl::StatusOr<std::unique_ptr<Candidate>>(const Workload&)>;

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_CANDIDATE_H_
