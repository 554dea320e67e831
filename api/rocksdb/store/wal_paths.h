// SPDX-License-Identifier: Apache-2.0
// wal_paths: names of WAL files in directories, and the markers of those in a
// log.
//
// A marker is a symbolic link that can't be followed: opening it fails (WFS1 of
// wal_file_system.h).
//
// Thread safety: pure, except for the markers, which are one system call each.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_PATHS_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_PATHS_H_

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace alpheus::wal {

// Returns the absolute path without symbolic links, so that a directory has one
// name; empty is the working directory.
std::string Canonical(const std::filesystem::path& path);

// Returns whether it is NUMBER.log, as RocksDB names its WAL files.
bool IsWalName(absl::string_view name);

// Returns whether it is a table or a blob file, also of a former LevelDB
// database.
bool IsTableName(absl::string_view name);

// Returns false if a path can't belong to a file in a log, however it was
// renamed.
bool MayNameAWal(absl::string_view path);

// Returns `path` relative to `directory`; nothing if it is not below it.
std::optional<std::string> Below(absl::string_view directory,
                                 absl::string_view path);

// Makes a marker; OK if it exists. Errors: Internal (system error).
absl::Status PutMarker(const std::filesystem::path& path);
// Returns whether the path is a marker.
bool IsMarker(const std::filesystem::path& path);
// Removes a marker; OK if there is none; a plain file stays. Errors: as
// PutMarker.
absl::Status DropMarker(const std::filesystem::path& path);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_PATHS_H_
