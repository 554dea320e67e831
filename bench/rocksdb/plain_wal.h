// SPDX-License-Identifier: Apache-2.0
// plain_wal: RocksDB without a WAL, with its own one in some folder, and with
// one that is thrown away.
#ifndef ALPHEUS_BENCH_ROCKSDB_PLAIN_WAL_H_
#define ALPHEUS_BENCH_ROCKSDB_PLAIN_WAL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rocksdb/contestant.h"

namespace alpheus::bench::wal {

inline constexpr const char* kNoWalName = "none";
inline constexpr const char* kFloorName = "floor";
inline constexpr const char* kTmpfsName = "default-tmpfs";
inline constexpr const char* kDiskName = "default-disk";

// The put alone.
std::unique_ptr<Contestant> NoWal();

// What RocksDB itself does for a WAL: its files take every byte and keep none.
std::unique_ptr<Contestant> DiscardedWal();

// WAL files in a new folder below `parent`, removed when this goes.
// Errors: Unavailable (no folder can be made there).
absl::StatusOr<std::unique_ptr<Contestant>> DefaultWal(
    const std::string& name, const std::string& parent);

// The same where `parent` is on a disk. Errors: also NotFound (it is not).
absl::StatusOr<std::unique_ptr<Contestant>> DiskWal(const std::string& parent);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_PLAIN_WAL_H_
