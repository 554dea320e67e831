// SPDX-License-Identifier: Apache-2.0
// cluster_wal: RocksDB with its WAL in an Alpheus log with backups in processes
// of their own, by the plugin's FileSystem.
#ifndef ALPHEUS_BENCH_ROCKSDB_CLUSTER_WAL_H_
#define ALPHEUS_BENCH_ROCKSDB_CLUSTER_WAL_H_

#include <memory>
#include <string>

#include "bench/replicated/candidates/candidate.h"
#include "bench/rocksdb/contestant.h"

namespace alpheus::bench::wal {

// "alpheus-1-backup", and so on.
std::string AlpheusNameWith(int backups);

// This process's replica and work.backups nodes over TCP, all of which must
// have a put; both ends spin. Each turn has nodes of its own.
std::unique_ptr<Contestant> ClusterWal(replicated::Work work);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_CLUSTER_WAL_H_
