// SPDX-License-Identifier: Apache-2.0
// wal_handles: open WAL files as RocksDB wants them.
//
// Idea: RocksDB's own writer gathers header and payload of its records and
// calls Append once for each flush of that buffer: one record, and one fence
// when it is synced. So Append completes a record at once, where others can
// read it, and Flush has nothing left to do; nor has Sync, where Append has
// foreseen it (WalStore::Append).
//
// Thread safety: as RocksDB's classes; Sync may run beside Append and Flush
// (two_write_queues, manual_wal_flush).
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_HANDLES_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_HANDLES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "api/rocksdb/store/wal_store.h"
#include "rocksdb/file_system.h"

namespace alpheus {

// A file of a store; both stay as long as somebody refers to them.
struct OpenWal {
  std::shared_ptr<WalStore> store;
  std::shared_ptr<WalFile> file;
};

// `mark`, if it is not null, is called behind the first append: that data is
// acknowledged only when it has returned OK.
std::unique_ptr<rocksdb::FSWritableFile> NewWalWriter(
    OpenWal wal, const rocksdb::FileOptions& options,
    std::function<absl::Status()> mark);
// Copies what a file has at an offset; fewer bytes only at its end.
using ReadWal = std::function<rocksdb::IOStatus(
    uint64_t offset, std::span<std::byte> out, size_t* copied)>;
ReadWal ReadOf(OpenWal wal);
std::unique_ptr<rocksdb::FSSequentialFile> NewWalScanner(ReadWal read);
std::unique_ptr<rocksdb::FSRandomAccessFile> NewWalReader(ReadWal read);
// Of the WAL directory and its archive: syncing it makes durable which files
// there are.
std::unique_ptr<rocksdb::FSDirectory> NewWalDirectory(
    std::shared_ptr<WalStore> store,
    std::unique_ptr<rocksdb::FSDirectory> base);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_HANDLES_H_
