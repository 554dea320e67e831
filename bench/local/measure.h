// SPDX-License-Identifier: Apache-2.0
// measure: runs all candidates of one record size by turns and reduces their
// times.
//
// A round gives each candidate one lap of its ring (at least), in batches; the
// order of candidates is rotated from round to round. The figure of a round is
// the median of its batches, the reported one the median of the rounds. An
// uncounted lap before the first round maps all pages and warms all alike.
#ifndef ALPHEUS_BENCH_LOCAL_MEASURE_H_
#define ALPHEUS_BENCH_LOCAL_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/local/candidate.h"

namespace alpheus::bench {

struct MeasureOptions {
  uint64_t rounds = 7;
  uint64_t batch_ops = 2000;  // appends that are timed together
};

// One candidate at one record size; times in ns per append.
struct Measurement {
  std::string name;
  std::vector<double> append_ns;     // append_ns[rounds]
  std::vector<double> batch_min_ns;  // fastest batch, batch_min_ns[rounds]
  uint64_t appends = 0;
  uint64_t reclaims = 0;
  uint64_t reclaimed_records = 0;
  int64_t reclaim_ns = 0;        // of all reclaims, on the core
  PersistenceCounters counters;  // of all appends

  double MedianAppendNs() const;
  // What one record adds to the next cleaning or rewinding; 0 if there was
  // none.
  double ReclaimNsPerRecord() const;
  // What a record costs its user.
  double TotalNs() const { return MedianAppendNs() + ReclaimNsPerRecord(); }
};

// All candidates at one record size.
struct Comparison {
  uint64_t payload_bytes = 0;
  uint64_t batches = 0;  // of each candidate in each round
  std::vector<Measurement> floors;
  Measurement alpheus;
  Measurement pmemlog;

  // The cheapest of the floors.
  const Measurement& Floor() const;
};

// Errors: whatever a candidate returns.
absl::StatusOr<Comparison> Compare(const Workload& workload,
                                   const MeasureOptions& options);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_MEASURE_H_
