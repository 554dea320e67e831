// SPDX-License-Identifier: Apache-2.0
// wal_file_system: RocksDB's FileSystem with the WAL in an Alpheus log; an
// application or --fs_uri puts it under RocksDB.
//
//   std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(
//       std::make_shared<alpheus::wal::WalFileSystem>(
//           options, rocksdb::FileSystem::Default()));
//
// Idea: a file that RocksDB creates as NUMBER.log in the database's WAL
// directory lives in the log, also after a rename below that directory. All
// other calls are passed on. Older WAL files in the base file system stay
// readable there. A WAL that is copied elsewhere (checkpoint, backup) is a
// plain file.
//
// The log belongs to one database (wal_home_keeper.h), and log and directory
// are of one state (vouch_keeper.h).
//
// Invariants:
//   WFS1. In the directory each WAL file of the log has a marker of its name, a
//         symbolic link that can't be followed. So RocksDB without this plugin,
//         or with an empty log, fails to open the database, instead of opening
//         it without its WAL. A marker is made only when its file is durable,
//         and removed before its file is. A file that is not recorded (WST4,
//         wal_store.h) has no marker: it has no data, and a crash leaves
//         nothing of it.
//         Log and directory identify each other by more than that
//         (docs/use/rocksdb.md#vouching, directory_vouch.h). If they do not
//         match, nothing is read from the log and the database is refused.
//   WFS2. A process that lost the log changes no directory entry of the
//         database and opens no file for overwriting. Where the log is
//         replicated, a process confirms before each such change that it still
//         has the log, by a durable record. A new file gets a new inode, so
//         that a late writer with the old file open changes no file of ours.
//   WFS3. If RocksDB was told that a change of the MANIFEST or of CURRENT is
//         synced, this process had the log when the change was made.
// Fault model: between the confirmation and the change of WFS2 a process may
// stand still for long, and then make its change. Only take_over.h helps
// against that.
// Thread safety: as RocksDB's FileSystem.
// References: docs/use/rocksdb.md.
#ifndef ALPHEUS_API_ROCKSDB_FS_WAL_FILE_SYSTEM_H_
#define ALPHEUS_API_ROCKSDB_FS_WAL_FILE_SYSTEM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/rocksdb/follow/wal_reading_file_system.h"
#include "api/rocksdb/fs/database_lock.h"
#include "api/rocksdb/fs/vouch_keeper.h"
#include "api/rocksdb/fs/wal_home_keeper.h"
#include "api/rocksdb/store/wal_handles.h"
#include "api/rocksdb/store/wal_options.h"
#include "api/rocksdb/store/wal_store.h"
#include "log/base/mutex.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

class WalFileSystem final : public WalReadingFileSystem {
 public:
  // PrepareOptions opens the log, or the first call that needs it.
  WalFileSystem(WalOptions options,
                const std::shared_ptr<rocksdb::FileSystem>& base);

  // NOLINTNEXTLINE(readability-identifier-naming): theirs
  static const char* kClassName() { return "AlpheusWalFileSystem"; }
  const char* Name() const override { return kClassName(); }
  rocksdb::Status PrepareOptions(
      const rocksdb::ConfigOptions& options) override;

  // Opens the log if it is not open; opens it again if it has failed and its
  // database is closed.
  absl::StatusOr<std::shared_ptr<WalStore>> Store();

  // Returns the limit on memtables (WalOptions::memtable_bytes). Opens the log.
  absl::StatusOr<uint64_t> MemtableBytes();

  IOStatus NewSequentialFile(const std::string& path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
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
  IOStatus GetChildren(const std::string& directory, const IOOptions& options,
                       std::vector<std::string>* result,
                       IODebugContext* dbg) override;
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus Truncate(const std::string& path, size_t size,
                    const IOOptions& options, IODebugContext* dbg) override;
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
  // Place of a path, below the WAL directory of the store or not.
  struct Place {
    std::shared_ptr<WalStore> store;
    std::optional<std::string> name;  // relative to that directory
    std::shared_ptr<WalFile> file;    // null: not in the log
    std::string directory;            // of the file, absolute
    std::string base_name;
  };

  // Errors: as Store().
  absl::StatusOr<Place> Find(const std::string& path);
  absl::StatusOr<FoundWal> FindWal(const std::string& path) override;
  IOStatus StatusOf(const absl::Status& status) const override;
  // Confirms that this process has the log (WFS2). Errors: as
  // WalStore::ConfirmPrimary.
  static IOStatus BeforeChange(WalStore& store);
  // Makes a file in the base file system.
  IOStatus NewBaseFile(const Place& place, const std::string& path,
                       const FileOptions& options,
                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                       IODebugContext* dbg);
  // Renames a file; neither name belongs to the log.
  IOStatus RenameBaseFile(WalStore& store, const std::string& from,
                          const std::string& to, const IOOptions& options,
                          IODebugContext* dbg);
  // Makes the file in the log. It replaces a file of that name in the log or in
  // the base file system. Requires: IsKept(place).
  absl::StatusOr<OpenWal> MakeWal(const Place& place, const std::string& path);
  std::unique_ptr<rocksdb::FSWritableFile> NewWriter(
      OpenWal wal, const std::string& path, const FileOptions& options);
  // Makes the log's content durable, and puts a marker in place of any file of
  // that name in the base file system.
  absl::Status Mark(WalStore& store, const std::string& path);
  // Returns whether a new WAL file at this place belongs into the log; gives
  // the log its home with the first one.
  absl::StatusOr<bool> IsKept(Place& place);
  // Checks home and vouch of a database that gets locked.
  absl::Status LockDatabase(const std::string& directory);
  // Repairs the state of a crash between a file and its marker.
  absl::Status PutMarkers(WalStore& store);

  // Checks a file that RocksDB wants to read. Errors: FailedPrecondition (DV1,
  // WFS1).
  absl::Status CheckReadable(const Place& place, const std::string& path);
  // Returns the store if the lock to be released is the last one, of a database
  // that is vouched for; else null.
  std::shared_ptr<WalStore> StoreToLeave() const;

  const WalOptions options_;
  DatabaseLock lock_;
  VouchKeeper vouch_;  // its mutex is locked before `mutex_`
  WalHomeKeeper home_;
  mutable Mutex mutex_;
  std::shared_ptr<WalStore> store_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FS_WAL_FILE_SYSTEM_H_
