// SPDX-License-Identifier: Apache-2.0
// scenarios: what is measured of a log with backups, one file each. Each adds
// its measurements to the report.
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

// How much of each is done; presets are in settings.cc.
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
  std::vector<uint64_t> peer_sizes;
  std::vector<int> peer_quorums;       // of three copies
  std::vector<uint64_t> recovery_mib;  // of logs
  std::vector<int> many_backups;
  std::vector<uint64_t> many_sizes;   // with many backups
  std::vector<uint64_t> order_sizes;  // where the order of flushes varies
  std::vector<uint64_t> place_sizes;  // where the place of replicas varies
  std::vector<int> exposure_threads;
  uint64_t exposure_ops = 0;  // of all threads together
  std::vector<int> tenants;
  uint64_t tenant_ops = 0;             // of all logs together
  uint64_t rejoin_mib = 0;             // that the member has missed
  std::vector<uint64_t> rejoin_sizes;  // of what is appended meanwhile
};

// Minutes; within some minutes; within seconds, for tests: its figures mean
// nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

// Append + force to a quorum, by size of the record, number of backups and way
// of waiting, beside sockets alone.
absl::Status MeasureLatency(const Settings& settings, Report* report);
// The same of 64 bytes over adapters with RDMA, beside their verbs alone;
// skipped where RdmaHosts() names none.
absl::Status MeasureVerbs(const Settings& settings, Report* report);
// The same of three copies, beside etcd and Redis.
absl::Status MeasurePeers(const Settings& settings, Report* report);
// From the replicas of a log that was not closed to the last record visited,
// with the primary's copy and without, beside a copy over a socket.
absl::Status MeasureRecovery(const Settings& settings, Report* report);

// Records forced sixteen at a time to two backups, beside sockets and Redis.
absl::Status MeasureBatches(const Settings& settings, Report* report);
// None to five backups, all or the majority of which are waited for.
absl::Status MeasureBackups(const Settings& settings, Report* report);
// Force policies with two backups.
absl::Status MeasurePolicies(const Settings& settings, Report* report);
// What is flushed first, and the share of copy and force.
absl::Status MeasureOrder(const Settings& settings, Report* report);
// Two copies: one here, or both on backups.
absl::Status MeasurePlaces(const Settings& settings, Report* report);
// Exposure and rate of force policies by number of threads, with one backup.
absl::Status MeasureExposure(const Settings& settings, Report* report);
// Many logs with one thread each, on the same two nodes.
absl::Status MeasureTenants(const Settings& settings, Report* report);
// Appends while a member joins again that was away, beside the same without it,
// and beside as many bytes copied by sockets alone.
absl::Status MeasureRejoin(const Settings& settings, Report* report);

// What it costs that backups sum payloads before they acknowledge: an Append
// beside one whose backups don't, and the sum alone, in ns a record.
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
     {"rejoin", MeasureRejoin},
     {"sums", MeasureSums}}};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_SCENARIOS_SCENARIOS_H_
