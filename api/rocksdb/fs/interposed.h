// SPDX-License-Identifier: Apache-2.0
// interposed: functions of RocksDB that libalpheus_rocksdb.so answers first.
//
// Idea: a program that takes no URI, or whose options leave it to RocksDB when
// memtables are flushed, need not be changed. The dynamic linker finds these
// functions before RocksDB's own, as the library is preloaded, or linked before
// librocksdb; they ask RocksDB's.
//
//   Env::Default         with ALPHEUS_ROCKSDB_URI: an environment of that URI
//   DB::Open             on a log: memtables are flushed before the ring is
//   TransactionDB::Open  full, if options do not say when (MemtableBytes)
//
// Not a part of RocksDB's own tree. In a program that has RocksDB in itself,
// statically, nobody asks this library.
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

namespace alpheus {

// How many bytes memtables of the database may have as far as its log is
// concerned; 0: it has none, or does not care. Opens the log.
uint64_t MemtableBytes(rocksdb::Env* env, const std::string& database);

// Sets what options leave open: 0 changes nothing.
void LimitMemtables(uint64_t bytes, rocksdb::DBOptions& options,
                    std::vector<rocksdb::ColumnFamilyDescriptor>& families);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_FS_INTERPOSED_H_
