// SPDX-License-Identifier: Apache-2.0
// scenarios: the measurements of a log with backups, one file each. Each adds
// its results to the report.
#ifndef ALPHEUS_BENCH_REPLICATED_SCENARIOS_SCENARIOS_H_
#define ALPHEUS_BENCH_REPLICATED_SCENARIOS_SCENARIOS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/result.h"

namespace alpheus::bench::replicated {

// Amount of work of each; presets are in settings.cc.
struct Settings {
  std::string preset;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;
  uint64_t ring_bytes = 0;
  std::vector<uint64_t> sizes;  // of payloads, bytes
  std::vector<int> backups;
  uint64_t warm_up_ops = 0;  // of a turn; not timed
  uint64_t spin_ops = 0;     // of a turn; each timed alone
  uint64_t block_ops = 0;
  std::vector<uint64_t> peer_sizes;
  std::vector<int> peer_quorums;       // of three copies
  std::vector<uint64_t> recovery_mib;  // of logs
  std::vector<int> many_backups;
  std::vector<uint64_t> many_sizes;   // with many backups
  std::vector<uint64_t> order_sizes;  // for the order of flushes
  std::vector<uint64_t> place_sizes;  // for the place of replicas
  std::vector<int> exposure_threads;
  uint64_t exposure_ops = 0;  // of all threads together
  std::vector<int> tenants;
  uint64_t tenant_ops = 0;             // of all logs together
  uint64_t resync_mib = 0;             // missed by the member
  std::vector<uint64_t> resync_sizes;  // of records appended meanwhile
};

// Presets: minutes; within some minutes; within seconds, for tests: its figures
// mean nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

// Measures append + force to a quorum, by size of the record, number of backups
// and way of waiting, beside sockets alone.
absl::Status MeasureLatency(const Settings& settings, Report* report);
// Measures the same with 64 bytes over RDMA adapters, beside their verbs alone;
// skipped where RdmaHosts() names none.
absl::Status MeasureVerbs(const Settings& settings, Report* report);
// Measures the same with three copies, beside etcd and Redis.
absl::Status MeasurePeers(const Settings& settings, Report* report);
// Measures the time from the replicas of a log that was not closed to the last
// record visited, with the primary's copy and without, beside a copy over a
// socket.
absl::Status MeasureRecovery(const Settings& settings, Report* report);

// Measures records forced sixteen at a time to two backups, beside sockets and
// Redis.
absl::Status MeasureBatches(const Settings& settings, Report* report);
// Measures none to five backups, waiting for all or the majority.
absl::Status MeasureBackups(const Settings& settings, Report* report);
// Measures force policies with two backups.
absl::Status MeasurePolicies(const Settings& settings, Report* report);
// Measures flush orders, and the share of copy and force.
absl::Status MeasureOrder(const Settings& settings, Report* report);
// Measures two copies: one here, or both on backups.
absl::Status MeasurePlaces(const Settings& settings, Report* report);
// Measures exposure and rate of force policies by number of threads, with one
// backup.
absl::Status MeasureExposure(const Settings& settings, Report* report);
// Measures many logs with one thread each, on the same two nodes.
absl::Status MeasureTenants(const Settings& settings, Report* report);
// Measures appends while a member resyncs, beside the same without it, and
// beside as many bytes copied by sockets alone.
absl::Status MeasureResync(const Settings& settings, Report* report);

// Measures the cost of summing payloads on backups before they acknowledge: an
// Append beside one whose backups don't, and the sum alone, in ns a record.
absl::Status MeasureSums(const Settings& settings, Report* report);

struct Scenario {
  std::string_view name;
  absl::Status (*measure)(const Settings& settings, Report* report);
};
inline constexpr std::array<Scenario, 13> kScenarios = {
    {{"latency", MeasureLatency},
     {"verbs", MeasureVerbs},
     {"peers", MeasurePeers},
     {"batches", MeasureBatches},
     {"backups", MeasureBackups},
     {"policies", MeasurePolicies},
     {"order", MeasureOrder},
     {"places", MeasurePlaces},
     {"exposure", MeasureExposure},
     {"tenants", MeasureTenants},
     {"recovery", MeasureRecovery},
     {"resync", MeasureResync},
     {"sums", MeasureSums}}};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_SCENARIOS_SCENARIOS_H_
