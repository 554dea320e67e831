// SPDX-License-Identifier: Apache-2.0
// wal_following_file_system: a read-only view of a database whose WAL is in the
// log of another process; `follow=true` puts it under a read-only or secondary
// instance of RocksDB.
//
//   alpheus:?cluster=/etc/cluster.toml&follow=true
//
// Idea: WAL files are read from a WalFollower. Other calls go to the file
// system below, which is shared with the process that has the log. When RocksDB
// opens the database, and each time a secondary catches up, one thread reads
// CURRENT, then the MANIFEST to its end, then lists the WAL directory and opens
// the files in it. The follower refreshes twice: before CURRENT is read, and
// when the WAL directory is listed. The primary may remove a WAL file in
// between because its content is in tables that the MANIFEST did not have yet.
// Such a file is kept, so that each catch-up sees one moment: that of the list
// (WFG4).
//
// Invariants:
//   WFG1. Nothing of the database or its log is made, changed, removed or
//         locked. Such calls are NotSupported, so that opening the database for
//         writing fails. Elsewhere, as in a secondary's own directory, they are
//         passed on.
//   WFG2. An older WAL file in the directory below, from before the plugin, is
//         read there.
//   WFG3. The database is the log's. As far as the log's durable records tell,
//         these are refused: a directory that was the database before a
//         fail-over, since its MANIFEST no longer matches the log; continuing
//         with one; and one that was replaced by a restore or an older copy
//         (directory_vouch.h). If paths differ on this machine
//         (WalOptions::wal_directory), only the last is noticed. An unreadable
//         log never looks like a missing file, which RocksDB's secondaries
//         ignore.
//   WFG4. A thread's list has every WAL file that was there at some moment
//         since the thread read CURRENT, if that was recent (WFR5,
//         wal_follower.h). If that is not certain, listing fails until the
//         thread reads CURRENT again. Opening a file that is gone then fails
//         too, and so does reading to the end of one that may have had more
//         (WFR7). None of these errors looks like a missing file. A file from
//         before the plugin (WFG2) is not kept.
// Thread safety: as RocksDB's FileSystem.
// References: docs/use/rocksdb.md, "Following a log".
#ifndef ALPHEUS_API_ROCKSDB_FOLLOW_WAL_FOLLOWING_FILE_SYSTEM_H_
#define ALPHEUS_API_ROCKSDB_FOLLOW_WAL_FOLLOWING_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/rocksdb/failover/directory_vouch.h"
#include "api/rocksdb/follow/wal_follower.h"
#include "api/rocksdb/follow/wal_reading_file_system.h"
#include "api/rocksdb/store/wal_options.h"
#include "log/base/mutex.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

class WalFollowingFileSystem final : public WalReadingFileSystem {
 public:
  // Requires: options.follow.
  WalFollowingFileSystem(WalOptions options,
                         const std::shared_ptr<rocksdb::FileSystem>& base);

  // NOLINTNEXTLINE(readability-identifier-naming): theirs
  static const char* kClassName() { return "AlpheusWalFollowingFileSystem"; }
  const char* Name() const override { return kClassName(); }
  rocksdb::Status PrepareOptions(
      const rocksdb::ConfigOptions& options) override;

  // Returns the follower; reads the log at the first call.
  absl::StatusOr<std::shared_ptr<WalFollower>> Follower();

  IOStatus NewSequentialFile(const std::string& path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* dbg) override;
  IOStatus GetChildren(const std::string& directory, const IOOptions& options,
                       std::vector<std::string>* result,
                       IODebugContext* dbg) override;

  // WFG1.
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
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus Truncate(const std::string& path, size_t size,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override;
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus NewLogger(const std::string& path, const IOOptions& options,
                     std::shared_ptr<rocksdb::Logger>* result,
                     IODebugContext* dbg) override;
  IOStatus CreateDir(const std::string& path, const IOOptions& options,
                     IODebugContext* dbg) override;
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                              IODebugContext* dbg) override;
  IOStatus DeleteDir(const std::string& path, const IOOptions& options,
                     IODebugContext* dbg) override;
  IOStatus LockFile(const std::string& path, const IOOptions& options,
                    rocksdb::FileLock** lock, IODebugContext* dbg) override;

 private:
  // Returns the directory of the WAL files, according to the options or the
  // log.
  std::string WalDirectory(const WalFollower& follower) const;
  // Returns the name of a WAL file relative to that directory; nothing if the
  // path is elsewhere.
  std::optional<std::string> NameOf(const WalFollower& follower,
                                    const std::string& path) const;
  absl::StatusOr<FoundWal> FindWal(const std::string& path) override;
  IOStatus StatusOf(const absl::Status& status) const override;
  // Checks WFG3. Errors: FailedPrecondition (the log now belongs to another
  // database).
  absl::Status CheckHome(const WalFollower& follower);
  // Returns whether a database in this directory is the log's, as far as known.
  // Errors: as HasDatabase.
  absl::StatusOr<bool> MayBeOf(const WalHome& home,
                               const std::string& directory) const;
  // Checks WFG3 for a replaced directory. `vouch` was read before the log.
  static absl::Status CheckVouched(const WalFollower& follower,
                                   const std::string& directory,
                                   const std::optional<DirectoryVouch>& vouch);
  // Checks the directory whose CURRENT is read, and begins the look of WFG4.
  absl::Status BeginAtCurrent(const std::string& path);
  // Returns OK if a path does not belong to the database.
  IOStatus CheckElsewhere(const std::string& path);

  const WalOptions options_;
  Mutex mutex_;
  std::shared_ptr<WalFollower> follower_ ABSL_GUARDED_BY(mutex_);
  std::string database_ ABSL_GUARDED_BY(mutex_);  // the first one opened
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FOLLOW_WAL_FOLLOWING_FILE_SYSTEM_H_
