// SPDX-License-Identifier: Apache-2.0
// wal_handles: open WAL files with RocksDB's interfaces.
//
// Idea: RocksDB's own writer gathers header and payload of its records in a
// buffer, and calls Append once for each flush of it. So each Append completes
// one record, which others can read at once. Flush has nothing left to do. Sync
// forces what Append has not made durable already, as it does where the file's
// earlier data was synced (WalStore::Append).
//
// Thread safety: as RocksDB's classes; Sync may run concurrently with Append
// and Flush (two_write_queues, manual_wal_flush).
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

namespace alpheus::wal {

// File of a store; both live while they are referred to.
struct OpenWal {
  std::shared_ptr<WalStore> store;
  std::shared_ptr<WalFile> file;
};

// Makes a writer. `mark`, if not null, is called after the first append: that
// data is acknowledged only when `mark` has returned OK.
std::unique_ptr<rocksdb::FSWritableFile> NewWalWriter(
    OpenWal wal, const rocksdb::FileOptions& options,
    std::function<absl::Status()> mark);
// Copies bytes of a file from an offset; fewer only at its end.
using ReadWal = std::function<rocksdb::IOStatus(
    uint64_t offset, std::span<std::byte> out, size_t* copied)>;
ReadWal ReadOf(OpenWal wal);
std::unique_ptr<rocksdb::FSSequentialFile> NewWalScanner(ReadWal read);
std::unique_ptr<rocksdb::FSRandomAccessFile> NewWalReader(ReadWal read);
// Makes a handle of the WAL directory or its archive: syncing it makes the
// names of the files durable.
std::unique_ptr<rocksdb::FSDirectory> NewWalDirectory(
    std::shared_ptr<WalStore> store,
    std::unique_ptr<rocksdb::FSDirectory> base);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_HANDLES_H_
