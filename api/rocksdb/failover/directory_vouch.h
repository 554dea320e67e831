// SPDX-License-Identifier: Apache-2.0
// directory_vouch: the data by which the directory of a database and the log
// with its WAL identify each other.
//
// Why it exists: the state of a database is in two places. An older copy of one
// of them alone (a backup, a checkpoint, a copy of the region) would combine
// tables of one state with the WAL of another.
//
// Idea: the log and a small file in the directory hold the same id and the same
// generation. The generation rises with each opening for writing, and before a
// WAL file is removed.
// * A backup and a checkpoint do not contain that file, and a restore deletes
//   it.
// * An older copy of the directory, or of the region, has an older generation.
// * The file names the MANIFEST, to detect that only that was replaced, and the
//   IDENTITY of the database, to detect that the file itself was copied.
// * Each WAL file of the log has a marker in the directory (WFS1 of
//   wal_file_system.h). A marker without its file is an error only when RocksDB
//   needs that file, since a power cut may bring an old marker back.
// * A copy may lack markers, as some tools skip symbolic links. Markers of the
//   log's files are made again. Files that the log no longer has are noticed by
//   the generation (DV4).
// * If the log says that the database is elsewhere, no option gives its WAL to
//   another directory (DV6): the database may live on at another machine, which
//   nothing here can see.
//
// Invariants:
//   DV1. While a database is open for writing, directory and log hold the same
//        value. During a change the one that is not changed yet holds the
//        previous value.
//   DV2. A change goes to the directory first, durably. There the file also
//        keeps the log's old value until the log durably holds the new one. A
//        rise from generation 4 to 5, with the old value in brackets:
//          step                    file      log
//          0. before               4         4
//          1. file replaced        5 (4)     4
//          2. log record durable   5 (4)     5
//          3. file replaced        5         5
//   DV3. The file names the MANIFEST that CURRENT names. While RocksDB replaces
//        CURRENT, it names both the old and the new one.
//   DV4. A directory of the log's generation needs no WAL file that the log has
//        removed. RocksDB removes a WAL file when a synced MANIFEST no longer
//        needs it. So before the removal the generation rises if the MANIFEST
//        has changed since the last rise. An earlier copy then has an older
//        generation, and a mix of an earlier MANIFEST with this file breaks
//        DV3.
//   DV5. The file is valid for the database with that IDENTITY. While RocksDB
//        replaces IDENTITY, the file names none, and is valid for any.
//   DV6. If the log says that its database is elsewhere, no option drops that
//        WAL or replays it over another directory. Another directory gets the
//        log by `adopt` only if its file says what the log says, or if the log
//        has no data; and never if a take-over left it.
// Crash states: during a rise the steps of DV2. After a rise the WAL file is
// still there, and RocksDB removes it again.
// Persistence: the file is replaced by renaming. docs/use/rocksdb.md#vouching
// has the table of the values on each side, and of what an opening does.
// Fault model:
// * With a full ring changes are skipped: an opening leaves the generation as
//   it is, and the removal of a file makes room before the rise (DV4). If the
//   process ends between the two, the generation stays until the next opening.
//   A directory that can't be written is treated in the same way: a ring that
//   stays full would be worse.
// * A copy within a generation is of another moment than the log. It lacks what
//   only the MANIFEST has gained since: a column family, an ingested file.
// Thread safety: Judge is pure. One call at a time writes a directory; the
// caller ensures that.
#ifndef ALPHEUS_API_ROCKSDB_FAILOVER_DIRECTORY_VOUCH_H_
#define ALPHEUS_API_ROCKSDB_FAILOVER_DIRECTORY_VOUCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "api/rocksdb/store/wal_index.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

// Name of the file. RocksDB does not know it, and leaves it alone.
inline constexpr absl::string_view kVouchFileName = "ALPHEUS";

