// SPDX-License-Identifier: Apache-2.0
// scenarios: the measurements, one file each. Each adds its results to the
// report.
#ifndef ALPHEUS_BENCH_LOCAL_SCENARIOS_SCENARIOS_H_
#define ALPHEUS_BENCH_LOCAL_SCENARIOS_SCENARIOS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/result.h"

namespace alpheus::bench {

// Amount of work of each; presets are in settings.cc.
struct Settings {
  std::string preset;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;
  uint64_t ring_bytes = 0;
  std::vector<uint64_t> sizes;         // of records, bytes
  std::vector<uint64_t> thread_sizes;  // the same, for varying threads
  std::vector<int> threads;
  uint64_t batch_ops = 0;  // appends timed together, one thread
  int64_t slice_ns = 0;    // of several threads
  uint64_t slices = 0;     // per round, fewer with many threads; median counts
  std::vector<int> policy_threads;
  uint64_t exposure_ops = 0;  // per thread
  uint64_t stage_ops = 0;     // per round
  int tenants = 0;
  std::vector<uint64_t> tenant_sizes;
  uint64_t tenant_ring_bytes = 0;
  std::vector<uint64_t> recovery_mib;    // of logs with records of 1 KiB
  std::vector<uint64_t> recovery_sizes;  // records of the largest log
  std::vector<uint64_t> opening_mib;     // of logs with records of 1 KiB
};

// Presets: minutes; within a minute; within seconds, for tests: its figures
// mean nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

// Measures append + force of one thread, every candidate and policy, by record
// size.
absl::Status MeasureAppend(const Settings& settings, Report* report);
// Measures records per second by number of threads.
absl::Status MeasureThreads(const Settings& settings, Report* report);
// Measures force policies: throughput, exposure, cache misses.
absl::Status MeasurePolicies(const Settings& settings, Report* report);
// Measures force frequencies beside forcing each record, by size and threads.
absl::Status MeasureFrequencies(const Settings& settings, Report* report);
// Measures the stages of an append.
absl::Status MeasureStages(const Settings& settings, Report* report);
// Measures many logs with one thread each.
absl::Status MeasureTenants(const Settings& settings, Report* report);
// Measures the time from a file that was not closed to the last record visited.
absl::Status MeasureRecovery(const Settings& settings, Report* report);
// Measures the opening alone, by size of the log.
absl::Status MeasureOpening(const Settings& settings, Report* report);

struct Scenario {
  std::string_view name;
  absl::Status (*measure)(const Settings& settings, Report* report);
  // If false, its main thread is pinned, and with it all threads that the logs
  // start.
  bool all_cores = false;
};
inline constexpr std::array<Scenario, 8> kScenarios = {
    {{"append", MeasureAppend},
     {"threads", MeasureThreads},
     {"policies", MeasurePolicies},
     {"frequencies", MeasureFrequencies},
     {"stages", MeasureStages},
     {"tenants", MeasureTenants},
     {"recovery", MeasureRecovery, true},
     {"opening", MeasureOpening, true}}};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_SCENARIOS_SCENARIOS_H_
