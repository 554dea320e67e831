// SPDX-License-Identifier: Apache-2.0
// append_bench: measures appends on the user's own medium, beside the least
// that the medium needs for the same bytes.
//
// Idea: runs take turns, several times: each floor (medium_floor.h), appends
// that nobody times one by one (throughput), and appends that are (latency,
// exposure). All threads of a run start together. A full log is cleaned through
// its last durable record, which counts for throughput and not for latency.
//
// Thread safety: one caller.
#ifndef ALPHEUS_TOOLS_CLI_BENCH_APPEND_BENCH_H_
#define ALPHEUS_TOOLS_CLI_BENCH_APPEND_BENCH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/pmem/region.h"
#include "tools/cli/bench/latency_histogram.h"

namespace alpheus::cli {

struct AppendBenchOptions {
  std::string folder;  // gets files that are removed as soon as they are open
  uint64_t region_bytes = 64 << 20;
  uint64_t payload_bytes = 64;
  int threads = 1;
  uint32_t frequency = 1;   // of ForceOptions
  int64_t duration_ns = 0;  // of all runs together, about
};

struct AppendBenchResult {
  RegionMedium medium = RegionMedium::kAnonymous;
  double records_per_second = 0;        // median of the turns
  double floor_records_per_second = 0;  // the same, of the fastest floor
  std::string floor_way;                // how that one persists
  uint64_t cleanings = 0;
  LatencyHistogram latency_ns;  // one clock call included
  LatencyHistogram exposure;    // records, seen after each append
  double clock_ns = 0;          // what a call of the clock takes
};

// Errors: InvalidArgument (sizes); ResourceExhausted (file system full);
// whatever the log returns.
absl::StatusOr<AppendBenchResult> RunAppendBench(
    const AppendBenchOptions& options, const Clock& clock);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_BENCH_APPEND_BENCH_H_
