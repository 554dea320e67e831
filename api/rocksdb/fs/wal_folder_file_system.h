// SPDX-License-Identifier: Apache-2.0
// wal_folder_file_system: one environment for several databases, each with a
// log of its own in one folder; a URI that ends in / puts it under RocksDB.
//
//   alpheus:///mnt/pmem/wals/?create=64MiB
//
// Idea: a path belongs to the database in whose directory it lies, and the
// database to the log with its name. Other paths are passed on. A database gets
// its log when it is locked for the first time. From then on the log identifies
// it, for all readers.
//
// Invariants:
//   WFF1. Two directories never have the same log.
//   WFF2. All of a database is below its directory: a WAL directory elsewhere
//         is refused at its first WAL file (WHK1, wal_home_keeper.h).
// Thread safety: as RocksDB's FileSystem.
// References: docs/use/rocksdb.md, "Without a URI".
#ifndef ALPHEUS_API_ROCKSDB_FS_WAL_FOLDER_FILE_SYSTEM_H_
#define ALPHEUS_API_ROCKSDB_FS_WAL_FOLDER_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "api/rocksdb/fs/wal_file_system.h"
#include "api/rocksdb/store/wal_options.h"
#include "log/base/mutex.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

// Returns the log's name for a database's directory, an absolute path: without
// its first /, each other / as +, + and % as %2B and %25, and .wal at the end.
std::string WalLogName(absl::string_view directory);

class WalFolderFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using IODebugContext = rocksdb::IODebugContext;

  // Requires: options.is_folder.
  WalFolderFileSystem(WalOptions options,
                      const std::shared_ptr<rocksdb::FileSystem>& base);

  // NOLINTNEXTLINE(readability-identifier-naming): theirs
  static const char* kClassName() { return "AlpheusWalFolderFileSystem"; }
  const char* Name() const override { return kClassName(); }

  // Returns WalFileSystem::MemtableBytes of the log that this database has or
  // gets.
  absl::StatusOr<uint64_t> MemtableBytes(const std::string& database);

  IOStatus NewSequentialFile(const std::string& path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* dbg) override;
  IOStatus NewRandomAccessFile(
      const std::string& path, const FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
      IODebugContext* dbg) override;
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* dbg) override;
  IOStatus ReopenWritableFile(const std::string& path,
                              const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext* dbg) override;
  IOStatus ReuseWritableFile(const std::string& path,
                             const std::string& old_path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result,
                             IODebugContext* dbg) override;
  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                           IODebugContext* dbg) override;
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result,
                        IODebugContext* dbg) override;
  IOStatus FileExists(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus GetChildren(const std::string& directory, const IOOptions& options,
                       std::vector<std::string>* result,
                       IODebugContext* dbg) override;
  IOStatus GetChildrenFileAttributes(
      const std::string& directory, const IOOptions& options,
      std::vector<rocksdb::FileAttributes>* result,
      IODebugContext* dbg) override;
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus Truncate(const std::string& path, size_t size,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus GetFileSize(const std::string& path, const IOOptions& options,
                       uint64_t* size, IODebugContext* dbg) override;
  IOStatus GetFileModificationTime(const std::string& path,
                                   const IOOptions& options, uint64_t* seconds,
                                   IODebugContext* dbg) override;
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override;
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus NumFileLinks(const std::string& path, const IOOptions& options,
                        uint64_t* count, IODebugContext* dbg) override;
  IOStatus AreFilesSame(const std::string& first, const std::string& second,
                        const IOOptions& options, bool* result,
                        IODebugContext* dbg) override;
  IOStatus LockFile(const std::string& path, const IOOptions& options,
                    rocksdb::FileLock** lock, IODebugContext* dbg) override;
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus IsDirectory(const std::string& path, const IOOptions& options,
                       bool* is_directory, IODebugContext* dbg) override;

 private:
  std::string LogPathOf(const std::string& directory) const;
  // Returns the file system of this database; null if it has no log, and none
  // may be made.
  std::shared_ptr<WalFileSystem> OfDatabase(const std::string& directory,
                                            bool may_make);
  // Returns the file system for a path: that of the database with the longest
  // directory.
  std::shared_ptr<rocksdb::FileSystem> Of(const std::string& path);
  // Returns the file system for two paths: that of the first path, if it
  // belongs to a database.
  std::shared_ptr<rocksdb::FileSystem> OfEither(const std::string& first,
                                                const std::string& second);

  const WalOptions options_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<WalFileSystem>> databases_
      ABSL_GUARDED_BY(mutex_);  // by directory
  std::map<rocksdb::FileLock*, std::shared_ptr<WalFileSystem>> locks_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FS_WAL_FOLDER_FILE_SYSTEM_H_
