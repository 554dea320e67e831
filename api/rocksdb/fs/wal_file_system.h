// SPDX-License-Identifier: Apache-2.0
// wal_file_system: RocksDB's FileSystem with the WAL in an Alpheus log; an
// application or --fs_uri puts it under RocksDB.
//
//   std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(
//       alpheus::NewWalFileSystem(options, rocksdb::FileSystem::Default()));
//
// Idea: files that RocksDB makes as NUMBER.log in the WAL directory of one
// database live in the log, wherever they are renamed to below it. All other
// calls are passed on. Older WAL files in the base file system stay readable
// there. A WAL that is copied elsewhere (checkpoint, backup) is a plain file.
//
// Invariants:
//   WFS1. A log serves one database, which its home record names. If the log
//         belongs to another database, locking is refused. If the log has its
//         WAL files in another directory, the first WAL file that the database
//         makes after locking is refused, since it was opened without those. So
//         no database has its WAL elsewhere than it believes. Later WAL files
//         elsewhere are allowed; they belong to a checkpoint, for example.
//   WFS2. A log without a home serves an existing database only if told to
//         adopt it: otherwise a lost log would look like a new one. A new
//         database gets its log before CURRENT, the file by which a database
//         exists: RocksDB makes its first WAL file later, and may be stopped in
//         between.
//   WFS3. In the directory each WAL file of the log has a marker of its name, a
//         symbolic link that can't be followed. So RocksDB without this plugin,
//         or with an empty log, fails to open the database, instead of opening
//         it without its WAL. A marker is made only when its file is durable,
//         and removed before its file is. A file that is not recorded (WST4,
//         wal_store.h) has no marker: it has no data, and a crash leaves
//         nothing of it.
//         Log and directory identify each other by more than that
//         (docs/use/rocksdb.md#vouching, directory_vouch.h). If they do not
//         match, nothing is read from the log and the database is refused.
//   WFS4. A process that lost the log changes no directory entry of the
//         database and opens no file for overwriting. Before each change in a
//         replicated log, a process confirms that it still has the log by a
//         durable record. A new file gets a new inode, so that a late writer
//         with the old file open changes no file of ours.
//   WFS5. If RocksDB was told that a change of the MANIFEST or of CURRENT is
//         synced, this process had the log when the change was made.
// Fault model: between the confirmation and the change of WFS4 a process may
// stand still for long. Only take_over.h helps against one that comes back
// after that.
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
  // Brings the database of a log that came from another process into our
  // directory.
  absl::Status TakeOver(WalStore& store);
  // Confirms that this process has the log (WFS4). Errors: as
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
  // WFS1: returns whether the locked database's WAL may have another directory
  // from now on.
  bool MayChangeItsDirectory(const WalStore& store) const;
  // WFS1: checks a new WAL file that is not kept in the log.
  absl::Status CheckMayBePlain(const Place& place) const;
  // Returns the files that RocksDB would replay: none in an archive, none that
  // wait to be deleted.
  static std::vector<std::string> Replayable(const WalStore& store);
  void NoteWalMade();
  // Returns the WAL directory of a database that moves into `directory`.
  // Errors: FailedPrecondition (the WAL files had a directory of their own, and
  // no option names the new one).
  absl::StatusOr<std::string> WalDirectoryIn(
      const WalHome& home, const std::string& directory) const;
  // Returns the log's home once this database is locked. Errors:
  // FailedPrecondition (WFS1, WFS2).
  absl::StatusOr<WalHome> CheckDatabase(WalStore& store,
                                        const std::string& directory);
  // WFS1: returns the error for a database whose log belongs to another one.
  absl::Status RefuseElsewhere(WalStore& store, const std::string& directory);
  // Describes the database of the log, and the place of its WAL.
  static std::string DescribeHome(const WalStore& store);
  // Returns the home for a log that has WAL files and no home.
  absl::StatusOr<WalHome> HomeOfNone(const std::string& directory) const;
  // WFS2. Called when CURRENT is about to be made. If the log has no WAL file,
  //       and the database is the locked one and new, the log durably belongs
  //       to it on return.
  absl::Status ClaimForNewDatabase(WalStore& store,
                                   const std::string& directory);
  // WFS1: checks that a database made now will not find another one's WAL
  // later.
  absl::Status CheckMayBeNew(WalStore& store, const std::string& directory);
  // Returns whether the directory has nothing of a database, except these
  // names.
  absl::StatusOr<bool> IsNew(const std::string& directory,
                             const std::vector<std::string>& but_for);
  // Takes over a database that may have had no WAL file yet.
  absl::Status TakeOverNew(const std::string& from, const std::string& to);
  // Applies WFS1 and WFS2 to a database that gets locked.
  absl::Status LockDatabase(const std::string& directory);
  // Errors: FailedPrecondition (another database is locked).
  absl::Status NoteLocked(const std::string& directory);
  void NoteUnlocked();
  std::string LockedDatabase() const;
  // Returns the locked database until it has made a WAL file.
  std::string OpeningDatabase() const;
  absl::Status PutMarkers(WalStore& store);

  // Collects the facts about a database whose WAL the log has, or will have
  // with this `home`.
  absl::StatusOr<VouchFacts> LookAt(WalStore& store, const WalHome& home);
  // Returns the markers without a file in the WAL directory.
  absl::StatusOr<std::vector<std::string>> MissingWal(WalStore& store,
                                                      const WalHome& home);
  void LookAtFiles(WalStore& store, const WalHome& home, VouchFacts& facts);
  WalHome Completed(WalHome home) const;
  // For an opening for writing: on return OK, log and directory vouch for each
  // other, in a new generation if there is room for it.
  absl::Status SettleVouch(WalStore& store, const WalHome& home,
                           const VouchFacts& facts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  absl::Status BeginGeneration(WalStore& store, const WalHome& home,
                               const VouchFacts& facts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // Vouches with a new id, so that no older copy matches any more.
  absl::Status VouchAnew(WalStore& store, const std::string& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  absl::Status ChangeVouch(WalStore& store, const std::string& directory,
                           const WalVouch& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // Drop the WAL files of the log with their markers, and markers without a
  // file.
  absl::Status DropWal(WalStore& store);
  absl::Status DropMissing(WalStore& store, const WalHome& home);
  // Vouches if nothing could be mixed, for a database that is new or that no
  // process has locked.
  absl::Status VouchIfUnmixed(WalStore& store)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // DV4: called before and after a WAL file is removed, or renamed out of the
  // replayed ones. Starts a new generation if one is due; a rise that has no
  // room before may have room after. Errors: of the log.
  absl::Status RiseAround(WalStore& store, const std::string& name);
  // Returns OK if the log's content may be read over this database.
  absl::Status CheckVouched(WalStore& store);
  // DV3: called before the renaming of `from` to CURRENT; ForgetOldManifest is
  // called after it.
  absl::Status NameManifest(WalStore& store, const std::string& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  absl::Status ForgetOldManifest(WalStore& store)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // DV5: renames a file to IDENTITY of the database.
  IOStatus RenameToIdentity(const std::string& from, const std::string& to,
                            const IOOptions& options, IODebugContext* dbg);
  absl::Status SetIdentity(const std::string& directory,
                           const std::string& identity)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(vouch_mutex_);
  // Checks a reading of CURRENT by a process that has not locked the database,
  // as an opening for writing would be checked. A directory that does not
  // vouch, such as a checkpoint, needs no log.
  absl::Status CheckMayRead(WalStore& store, const std::string& directory);
  // Checks a file that RocksDB wants to read. Errors: FailedPrecondition (DV1,
  // WFS3).
  absl::Status CheckReadable(const Place& place, const std::string& path);
  // Returns the store if the lock to be released is the last one, of a database
  // that is vouched for; else null.
  std::shared_ptr<WalStore> StoreToLeave() const;
  void LeaveDirectory(WalStore& store);
  bool is_vouched() const;
  void NoteVouched();

  const WalOptions options_;
  // Held while the directory's file is written; locked before `mutex_`.
  Mutex vouch_mutex_;
  // MANIFEST that the directory named at the last rise of the generation (DV4).
  std::optional<ManifestName> risen_manifest_ ABSL_GUARDED_BY(vouch_mutex_);
  mutable Mutex mutex_;
  std::shared_ptr<WalStore> store_ ABSL_GUARDED_BY(mutex_);
  std::string locked_database_ ABSL_GUARDED_BY(mutex_);  // or empty
  int locks_ ABSL_GUARDED_BY(mutex_) = 0;                // locks on it
  bool has_made_wal_ ABSL_GUARDED_BY(mutex_) = false;    // since locking
  bool is_vouched_ ABSL_GUARDED_BY(mutex_) = false;      // DV1, since locking
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_FS_WAL_FILE_SYSTEM_H_
