// SPDX-License-Identifier: Apache-2.0
// take_over: moves a database to a process whose predecessor may still run,
// into a directory of its own.
//
// Idea: the log stops the predecessor's writes to it, but not its changes in
// the directory of the database. When the predecessor continues it may end a
// compaction there, delete tables, or rename CURRENT. Confirming the log before
// each change does not help, since the process may stand still in between. So
// the successor works in a directory of its own. It has the tables as hard
// links, which never change once a MANIFEST names them, and copies of MANIFEST
// and CURRENT. The predecessor knows no name in it.
//
// Invariants:
//   TO1. Each WAL file that the copied MANIFEST needs is in the log, or a plain
//        file. Reason: this process has opened the log before (Requires). To
//        remove a WAL file takes a record or a new head of the log, and the
//        predecessor can write neither any more.
//   TO2. All tables of the copied MANIFEST are linked. Reason: the MANIFEST did
//        not change while they were linked, and RocksDB deletes a table only
//        after a change of it.
// Persistence: CURRENT is written last. Everything else is durable before it,
// including the name of the WAL directory and those in it. A directory without
// CURRENT is unfinished, and is filled again.
// Fault model: the file system has hard links, shows another machine's synced
// data to a process that opens a file later, and has all tables of the database
// in its directory (no db_paths, no cf_paths).
// Thread safety: one call for a directory at a time.
// References: docs/use/rocksdb.md#fail-over.
#ifndef ALPHEUS_API_ROCKSDB_FAILOVER_TAKE_OVER_H_
#define ALPHEUS_API_ROCKSDB_FAILOVER_TAKE_OVER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/rocksdb/store/wal_index.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

// Returns whether the directory has a database. Errors: Unavailable (error of
// the file system).
absl::StatusOr<bool> HasDatabase(rocksdb::FileSystem& fs,
                                 const std::string& directory);

// Checks that `to` has no database. Errors: FailedPrecondition (it has one); as
// HasDatabase.
absl::Status CheckHasNoDatabase(rocksdb::FileSystem& fs, const std::string& to);

// Makes in `to` the database of `from`, which stays as it is. Older WAL files
// that no log has move from the one WAL directory to the other. Errors:
// FailedPrecondition (`to` has a database; `from` has none); Unavailable (a
// file can't be read, written or linked, or a directory not listed; the
// predecessor keeps changing the database).
absl::Status TakeOverDatabase(rocksdb::FileSystem& fs, const WalHome& from,
                              const WalHome& to);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FAILOVER_TAKE_OVER_H_
