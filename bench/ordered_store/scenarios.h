// SPDX-License-Identifier: Apache-2.0
// scenarios: what is measured of the ordered store.
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
  uint64_t keys = 0;        // that are there
  std::vector<int> threads;
  int64_t slice_ns = 0;     // of all threads
  uint64_t slices = 0;      // per round, fewer of many threads
  uint64_t commit_ops = 0;  // per thread and round, of which some are timed
};

// Some minute; less of all; hardly anything, for tests: its figures mean
// nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

inline constexpr std::string_view kZipfian = "zipfian";
inline constexpr std::string_view kUniform = "uniform";
inline constexpr std::string_view kCommit = "commit";

// Read-modify-writes per second by number of threads, of keys by lot: as YCSB
// draws them, or all alike.
absl::Status MeasureRmw(const Settings& settings, std::string_view scenario,
                        Report* report);
// From the start of a change until it is durable, and how many changes are not
// when one is written.
absl::Status MeasureCommits(const Settings& settings, Report* report);

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_SCENARIOS_H_