struct ManifestName {
  std::string name;    // such as MANIFEST-000005; empty: not known
  uint64_t bytes = 0;  // at least

  bool operator==(const ManifestName&) const = default;
};

// Content of the file.
struct DirectoryVouch {
  WalVouch log;
  std::optional<WalVouch> log_was;  // DV2; empty id: the log did not vouch
  ManifestName manifest;
  std::string manifest_was;  // until CURRENT was replaced
  std::string identity;      // of the database (DV5); empty: not known

  bool operator==(const DirectoryVouch&) const = default;
};

std::string EncodeDirectoryVouch(const DirectoryVouch& vouch);
// Returns nothing for a text that no version writes.
std::optional<DirectoryVouch> DecodeDirectoryVouch(const std::string& text);

// Returns nothing if the file is missing or unreadable. Errors: Unavailable
// (error of the file system).
absl::StatusOr<std::optional<DirectoryVouch>> ReadDirectoryVouch(
    rocksdb::FileSystem& fs, const std::string& directory);
// Writes the file; durable on return. Errors: Unavailable.
absl::Status WriteDirectoryVouch(rocksdb::FileSystem& fs,
                                 const std::string& directory,
                                 const DirectoryVouch& vouch);
// Removes the file; OK if there is none. Errors: Unavailable.
absl::Status RemoveDirectoryVouch(rocksdb::FileSystem& fs,
                                  const std::string& directory);

// Makes the names in the directory durable. Errors: Unavailable.
absl::Status SyncDirectory(rocksdb::FileSystem& fs,
                           const std::string& directory);

// Returns the MANIFEST in CURRENT; an empty name if that is unknown. Errors:
// Unavailable.
absl::StatusOr<ManifestName> NamedManifest(rocksdb::FileSystem& fs,
                                           const std::string& directory);

// Returns the same, after making it durable up to `bytes`. Errors: Unavailable.
absl::StatusOr<ManifestName> SyncedManifest(rocksdb::FileSystem& fs,
                                            const std::string& directory);

// Returns the content of RocksDB's IDENTITY; empty if unknown. Errors:
// Unavailable.
absl::StatusOr<std::string> DatabaseIdentity(rocksdb::FileSystem& fs,
                                             const std::string& directory);

// Facts that an opening finds.
struct VouchFacts {
  WalVouch log;
  std::optional<DirectoryVouch> directory;
  bool has_database = false;  // CURRENT, or a table
  ManifestName manifest;      // named by CURRENT
  std::string identity;       // RocksDB's IDENTITY; empty: not known
  bool has_data = false;      // a WAL file of the log has a byte
  bool has_marker = false;    // a WAL file of the log has its marker
  bool has_wal_name = true;   // a marker or plain WAL file is in the directory
  std::string twice;          // path that is in the log and a plain file
  // Directory of the database according to the log; empty: this one, or not
  // known.
  std::string elsewhere;
  WalLeft left;                // left by a take-over, as the log says
  bool has_left_name = false;  // this directory has the name of that one
};

enum class VouchVerdict {
  kVouched,
  // The log has the WAL of this directory, as far as known, and neither vouches
  // yet: a new database, or one of an older version of the plugin.
  kNotYet,
  // The directory does not match the log, and the log has no byte to mix with
  // it.
  kNothingToMix,
  // The rest is refused.
  kDirectoryReplaced,
  kDirectoryOlder,
  kLogOlder,
  kOtherLog,
  kManifestReplaced,
  kOtherDatabase,
  kWalTwice,
  kLeft,
  kNothingHere,
};

// DV5.
bool IsOf(const DirectoryVouch& vouch, const std::string& identity);

VouchVerdict Judge(const VouchFacts& facts);

// Returns OK unless the verdict is a refusal; else the finding and the remedy.
absl::Status ToStatus(VouchVerdict verdict, const VouchFacts& facts,
                      const std::string& directory);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FAILOVER_DIRECTORY_VOUCH_H_
