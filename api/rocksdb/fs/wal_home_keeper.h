// SPDX-License-Identifier: Apache-2.0
// wal_home_keeper: knows which database a log belongs to, and decides whether
// another one may have it.
//
// Idea: a record of the log names its *home*: the database, and the directory
// of its WAL files. This class checks a database against it before anything is
// read or made, gives a log without a home to a database, and brings a database
// that another process had into our directory.
//
// Invariants:
//   WHK1. A log serves one database, which its home record names. If the log
//         belongs to another database, locking is refused. If the log has its
//         WAL files in another directory, the first WAL file that the database
//         makes after locking is refused, since it was opened without those. So
//         no database has its WAL elsewhere than it believes. Later WAL files
//         elsewhere are allowed; they belong to a checkpoint, for example.
//   WHK2. A log without a home serves an existing database only if told to
//         adopt it: otherwise a lost log would look like a new one. A new
//         database gets its log before CURRENT, the file by which a database
//         exists: RocksDB makes its first WAL file later, and may be stopped in
//         between.
// Thread safety: all members concurrently.
// References: wal_index.h (WalHome), vouch_keeper.h; docs/use/rocksdb.md.
#ifndef ALPHEUS_API_ROCKSDB_FS_WAL_HOME_KEEPER_H_
#define ALPHEUS_API_ROCKSDB_FS_WAL_HOME_KEEPER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/rocksdb/fs/database_lock.h"
#include "api/rocksdb/fs/vouch_keeper.h"
#include "api/rocksdb/store/wal_options.h"
#include "api/rocksdb/store/wal_store.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

class WalHomeKeeper {
 public:
  // All must outlive the object.
  WalHomeKeeper(const WalOptions& options, rocksdb::FileSystem& base,
                const DatabaseLock& lock, VouchKeeper& vouch)
      : options_(options), base_(base), lock_(lock), vouch_(vouch) {}

  // Brings the database of a log that came from another process into our
  // directory (WalOptions::take_over).
  absl::Status TakeOver(WalStore& store) const;
  // Returns the log's home once this database is locked. Errors:
  // FailedPrecondition (WHK1, WHK2).
  absl::StatusOr<WalHome> CheckDatabase(WalStore& store,
                                        const std::string& directory);
  // WHK2. Called when CURRENT is about to be made. If the log has no WAL file,
  //       and the database is the locked one and new, the log durably belongs
  //       to it on return.
  absl::Status ClaimForNewDatabase(WalStore& store,
                                   const std::string& directory);
  // Checks a reading of CURRENT by a process that has not locked the database,
  // as an opening for writing would be checked. A directory that does not
  // vouch, such as a checkpoint, needs no log.
  absl::Status CheckMayRead(WalStore& store, const std::string& directory);

  // WHK1: returns whether the locked database's WAL may have another directory
  // from now on.
  bool MayChangeItsDirectory(const WalStore& store) const;
  // WHK1: checks a new file with that directory and name, which is not kept in
  // the log.
  absl::Status CheckMayBePlain(const WalStore& store,
                               const std::string& directory,
                               const std::string& base_name) const;
  // Describes the database of the log, and the place of its WAL.
  static std::string DescribeHome(const WalStore& store);

 private:
  // Returns the WAL directory of a database that moves into `directory`.
  // Errors: FailedPrecondition (the WAL files had a directory of their own, and
  // no option names the new one).
  absl::StatusOr<std::string> WalDirectoryIn(
      const WalHome& home, const std::string& directory) const;
  // Takes over a database that may have had no WAL file yet.
  absl::Status TakeOverNew(const std::string& from,
                           const std::string& to) const;
  // WHK1: returns the error for a database whose log belongs to another one.
  absl::Status RefuseElsewhere(WalStore& store, const std::string& directory);
  // Returns the home for a log that has WAL files and no home.
  absl::StatusOr<WalHome> HomeOfNone(const std::string& directory) const;
  // WHK1: checks that a database made now will not find another one's WAL
  // later.
  absl::Status CheckMayBeNew(WalStore& store, const std::string& directory);
  // Returns whether the directory has nothing of a database, except these
  // names.
  absl::StatusOr<bool> IsNew(const std::string& directory,
                             const std::vector<std::string>& but_for);

  const WalOptions& options_;
  rocksdb::FileSystem& base_;
  const DatabaseLock& lock_;
  VouchKeeper& vouch_;
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FS_WAL_HOME_KEEPER_H_
