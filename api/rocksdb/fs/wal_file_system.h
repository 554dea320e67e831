// SPDX-License-Identifier: Apache-2.0
// wal_file_system: RocksDB's FileSystem with the WAL in an Alpheus log; what an
// application or --fs_uri puts under RocksDB.
//
//   std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(
//       alpheus::NewWalFileSystem(options, rocksdb::FileSystem::Default()));
//
// Idea: files that RocksDB makes as NUMBER.log in the WAL directory of one
// database live in the log, wherever they are renamed to below it; all others
// are passed on. What was such a file before, in the base file system, stays
// readable there. A WAL that is copied elsewhere (checkpoint, backup) is a
// plain file.
//
// Invariants:
//   WFS1. A log serves one database, which its home record names. A database
//         that is locked while the log belongs to another one is refused. So is
//         the first WAL file that it makes after that, if the log has its WAL
//         files elsewhere: it was opened without those. So none has its WAL
//         elsewhere than it thinks. Later ones elsewhere are a checkpoint's,
//         for example.
//   WFS2. A log without a home serves a database that exists already only if
//         told to adopt it: else a lost log would look like a new one. A new
//         database has its log before it has CURRENT, by which it exists:
//         RocksDB makes its first WAL file after that, and may be stopped in
//         between.
//   WFS3. In the directory each WAL file of the log has a marker of its name, a
//         symbolic link that can't be followed. So RocksDB without this plugin,
//         or with an empty log, fails to open the database, and does not take
//         it for one without WAL. A marker is made only when its file is
//         durable, and removed before its file is. A file that is not recorded
//         (WST4, wal_store.h) has none: it has no data, and a crash leaves
//         nothing of it.
//         docs/use/rocksdb.md#vouching says what else the two know each other
//         by (directory_vouch.h): where they do not, nothing of the log is
//         read, and the database is refused.
//   WFS4. No name of the database is made, replaced or removed, and no file
//         opened for overwriting, by a process that is known to have lost the
//         log, and none that may be another process's without asking the log
//         right before. A file that is made is a new one:
//         who still writes to one that had the name writes to no file of ours.
//   WFS5. A change of the MANIFEST or of CURRENT that RocksDB is told of as
//         synced was made while this process had the log.
// Fault model: WFS4 leaves the moment between question and deed, in which a
// process may stand still for long. Against one that may come back only
// take_over.h helps.
// Thread safety: as RocksDB's FileSystem.
// References: docs/use/rocksdb.md.
#ifndef ALPHEUS_API_ROCKSDB_FS_WAL_FILE_SYSTEM_H_
#define ALPHEUS_API_ROCKSDB_FS_WAL_FILE_SYSTEM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/rocksdb/failover/directory_vouch.h"
#include "api/rocksdb/follow/wal_reading_file_system.h"
#include "api/rocksdb/store/wal_handles.h"
#include "api/rocksdb/store/wal_options.h"
#include "api/rocksdb/store/wal_store.h"
#include "log/base/mutex.h"
#include "rocksdb/file_system.h"

namespace alpheus {

class WalFileSystem final : public WalReadingFileSystem {
 public:
  // The log is opened by PrepareOptions, or by the first call that needs it.
  WalFileSystem(WalOptions options,
                const std::shared_ptr<rocksdb::FileSystem>& base);

  // NOLINTNEXTLINE(readability-identifier-naming): theirs
  static const char* kClassName() { return "AlpheusWalFileSystem"; }
  const char* Name() const override { return kClassName(); }
  rocksdb::Status PrepareOptions(
      const rocksdb::ConfigOptions& options) override;

  // Opens the log if it is not open; anew if it has failed and its database is
  // closed.
  absl::StatusOr<std::shared_ptr<WalStore>> Store();

  // What memtables may have (WalOptions::memtable_bytes). Opens the log.
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
  // Where a path lies: below the WAL directory of the store or not.
  struct Place {
    std::shared_ptr<WalStore> store;
    std::optional<std::string> name;  // relative to it
    std::shared_ptr<WalFile> file;    // null: not in the log
    std::string directory;            // of the file, absolute
    std::string base_name;
  };

