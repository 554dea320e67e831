// SPDX-License-Identifier: Apache-2.0
// manifest_file: a MANIFEST whose sync returns OK only in the process that has
// the log.
//
// Idea: what RocksDB writes besides the WAL it acknowledges by a synced
// MANIFEST: a flush, an ingested file, a new column family. A process that lost
// the log would do so into files that nobody reads any more. Whoever takes the
// database over opens the log first and reads the MANIFEST then; so what is
// synced before the log says "still mine" is seen by that one.
//
// Thread safety: as RocksDB's class.
#ifndef ALPHEUS_API_ROCKSDB_STORE_MANIFEST_FILE_H_
#define ALPHEUS_API_ROCKSDB_STORE_MANIFEST_FILE_H_

#include <memory>
#include <string>

#include "api/rocksdb/store/wal_store.h"
#include "rocksdb/file_system.h"

namespace alpheus {

// MANIFEST-NUMBER, as RocksDB names them.
bool IsManifestName(const std::string& base_name);

std::unique_ptr<rocksdb::FSWritableFile> NewManifestFile(
    std::shared_ptr<WalStore> store,
    std::unique_ptr<rocksdb::FSWritableFile> base);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_STORE_MANIFEST_FILE_H_
