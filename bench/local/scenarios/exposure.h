// SPDX-License-Identifier: Apache-2.0
// exposure: how many completed records a crash would take, seen at each
// completion, under a force policy.
//
// Idea: threads append step by step; when a record is completed, and before it
// is forced, its thread notes how far the highest completed LSN is ahead of the
// durable one. So threads that wait in a force count with their records.
#ifndef ALPHEUS_BENCH_LOCAL_SCENARIOS_EXPOSURE_H_
#define ALPHEUS_BENCH_LOCAL_SCENARIOS_EXPOSURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "bench/harness/candidate.h"
#include "bench/harness/force_policy.h"

namespace alpheus::bench {

struct ExposureRun {
  ForcePolicy policy;
  int threads = 1;
  uint64_t ops_per_thread = 0;
};

// counts[n]: completions that saw n records exposed; the last one also counts
// all that saw more.
absl::StatusOr<std::vector<uint64_t>> SampleExposure(
    const Workload& workload, const ExposureRun& run,
    const std::vector<int>& cores);
// The same of a log that is there. Requires: nothing was appended to it.
absl::StatusOr<std::vector<uint64_t>> SampleExposure(
    Log& log, uint64_t payload_bytes, const ExposureRun& run,
    const std::vector<int>& cores);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_SCENARIOS_EXPOSURE_H_
