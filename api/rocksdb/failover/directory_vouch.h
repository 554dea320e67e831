// SPDX-License-Identifier: Apache-2.0
// directory_vouch: by which the directory of a database and the log that has
// its WAL know each other.
//
// Why it exists: the state of a database is in two places. Whoever puts an
// older copy back in one of them alone (a backup, a checkpoint, a copy of the
// region) would have tables of one state below the WAL of another one.
//
// Idea: the log and a small file in the directory say the same id and the same
// generation, which rises with each opening for writing, and before a WAL file
// goes. A backup and a checkpoint do not carry that file, and a restore deletes
// it; an older copy of the directory has an older generation, and so has an
// older copy of the region. The file also names the MANIFEST, for whoever
// replaces that and leaves the rest, and the identity that RocksDB gave the
// database, for whoever copies the file itself. Each WAL file of the log has a
// marker in the directory (WFS3 of wal_file_system.h): RocksDB is told of one
// without its file where it needs that file, and not before, as a power cut may
// bring an old marker back. A copy may leave markers out, as some tools do with
// symbolic links: those of the log's files are put again, and of a file that
// the log no longer has the generation tells (DV4). Where the log says that the
// database is elsewhere, no word gives its WAL to another directory (DV6): what
// has gone on with that WAL may be on another machine, and nothing here tells.
//
// Invariants:
//   DV1. While a database is open for writing, directory and log say the same,
//        or one of them says what the other one said before.
//   DV2. What they say is changed in the directory first, durably; there it
//        says what the log said before, until the log says the new thing
//        durably.
//   DV3. CURRENT names a MANIFEST that the file names.
//   DV4. A directory of the log's generation needs no WAL file that the log has
//        removed. RocksDB removes one when a synced MANIFEST needs it no
//        longer. So before a file goes, the generation rises if the MANIFEST
//        has changed since the last rise: a copy of before that is of an older
//        generation, and one that mixes a MANIFEST of before that with this
//        file breaks DV3.
//   DV5. What the file says is of the database with that IDENTITY. While
//        RocksDB replaces IDENTITY, the file names none, and is that of any.
//   DV6. The WAL of a database that the log says to be elsewhere is dropped, or
//        replayed over another directory, by no word. Such a directory has the
//        log by adopt only if it says what the log says, or if the log has no
//        data; and not if a take-over left it.
// Crash states of a rise are those of DV2; behind it the WAL file is still
// there, and RocksDB removes it again.
// Persistence: the file is replaced by renaming; docs/use/rocksdb.md#vouching
// has the table of what each side may say, and what an opening makes of it.
// Fault model: what the log's room does not allow is not changed: an opening
// with a full ring leaves the generation as it is, and a file that goes makes
// room first (DV4). A process that ends between the two leaves it so until the
// next opening. The same where the directory can't be written: a ring that
// stays full would be worse. A copy within a generation is of another moment
// than the log, and lacks what only the MANIFEST says since: a column family,
// an ingested file.
// Thread safety: Judge is pure; of a directory one call at a time writes, which
// the caller sees to.
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

namespace alpheus {

// The name of the file. RocksDB knows no file of that name, and leaves it
// alone.
inline constexpr absl::string_view kVouchFileName = "ALPHEUS";

struct ManifestName {
  std::string name;    // MANIFEST-000005; empty: not known
  uint64_t bytes = 0;  // at least

  bool operator==(const ManifestName&) const = default;
};

// The content of the file.
struct DirectoryVouch {
  WalVouch log;
  std::optional<WalVouch> log_was;  // DV2; an empty id: the log did not vouch
  ManifestName manifest;
  std::string manifest_was;  // until CURRENT was replaced
  std::string identity;      // of the database (DV5); empty: not known

  bool operator==(const DirectoryVouch&) const = default;
};

std::string EncodeDirectoryVouch(const DirectoryVouch& vouch);
// Nothing of what no version wrote.
std::optional<DirectoryVouch> DecodeDirectoryVouch(const std::string& text);

// Nothing if there is none, or none that can be read. Errors: Unavailable (what
// the file system says).
absl::StatusOr<std::optional<DirectoryVouch>> ReadDirectoryVouch(
    rocksdb::FileSystem& fs, const std::string& directory);
// Durable when it returns. Errors: Unavailable.
absl::Status WriteDirectoryVouch(rocksdb::FileSystem& fs,
                                 const std::string& directory,
                                 const DirectoryVouch& vouch);
// OK if there is none. Errors: Unavailable.
absl::Status RemoveDirectoryVouch(rocksdb::FileSystem& fs,
                                  const std::string& directory);

// Makes durable which names there are. Errors: Unavailable.
absl::Status SyncDirectory(rocksdb::FileSystem& fs,
                           const std::string& directory);

// What CURRENT names; an empty name if that can't be told. Errors: Unavailable.
absl::StatusOr<ManifestName> NamedManifest(rocksdb::FileSystem& fs,
                                           const std::string& directory);

// The same, durable on return as far as `bytes` says. Errors: Unavailable.
absl::StatusOr<ManifestName> SyncedManifest(rocksdb::FileSystem& fs,
                                            const std::string& directory);

// What RocksDB's IDENTITY says; empty if that can't be told. Errors:
// Unavailable.
absl::StatusOr<std::string> DatabaseIdentity(rocksdb::FileSystem& fs,
                                             const std::string& directory);

// The facts that an opening finds.
struct VouchFacts {
  WalVouch log;
  std::optional<DirectoryVouch> directory;
  bool has_database = false;  // CURRENT, or a table
  ManifestName manifest;      // that CURRENT names
  std::string identity;       // that RocksDB gave it; empty: not known
  bool has_data = false;      // a WAL file of the log has a byte
  bool has_marker = false;    // a WAL file of the log has its marker
  bool has_wal_name = true;   // a marker or plain WAL file is in the directory
  std::string twice;          // a file of the log and a plain one
  // Where the log says that the database is; empty: in this directory, or not
  // known.
  std::string elsewhere;
  WalLeft left;                // by a take-over, as the log says
  bool has_left_name = false;  // this directory has the name of that
};

enum class VouchVerdict {
  kVouched,
  // The log has the WAL of this directory as far as can be told, and neither
  // vouches yet: a new one, or one of an older version of the plugin.
  kNotYet,
  // The directory is not what the log knows, and the log has no byte that could
  // be mixed with it.
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

// OK if it is none that is refused; else what was found, and what to do.
absl::Status ToStatus(VouchVerdict verdict, const VouchFacts& facts,
                      const std::string& directory);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_FAILOVER_DIRECTORY_VOUCH_H_
