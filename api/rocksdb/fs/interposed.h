// SPDX-License-Identifier: Apache-2.0
// interposed: functions of RocksDB that libalpheus_rocksdb.so replaces.
//
// Idea: a program that takes no URI, or that leaves the flushing of memtables
// to RocksDB, need not be changed. If the library is preloaded, or linked
// before librocksdb, the dynamic linker finds these functions before RocksDB's
// own; they call RocksDB's.
//
//   Env::Default         with ALPHEUS_ROCKSDB_URI: an environment of that URI
//   DB::Open             on a log: memtables are flushed before the ring is
//   TransactionDB::Open  full, if options do not say when (MemtableBytes)
//
// Not part of RocksDB's own tree. A program with a static RocksDB never calls
// this library.
//
// Thread safety: as RocksDB's.
// References: docs/use/rocksdb.md, "Without a URI" and "A full ring".
#ifndef ALPHEUS_API_ROCKSDB_FS_INTERPOSED_H_
#define ALPHEUS_API_ROCKSDB_FS_INTERPOSED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace alpheus::wal {

// Returns the bytes that memtables of the database may have because of its log;
// 0: no log, or no limit. Opens the log.
uint64_t MemtableBytes(rocksdb::Env* env, const std::string& database);

// Sets limits that the options leave open; `bytes` of 0 changes nothing.
void LimitMemtables(uint64_t bytes, rocksdb::DBOptions& options,
                    std::vector<rocksdb::ColumnFamilyDescriptor>& families);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FS_INTERPOSED_H_
