// SPDX-License-Identifier: Apache-2.0
// vouch_keeper: keeps a log and the directory of its database vouching for each
// other, and refuses or drops what does not match.
//
// Idea: directory_vouch.h says what vouches for what, and judges facts. This
// class collects the facts, and makes the changes that an opening, the removal
// of a WAL file, and RocksDB's changes of CURRENT and IDENTITY need.
//
// Invariants: DV1 to DV6 of directory_vouch.h.
// Thread safety: all members concurrently. Calls that write the directory's
// file require mutex(), or take it.
// References: directory_vouch.h; docs/use/rocksdb.md#vouching.
#ifndef ALPHEUS_API_ROCKSDB_FS_VOUCH_KEEPER_H_
#define ALPHEUS_API_ROCKSDB_FS_VOUCH_KEEPER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/rocksdb/failover/directory_vouch.h"
#include "api/rocksdb/fs/database_lock.h"
#include "api/rocksdb/store/wal_options.h"
#include "api/rocksdb/store/wal_store.h"
#include "log/base/mutex.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

// Returns the files that RocksDB would replay: none in an archive, none that
// wait to be deleted.
std::vector<std::string> ReplayableWal(const WalStore& store);

class VouchKeeper {
 public:
  // All must outlive the object.
  VouchKeeper(const WalOptions& options, rocksdb::FileSystem& base,
              DatabaseLock& lock)
      : options_(options), base_(base), lock_(lock) {}

  // Held while the directory's file is written.
  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  // Collects the facts about a database whose WAL the log has, or will have
  // with this `home`.
  absl::StatusOr<VouchFacts> ReadFacts(WalStore& store, const WalHome& home);
  // For an opening for writing: on return OK, log and directory vouch for each
  // other, in a new generation if there is room for it.
  absl::Status VouchBoth(WalStore& store, const WalHome& home,
                         const VouchFacts& facts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Vouches if nothing could be mixed, for a database that is new or that no
  // process has locked.
  absl::Status VouchIfUnmixed(WalStore& store)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns OK if the log's content may be read over this database.
  absl::Status CheckVouched(WalStore& store);

  // DV4: called before and after a WAL file is removed, or renamed out of the
  // replayed ones. Starts a new generation if one is due; a rise that has no
  // room before may have room after. Errors: of the log.
  absl::Status RiseAround(WalStore& store, const std::string& name);
  // DV3: called before the renaming of `from` to CURRENT; ForgetOldManifest is
  // called after it.
  absl::Status NameManifest(WalStore& store, const std::string& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ForgetOldManifest(WalStore& store)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // DV5: renames a file to IDENTITY of the database.
  rocksdb::IOStatus RenameToIdentity(const std::string& from,
                                     const std::string& to,
                                     const rocksdb::IOOptions& options,
                                     rocksdb::IODebugContext* dbg);
  // Writes what the directory holds as its database is closed.
  void LeaveDirectory(WalStore& store);

 private:
  // Returns the markers without a file in the WAL directory.
  absl::StatusOr<std::vector<std::string>> MissingWal(WalStore& store,
                                                      const WalHome& home);
  void ReadFileFacts(WalStore& store, const WalHome& home, VouchFacts& facts);
  WalHome Completed(WalHome home) const;
  absl::Status BeginGeneration(WalStore& store, const WalHome& home,
                               const VouchFacts& facts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Vouches with a new id, so that no older copy matches any more.
  absl::Status VouchAgain(WalStore& store, const std::string& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ChangeVouch(WalStore& store, const std::string& directory,
                           const WalVouch& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drop the WAL files of the log with their markers, and markers without a
  // file.
  absl::Status DropWal(WalStore& store);
  absl::Status DropMissing(WalStore& store, const WalHome& home);
  absl::Status SetIdentity(const std::string& directory,
                           const std::string& identity)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WalOptions& options_;
  rocksdb::FileSystem& base_;
  DatabaseLock& lock_;
  Mutex mutex_;
  // MANIFEST that the directory named at the last rise of the generation (DV4).
  std::optional<ManifestName> risen_manifest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FS_VOUCH_KEEPER_H_
