// SPDX-License-Identifier: Apache-2.0
// wal_following_file_system: a database whose WAL is in the log of another
// process, to be read only: what `follow=true` puts under a read-only or
// secondary instance of RocksDB.
//
//   alpheus:?cluster=/etc/cluster.toml&follow=true
//
// Idea: WAL files are read from a WalFollower, all else is passed on to the
// file system below, which the process that has the log shares. When it is
// opened, and each time that a secondary catches up, RocksDB reads CURRENT,
// then the MANIFEST to its end, then lists the WAL directory and opens what is
// there; all that in one thread. The follower takes in what is new twice,
// before CURRENT is read and when the WAL directory is listed. A WAL file that
// the primary removes in between, as its content is in tables that the MANIFEST
// did not tell of, is kept, so that what one catching-up sees is of one moment:
// that of the list (WFG4).
//
// Invariants:
//   WFG1. Nothing of the database or of its log is made, changed, removed or
//         locked: such calls are NotSupported, so that a database that is
//         opened for writing is refused. Elsewhere, as in the directory that a
//         secondary has of its own, they are passed on.
//   WFG2. A WAL file in the directory below, of before the plugin, is read
//         there.
//   WFG3. The database is the log's: a directory that was one before a
//         fail-over is refused, as its MANIFEST says no more what is in the
//         log; so is going on with it; and so is one that was replaced by a
//         restore or an older copy (directory_vouch.h), as far as the durable
//         records of the log say. But where paths are others on this machine
//         (WalOptions::wal_directory), only the latter is noticed. Where the
//         log can't be read, that is never like a file that is not there, which
//         RocksDB's secondaries pass over.
//   WFG4. What a thread lists has every WAL file that was there at a moment
//         since it read CURRENT, if it did so lately (WFR5, wal_follower.h).
//         Where that is not certain, listing fails until it reads CURRENT
//         again, and so does opening a file that is no more, or reading to the
//         end of one that may have had more (WFR7): that is never like a file
//         that is not there, either. A file of before the plugin (WFG2) is not
//         kept.
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

namespace alpheus {

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

  // Reads the log for the first time, if nobody has.
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
  // Where the WAL files are listed: as options say, or the log.
  std::string WalDirectory(const WalFollower& follower) const;
  // Of a WAL file, relative to where they are; nothing if that is elsewhere.
  std::optional<std::string> NameOf(const WalFollower& follower,
                                    const std::string& path) const;
  absl::StatusOr<FoundWal> FindWal(const std::string& path) override;
  IOStatus StatusOf(const absl::Status& status) const override;
  // WFG3. Errors: FailedPrecondition (the log is another database's by now).
  absl::Status CheckHome(const WalFollower& follower);
  // Whether a database in this directory is the log's, as far as that is known.
  // Errors: as HasDatabase.
  absl::StatusOr<bool> MayBeOf(const WalHome& home,
                               const std::string& directory) const;
  // WFG3, of a directory that was replaced. `vouch` was read before the log
  // was.
  static absl::Status CheckVouched(const WalFollower& follower,
                                   const std::string& directory,
                                   const std::optional<DirectoryVouch>& vouch);
  // The same of the one whose CURRENT is read: WFG4 begins there.
  absl::Status BeginAtCurrent(const std::string& path);
  // OK if a path is not of the database.
  IOStatus CheckElsewhere(const std::string& path);

  const WalOptions options_;
  Mutex mutex_;
  std::shared_ptr<WalFollower> follower_ ABSL_GUARDED_BY(mutex_);
  std::string database_ ABSL_GUARDED_BY(mutex_);  // the first that was opened
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_FOLLOW_WAL_FOLLOWING_FILE_SYSTEM_H_
