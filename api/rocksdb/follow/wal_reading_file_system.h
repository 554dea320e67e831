// SPDX-License-Identifier: Apache-2.0
// wal_reading_file_system: RocksDB's reading of WAL files that are in a log,
// its own or another process's.
//
// Idea: FindWal tells which file of the log a path names; the reading calls
// follow from that. Other paths are passed on to the file system below.
//
// Thread safety: as RocksDB's FileSystem, if FindWal's is.
#ifndef ALPHEUS_API_ROCKSDB_FOLLOW_WAL_READING_FILE_SYSTEM_H_
#define ALPHEUS_API_ROCKSDB_FOLLOW_WAL_READING_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/rocksdb/store/wal_file.h"
#include "api/rocksdb/store/wal_handles.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

class WalReadingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using IODebugContext = rocksdb::IODebugContext;

  using FileSystemWrapper::FileSystemWrapper;

  IOStatus NewSequentialFile(const std::string& path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* dbg) override;
  IOStatus NewRandomAccessFile(
      const std::string& path, const FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
      IODebugContext* dbg) override;
  IOStatus FileExists(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus GetChildrenFileAttributes(
      const std::string& directory, const IOOptions& options,
      std::vector<rocksdb::FileAttributes>* result,
      IODebugContext* dbg) override;
  IOStatus GetFileSize(const std::string& path, const IOOptions& options,
                       uint64_t* size, IODebugContext* dbg) override;
  IOStatus GetFileModificationTime(const std::string& path,
                                   const IOOptions& options, uint64_t* seconds,
                                   IODebugContext* dbg) override;

 protected:
  struct FoundWal {
    std::shared_ptr<WalFile> file;  // null: not in the log
    ReadWal read;                   // reads it, and keeps its bytes alive
  };

  // Finds the file of the log that a path names. Errors: of the log.
  virtual absl::StatusOr<FoundWal> FindWal(const std::string& path) = 0;
  // Converts such an error for RocksDB.
  virtual IOStatus StatusOf(const absl::Status& status) const = 0;
  // Adds the names that `result` lacks.
  static void AddNames(std::vector<std::string> names,
                       std::vector<std::string>* result);
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FOLLOW_WAL_READING_FILE_SYSTEM_H_