  // Errors: as Store().
  absl::StatusOr<Place> Find(const std::string& path);
  absl::StatusOr<FoundWal> FindWal(const std::string& path) override;
  IOStatus StatusOf(const absl::Status& status) const override;
  // Of a log that came from another process: its database comes into our
  // directory.
  absl::Status TakeOver(WalStore& store);
  // WFS4. Errors: as WalStore::ConfirmPrimary.
  static IOStatus BeforeChange(WalStore& store);
  // A file of the base file system.
  IOStatus NewBaseFile(const Place& place, const std::string& path,
                       const FileOptions& options,
                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                       IODebugContext* dbg);
  // Neither name is of the log.
  IOStatus RenameBaseFile(WalStore& store, const std::string& from,
                          const std::string& to, const IOOptions& options,
                          IODebugContext* dbg);
  // Makes the file in the log, in place of one of that name here or in the base
  // file system. Requires: IsKept(place).
  absl::StatusOr<OpenWal> MakeWal(const Place& place, const std::string& path);
  std::unique_ptr<rocksdb::FSWritableFile> NewWriter(
      OpenWal wal, const std::string& path, const FileOptions& options);
  // Makes what the log has durable, and puts a marker in place of whatever the
  // base file system has there.
  absl::Status Mark(WalStore& store, const std::string& path);
  // Whether a new WAL file at this place belongs into the log; gives the log
  // its home with the first one.
  absl::StatusOr<bool> IsKept(Place& place);
  // WFS1: whether the locked database's WAL may have another directory from now
  // on.
  bool MayChangeItsDirectory(const WalStore& store) const;
  // WFS1, of a new file that is not kept.
  absl::Status CheckMayBePlain(const Place& place) const;
  // Files that RocksDB would replay: not those of an archive, nor what waits to
  // be deleted.
  static std::vector<std::string> Replayable(const WalStore& store);
  void NoteWalMade();
  // Where the WAL files are of a database that comes into `directory`. Errors:
  // FailedPrecondition (they had a directory of their own, and no option names
  // the new one).
  absl::StatusOr<std::string> WalDirectoryIn(
      const WalHome& home, const std::string& directory) const;
  // The log's home once this database is locked. Errors: FailedPrecondition
  // (WFS1, WFS2).
  absl::StatusOr<WalHome> CheckDatabase(WalStore& store,
                                        const std::string& directory);
  // WFS1: why a database is refused whose log is that of another one.
  absl::Status RefuseElsewhere(WalStore& store, const std::string& directory);
  // The database that the log is that of, and where its WAL is.
  static std::string DescribeHome(const WalStore& store);
  // The same of a log that has WAL files and no home.
  absl::StatusOr<WalHome> HomeOfNone(const std::string& directory) const;
  // WFS2. Where CURRENT is about to be made: if the log had no WAL file, and
  // the database is the locked one and new, the log is that one's on return,
  // durably.
  absl::Status ClaimForNewDatabase(WalStore& store,
                                   const std::string& directory);
  // WFS1: a database that is made now must not find another one's WAL later.
  absl::Status CheckMayBeNew(WalStore& store, const std::string& directory);
  // Whether the directory has nothing of a database, but for these names.
  absl::StatusOr<bool> IsNew(const std::string& directory,
                             const std::vector<std::string>& but_for);
  // As TakeOverDatabase, of a database that had no WAL file.
  absl::Status TakeOverNew(const std::string& from, const std::string& to);
  // WFS1 and WFS2, of a database that is locked then.
  absl::Status LockDatabase(const std::string& directory);
  // Errors: FailedPrecondition (another database is locked).
  absl::Status NoteLocked(const std::string& directory);
  void NoteUnlocked();
  std::string LockedDatabase() const;
  // The same, until it has made a WAL file.
  std::string OpeningDatabase() const;
  absl::Status PutMarkers(WalStore& store);

  // Of a database whose WAL the log has, or will have when `home` is its home.
  absl::StatusOr<VouchFacts> LookAt(WalStore& store, const WalHome& home);
  // Markers without a file, in the WAL directory.
  absl::StatusOr<std::vector<std::string>> MissingWal(WalStore& store,
                                                      const WalHome& home);
  void LookAtFiles(WalStore& store, const WalHome& home, VouchFacts& facts);
  WalHome Completed(WalHome home) const;
  // Of an opening for writing: on return OK, log and directory vouch for each
  // other, in a new generation if there is room for it.
  absl::Status SettleVouch(WalStore& store, const WalHome& home,
                           const VouchFacts& facts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  absl::Status BeginGeneration(WalStore& store, const WalHome& home,
                               const VouchFacts& facts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // With a new id, so that no older copy fits any more.
  absl::Status VouchAnew(WalStore& store, const std::string& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  absl::Status ChangeVouch(WalStore& store, const std::string& directory,
                           const WalVouch& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // Drops the WAL files of the log, and markers without a file.
  absl::Status DropWal(WalStore& store);
  absl::Status DropMissing(WalStore& store, const WalHome& home);
  // Where nobody has locked the database, or it is new: vouches if nothing
  // could be mixed.
  absl::Status VouchIfUnmixed(WalStore& store)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // DV4: around the removal of a WAL file, or its renaming out of what RocksDB
  // replays. What is not possible before it may be so behind it. Errors: of the
  // log.
  absl::Status RiseAround(WalStore& store, const std::string& name);
  // OK if what the log has may be read over this database.
  absl::Status CheckVouched(WalStore& store);
  // DV3: around the renaming of `from` to CURRENT.
  absl::Status NameManifest(WalStore& store, const std::string& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  absl::Status ForgetOldManifest(WalStore& store)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // DV5: around the renaming of a file to IDENTITY, of the database.
  IOStatus RenameToIdentity(const std::string& from, const std::string& to,
                            const IOOptions& options, IODebugContext* dbg);
  absl::Status SetIdentity(const std::string& directory,
                           const std::string& identity)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // Of CURRENT, that somebody reads who has not locked its database: what an
  // opening for writing would be told. A directory that does not vouch, such as
  // a checkpoint, needs no log.
  absl::Status CheckMayRead(WalStore& store, const std::string& directory);
  // Of a file that RocksDB wants to read. Errors: FailedPrecondition (DV1,
  // WFS3).
  absl::Status CheckReadable(const Place& place, const std::string& path);
  // If the lock that goes is the last one, of a database that is vouched for.
  std::shared_ptr<WalStore> StoreToLeave() const;
  void LeaveDirectory(WalStore& store);
  bool is_vouched() const;
  void NoteVouched();

  const WalOptions options_;
  // Held while the directory's file is written. Locked before `mutex_`.
  Mutex vouch_mutex_;
  // That the directory named when the generation rose; since then (DV4).
  std::optional<ManifestName> risen_manifest_ ABSL_GUARDED_BY(vouch_mutex_);
  mutable Mutex mutex_;
  std::shared_ptr<WalStore> store_ ABSL_GUARDED_BY(mutex_);
  std::string locked_database_ ABSL_GUARDED_BY(mutex_);  // or empty
  int locks_ ABSL_GUARDED_BY(mutex_) = 0;                // of it
  bool has_made_wal_ ABSL_GUARDED_BY(mutex_) = false;    // since then
  bool is_vouched_ ABSL_GUARDED_BY(mutex_) = false;      // DV1, since then
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_FS_WAL_FILE_SYSTEM_H_
