// SPDX-License-Identifier: Apache-2.0
// take_over: gives a database to a process whose predecessor may still be
// there, in a directory of its own.
//
// Idea: the log ends what the predecessor writes to it, but not what it does in
// the directory of the database: as soon as it goes on it may end a compaction
// there, delete tables, rename CURRENT. No question to the log right before
// helps, as the process may stand still between question and deed. So the
// successor does not work in that directory. Its own one has the tables as hard
// links, which are never changed once a MANIFEST names them, and MANIFEST and
// CURRENT as copies. The predecessor knows no name in it.
//
// Invariants:
//   TO1. Requires: the log was opened before this is called. Then each WAL file
//        that the copied MANIFEST needs is in the log, or a plain one: removing
//        one takes a record, or a new head of the log, and the predecessor can
//        write neither any more.
//   TO2. All tables that the copied MANIFEST names are linked: it did not
//        change while they were linked, and a table is deleted only after it
//        did.
// Persistence: CURRENT is put last, and all else is durable before, also the
// name of the WAL directory and those in it; a directory without CURRENT is
// what was not finished, and is filled anew.
// Fault model: the file system has hard links, shows what another machine has
// synced to whoever opens a file after that, and has all tables of the database
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

namespace alpheus {

// Errors: Unavailable (what the file system says).
absl::StatusOr<bool> HasDatabase(rocksdb::FileSystem& fs,
                                 const std::string& directory);

// Errors: FailedPrecondition (`to` has a database); as HasDatabase.
absl::Status CheckHasNoDatabase(rocksdb::FileSystem& fs, const std::string& to);

// Makes in `to` the database that `from` has; `from` stays as it is. WAL files
// of before the plugin, which no log has, go from the one WAL directory to the
// other. Errors: FailedPrecondition (`to` has a database; there is none in
// `from`); Unavailable (a file can't be read, written or linked, or a directory
// not listed; the predecessor changes the database all the time).
absl::Status TakeOverDatabase(rocksdb::FileSystem& fs, const WalHome& from,
                              const WalHome& to);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_FAILOVER_TAKE_OVER_H_
