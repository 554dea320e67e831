// SPDX-License-Identifier: Apache-2.0
// scenarios: what is measured of RocksDB with its WAL in different places, one
// file each. Each adds its measurements to the report.
#ifndef ALPHEUS_BENCH_ROCKSDB_SCENARIOS_H_
#define ALPHEUS_BENCH_ROCKSDB_SCENARIOS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/result.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/rocksdb/contestant.h"

namespace alpheus::bench::wal {

// How much of each is done; presets are in settings.cc.
struct Settings {
  std::string preset;
  std::string folder = "/dev/shm";       // of databases and regions
  std::string disk_folder = "/var/tmp";  // of the default WAL on a disk
  std::vector<std::string> wals;         // these only; empty: all
  uint64_t rounds = 0;
  uint64_t region_bytes = 0;  // of each replica, and of FLEX
  std::vector<int> backups;
  std::vector<uint64_t> value_bytes;
  std::vector<int> threads;
  uint64_t warm_up_puts = 0;  // of a turn; not timed
  uint64_t puts = 0;          // of a turn; timed
  int64_t turn_ns_max = 0;
  uint64_t recovery_rounds = 0;
  std::vector<uint64_t> recovery_puts;  // in the WAL
};

// Minutes; in about a minute; within seconds, for tests: its figures mean
// nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

struct Contest {
  replicated::ScratchFolder scratch;
  std::vector<std::unique_ptr<Contestant>> contestants;

  // The one database, of each in turn: a log knows whose WAL it holds.
  std::string database_folder() const { return scratch.path() + "/db"; }
};

// The log alone, without RocksDB: no contestant, but named as one.
inline constexpr const char* kAppendName = "append-1-backup";

// What Settings::wals may name.
std::vector<std::string> WalNames(const Settings& settings);
bool IsWanted(const Settings& settings, const std::string& wal);

// All places for a WAL that are wanted. One that is not there becomes a skip.
absl::StatusOr<Contest> MakeContest(const Settings& settings, Report* report);

// Time and rate of puts by order, durability, size and threads. Beside synced
// puts of one thread, an append of the same bytes to a log with one backup,
// without RocksDB.
absl::Status MeasurePut(const Settings& settings, Contest& contest,
                        Report* report);
// From the death of a process all of whose puts are in the WAL, and only there,
// to the database being open.
absl::Status MeasureRecovery(const Settings& settings, Contest& contest,
                             Report* report);

struct Scenario {
  std::string_view name;
  absl::Status (*measure)(const Settings& settings, Contest& contest,
                          Report* report);
};
inline constexpr std::array<Scenario, 2> kScenarios = {
    {{"put", MeasurePut}, {"recovery", MeasureRecovery}}};

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_SCENARIOS_H_
