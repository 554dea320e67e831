// SPDX-License-Identifier: Apache-2.0
// database_lock: the database that is open over a WalFileSystem, and what this
// process knows of it since.
//
// Idea: RocksDB locks a database before it opens it, sometimes twice. Facts
// that were found out, and work that was done, hold until the last lock is
// released.
//
// Invariants:
//   DLK1. At most one database is locked.
// Thread safety: all members concurrently.
// References: wal_file_system.h.
#ifndef ALPHEUS_API_ROCKSDB_FS_DATABASE_LOCK_H_
#define ALPHEUS_API_ROCKSDB_FS_DATABASE_LOCK_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "log/base/mutex.h"

namespace alpheus::wal {

class DatabaseLock {
 public:
  // Counts a lock on the database in this directory. Errors: FailedPrecondition
  // (another database is locked).
  absl::Status Take(const std::string& directory);
  // Requires: a lock.
  void Release();

  // Returns the directory of the locked database, or an empty string.
  std::string database() const;
  // Returns the same until the database has made a WAL file; then an empty
  // string.
  std::string opening() const;
  bool is_free() const;
  // Returns true if one lock is left, on a database that is vouched for.
  bool is_to_be_left() const;

  void NoteWalMade();
  // Notes that log and directory vouch for each other (DV1), if the database is
  // locked.
  void NoteVouched();
  bool is_vouched() const;

 private:
  mutable Mutex mutex_;
  std::string database_ ABSL_GUARDED_BY(mutex_);
  int locks_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_made_wal_ ABSL_GUARDED_BY(mutex_) = false;  // since locking
  bool is_vouched_ ABSL_GUARDED_BY(mutex_) = false;    // since locking
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FS_DATABASE_LOCK_H_
