// SPDX-License-Identifier: Apache-2.0
// location: where a WAL is and what it is, in a few words: whatever process has
// them can open it.
#ifndef ALPHEUS_BENCH_ROCKSDB_LOCATION_H_
#define ALPHEUS_BENCH_ROCKSDB_LOCATION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rocksdb/env.h"

namespace alpheus::bench::wal {

// What a database is opened with.
struct Place {
  rocksdb::Env* env = nullptr;
  std::string wal_directory = {};  // empty: that of the database
  bool has_wal = true;
};

inline constexpr const char* kDefaultKind = "default";  // RocksDB's own files
inline constexpr const char* kFlexKind = "flex";
inline constexpr const char* kAlpheusKind = "alpheus";  // a local log
inline constexpr const char* kClusterKind = "alpheus-cluster";

struct Location {
  std::string kind;
  std::string folder;         // of files, of the region, or of the cluster
  uint64_t region_bytes = 0;  // of a local log that is not there yet
};

struct OpenedPlace {
  std::unique_ptr<rocksdb::Env> env;  // null: RocksDB's own
  Place place;
};

// A log is opened by the first database.
// Errors: InvalidArgument (no such kind); those of what is there.
absl::StatusOr<OpenedPlace> OpenPlace(const Location& location);

// Where FLEX has its region.
std::string FlexRegionIn(const std::string& folder);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_LOCATION_H_
