// SPDX-License-Identifier: Apache-2.0
// location: the place and kind of a WAL, in a few words, by which any process
// can open it.
#ifndef ALPHEUS_BENCH_ROCKSDB_LOCATION_H_
#define ALPHEUS_BENCH_ROCKSDB_LOCATION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rocksdb/env.h"

namespace alpheus::bench::wal {

// Options with which a database is opened.
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
  uint64_t region_bytes = 0;  // of a local log to be made
};

struct OpenedPlace {
  std::unique_ptr<rocksdb::Env> env;  // null: RocksDB's own
  Place place;
};

// Opens a place. A log is opened by the first database. Errors: InvalidArgument
// (no such kind); those of the place.
absl::StatusOr<OpenedPlace> OpenPlace(const Location& location);

// Returns the path of FLEX's region.
std::string FlexRegionIn(const std::string& folder);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_LOCATION_H_
