// SPDX-License-Identifier: Apache-2.0
// no_wal: RocksDB without a WAL, and with one that is discarded: nothing can be
// recovered.
#ifndef ALPHEUS_BENCH_ROCKSDB_NO_WAL_H_
#define ALPHEUS_BENCH_ROCKSDB_NO_WAL_H_

#include <memory>

#include "bench/rocksdb/contestant.h"

namespace alpheus::bench::wal {

inline constexpr const char* kNoWalName = "none";
inline constexpr const char* kFloorName = "floor";

// Makes a contestant without a WAL: the put alone.
std::unique_ptr<Contestant> NoWal();

// Makes one whose files take every byte and keep none: RocksDB's own work for a
// WAL.
std::unique_ptr<Contestant> DiscardedWal();

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_NO_WAL_H_
