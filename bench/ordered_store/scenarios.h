// SPDX-License-Identifier: Apache-2.0
// scenarios: the measurements of the ordered store.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_SCENARIOS_H_
#define ALPHEUS_BENCH_ORDERED_STORE_SCENARIOS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/result.h"

namespace alpheus::bench::ordered_store {

struct Settings {
  std::string preset;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;
  uint64_t ring_bytes = 0;  // of each log
  uint64_t keys = 0;        // in the store
  std::vector<int> threads;
  int64_t slice_ns = 0;     // of all threads
  uint64_t slices = 0;      // per round, fewer with many threads
  uint64_t commit_ops = 0;  // per thread and round; some are timed
};

// Presets: about a minute; less of all; hardly anything, for tests: its figures
// mean nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

inline constexpr std::string_view kZipfian = "zipfian";
inline constexpr std::string_view kUniform = "uniform";
inline constexpr std::string_view kCommit = "commit";

// Measures read-modify-writes per second by number of threads, on random keys:
// drawn like YCSB's, or uniform.
absl::Status MeasureRmw(const Settings& settings, std::string_view scenario,
                        Report* report);
// Measures the time from the start of a change until it is durable, and the
// number of changes that are not durable when one is written.
absl::Status MeasureCommits(const Settings& settings, Report* report);

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_SCENARIOS_H_
