// SPDX-License-Identifier: Apache-2.0
// folder_wal: RocksDB with its WAL in a folder of this host: its own files, a
// FLEX region (flex_store.h), or a local Alpheus log by the plugin's
// FileSystem.
//
// All have a new folder below `parent`, removed at the end, and keep its
// content open from turn to turn: a region's pages are mapped once, and a ring
// wraps around.
#ifndef ALPHEUS_BENCH_ROCKSDB_FOLDER_WAL_H_
#define ALPHEUS_BENCH_ROCKSDB_FOLDER_WAL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rocksdb/contestant.h"

namespace alpheus::bench::wal {

inline constexpr const char* kTmpfsName = "default-tmpfs";
inline constexpr const char* kDiskName = "default-disk";
inline constexpr const char* kFlexName = "flex";
inline constexpr const char* kAlpheusName = "alpheus";

// Errors of all: Unavailable (no folder can be made there).
absl::StatusOr<std::unique_ptr<Contestant>> DefaultWal(
    const std::string& name, const std::string& parent);

// Makes the same where `parent` is on a disk. Errors: also NotFound (it is
// not).
absl::StatusOr<std::unique_ptr<Contestant>> DiskWal(const std::string& parent);

// Errors: also as FlexStore::Format.
absl::StatusOr<std::unique_ptr<Contestant>> FlexWal(const std::string& parent,
                                                    uint64_t region_bytes);

absl::StatusOr<std::unique_ptr<Contestant>> LocalAlpheusWal(
    const std::string& parent, uint64_t region_bytes);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_FOLDER_WAL_H_
