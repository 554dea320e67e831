// SPDX-License-Identifier: Apache-2.0
// scenarios: what is measured, one file each. Each adds its measurements to the
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

// How much of each is done; presets are in settings.cc.
struct Settings {
  std::string preset;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;
  uint64_t ring_bytes = 0;
  std::vector<uint64_t> sizes;         // of records, bytes
  std::vector<uint64_t> thread_sizes;  // the same, where threads vary
  std::vector<int> threads;
  uint64_t batch_ops = 0;  // appends that are timed together, one thread
  int64_t slice_ns = 0;    // of several threads
  uint64_t slices = 0;     // per round, fewer of many threads; median counts
  std::vector<int> policy_threads;
  uint64_t exposure_ops = 0;  // per thread
  uint64_t stage_ops = 0;     // per round
  int tenants = 0;
  std::vector<uint64_t> tenant_sizes;
  uint64_t tenant_ring_bytes = 0;
  std::vector<uint64_t> recovery_mib;    // of logs with records of 1 KiB
  std::vector<uint64_t> recovery_sizes;  // records of the largest log
};

// Minutes; within a minute; within seconds, for tests: its figures mean
// nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

// Append + force of one thread, every candidate and policy, by record size.
absl::Status MeasureAppend(const Settings& settings, Report* report);
// Records per second by number of threads.
absl::Status MeasureThreads(const Settings& settings, Report* report);
// Force policies: throughput, exposure, cache misses.
absl::Status MeasurePolicies(const Settings& settings, Report* report);
// Force frequencies beside forcing each record, by size and threads.
absl::Status MeasureFrequencies(const Settings& settings, Report* report);
// Where the time of an append goes.
absl::Status MeasureStages(const Settings& settings, Report* report);
// Many logs with one thread each.
absl::Status MeasureTenants(const Settings& settings, Report* report);
// From a file that was not closed to the last record visited.
absl::Status MeasureRecovery(const Settings& settings, Report* report);

struct Scenario {
  std::string_view name;
  absl::Status (*measure)(const Settings& settings, Report* report);
  // Else its main thread is pinned, and with it what the logs start.
  bool all_cores = false;
};
inline constexpr std::array<Scenario, 7> kScenarios = {
    {{"append", MeasureAppend},
     {"threads", MeasureThreads},
     {"policies", MeasurePolicies},
     {"frequencies", MeasureFrequencies},
     {"stages", MeasureStages},
     {"tenants", MeasureTenants},
     {"recovery", MeasureRecovery, true}}};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_SCENARIOS_SCENARIOS_H_
