// SPDX-License-Identifier: Apache-2.0
// manifest_file: a MANIFEST whose sync returns OK only in the process that has
// the log.
//
// Idea: a write that does not go through the WAL (a flush, an ingested file, a
// new column family) is acknowledged once the MANIFEST is synced. A process
// that lost the log would so acknowledge changes to files that nobody reads any
// more. Therefore a sync first syncs the file, then confirms the log, and only
// then returns OK. A successor first opens the log and then reads the MANIFEST.
// So it sees everything that was acknowledged.
//
// Thread safety: as RocksDB's class.
#ifndef ALPHEUS_API_ROCKSDB_STORE_MANIFEST_FILE_H_
#define ALPHEUS_API_ROCKSDB_STORE_MANIFEST_FILE_H_

#include <memory>
#include <string>

#include "api/rocksdb/store/wal_store.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

// Returns whether it is MANIFEST-NUMBER, as RocksDB names them.
bool IsManifestName(const std::string& base_name);

std::unique_ptr<rocksdb::FSWritableFile> NewManifestFile(
    std::shared_ptr<WalStore> store,
    std::unique_ptr<rocksdb::FSWritableFile> base);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_MANIFEST_FILE_H_
