// SPDX-License-Identifier: Apache-2.0
// no_wal: RocksDB without a WAL, and with one that is thrown away: nothing can
// be recovered.
#ifndef ALPHEUS_BENCH_ROCKSDB_NO_WAL_H_
#define ALPHEUS_BENCH_ROCKSDB_NO_WAL_H_

#include <memory>

#include "bench/rocksdb/contestant.h"

namespace alpheus::bench::wal {

inline constexpr const char* kNoWalName = "none";
inline constexpr const char* kFloorName = "floor";

// The put alone.
std::unique_ptr<Contestant> NoWal();

// What RocksDB itself does for a WAL: its files take every byte and keep none.
std::unique_ptr<Contestant> DiscardedWal();

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_NO_WAL_H_
