// SPDX-License-Identifier: Apache-2.0
// wal_paths: names of WAL files in directories, and the markers that stand
// there for those that are in a log.
//
// A marker is a symbolic link that can't be followed: whoever opens it fails
// (WFS3 of wal_file_system.h). Thread safety: pure, but for the markers, which
// are one system call each.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_PATHS_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_PATHS_H_

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace alpheus {

// Absolute, without symbolic links, so that a directory has one name; empty is
// the working directory.
std::string Canonical(const std::filesystem::path& path);

// NUMBER.log, as RocksDB names its WAL files.
bool IsWalName(absl::string_view name);

// A table or a blob file, also of a database that was LevelDB's.
bool IsTableName(absl::string_view name);

// False if a path can't be of a file in a log, however it was renamed.
bool MayNameAWal(absl::string_view path);

// `path` relative to `directory`. Empty optional: not below it.
std::optional<std::string> Below(absl::string_view directory,
                                 absl::string_view path);

// OK if it is there. Errors: Internal (what the system says).
absl::Status PutMarker(const std::filesystem::path& path);
// A link that can't be followed.
bool IsMarker(const std::filesystem::path& path);
// OK if there is none; a plain file stays. Errors: as PutMarker.
absl::Status DropMarker(const std::filesystem::path& path);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_PATHS_H_
