// SPDX-License-Identifier: Apache-2.0
// alpheus_wal: RocksDB with its WAL in an Alpheus log by the plugin's
// FileSystem: a local log, or one with backups in processes of their own.
#ifndef ALPHEUS_BENCH_ROCKSDB_ALPHEUS_WAL_H_
#define ALPHEUS_BENCH_ROCKSDB_ALPHEUS_WAL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/replicated/candidate.h"
#include "bench/rocksdb/contestant.h"

namespace alpheus::bench::wal {

inline constexpr const char* kAlpheusName = "alpheus";

// "alpheus-1-backup", and so on.
std::string AlpheusNameWith(int backups);

// A region in a new folder below `parent`, removed when this goes.
// Errors: Unavailable.
absl::StatusOr<std::unique_ptr<Contestant>> LocalAlpheusWal(
    const std::string& parent, uint64_t region_bytes);

// This process's replica and work.backups nodes over TCP, all of which must
// have a put; both ends spin. Each turn has nodes of its own.
std::unique_ptr<Contestant> ReplicatedAlpheusWal(replicated::Work work);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_ALPHEUS_WAL_H_
