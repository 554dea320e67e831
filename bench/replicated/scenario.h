// SPDX-License-Identifier: Apache-2.0
// scenario: append + force to a quorum, by size of the record, number of
// backups and way of waiting; every candidate by turns.
#ifndef ALPHEUS_BENCH_REPLICATED_SCENARIO_H_
#define ALPHEUS_BENCH_REPLICATED_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/local/result.h"

namespace alpheus::bench::replicated {

struct Settings {
  std::string preset;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;
  uint64_t ring_bytes = 0;
  std::vector<uint64_t> sizes;  // of payloads, bytes
  std::vector<int> backups;
  uint64_t warm_up_ops = 0;  // of a turn; not timed
  uint64_t spin_ops = 0;     // of a turn; timed, each for itself
  uint64_t block_ops = 0;
};

// Minutes; within a minute; within seconds, for tests: its figures mean
// nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

// Adds p50, p99, p99.9 and mean of each candidate to the report.
absl::Status MeasureLatency(const Settings& settings, Report* report);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_SCENARIO_H_
