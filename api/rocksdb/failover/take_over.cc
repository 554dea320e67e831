// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/failover/take_over.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "api/rocksdb/failover/directory_vouch.h"
#include "api/rocksdb/store/manifest_file.h"
#include "api/rocksdb/store/wal_paths.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Number of passes. A predecessor that lost the log makes only a few changes
// more: its next sync of the MANIFEST fails.
constexpr int kTriesMax = 100;

absl::Status ToStatus(const IOStatus& status, absl::string_view what) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("taking the database over: ", what,
                                             ": ", status.ToString()));
}

absl::StatusOr<std::string> Read(rocksdb::FileSystem& fs,
                                 const std::string& path) {
  std::string bytes;
  ALPHEUS_RETURN_IF_ERROR(
      ToStatus(rocksdb::ReadFileToString(&fs, path, &bytes), path));
  return bytes;
}

absl::Status Write(rocksdb::FileSystem& fs, const std::string& path,
                   const std::string& bytes) {
  return ToStatus(rocksdb::WriteStringToFile(&fs, bytes, path, /*sync=*/true),
                  path);
}

// One pass over the directory.
class Pass {
 public:
  Pass(rocksdb::FileSystem& fs, const WalHome& from, const WalHome& to)
      : fs_(fs),
        from_(from.database),
        to_(to.database),
        wal_from_(from.wal_directory),
        wal_to_(to.wal_directory) {}

  // Copies the MANIFEST, and reads CURRENT into current_.
  absl::Status CopyManifest() {
    ALPHEUS_ASSIGN_OR_RETURN(current_, Read(fs_, from_ + "/CURRENT"));
    absl::string_view name = current_;
    if (!absl::ConsumeSuffix(&name, "\n") ||
        !IsManifestName(std::string(name))) {
      return absl::FailedPreconditionError(
          absl::StrCat(from_, "/CURRENT names no MANIFEST"));
    }
    manifest_ = std::string(name);
    ALPHEUS_ASSIGN_OR_RETURN(manifest_bytes_,
                             Read(fs_, absl::StrCat(from_, "/", manifest_)));
    return Write(fs_, absl::StrCat(to_, "/", manifest_), manifest_bytes_);
  }

  absl::Status TakeTheRest() {
    ALPHEUS_ASSIGN_OR_RETURN(std::vector<std::string> names, List(from_));
    for (const std::string& name : names) {
      ALPHEUS_RETURN_IF_ERROR(Take(name));
    }
    std::error_code error;
    if (std::filesystem::equivalent(wal_from_, wal_to_, error)) {
      return absl::OkStatus();
    }
    ALPHEUS_ASSIGN_OR_RETURN(names, ListOldWal());
    for (const std::string& name : names) {
      ALPHEUS_RETURN_IF_ERROR(TakePlainWal(name));
    }
    return absl::OkStatus();
  }

  // Returns whether nothing has changed since CopyManifest (TO2).
  absl::StatusOr<bool> IsUnchanged() {
    ALPHEUS_ASSIGN_OR_RETURN(const std::string current,
                             Read(fs_, from_ + "/CURRENT"));
    if (current != current_) return false;
    ALPHEUS_ASSIGN_OR_RETURN(const std::string bytes,
                             Read(fs_, absl::StrCat(from_, "/", manifest_)));
    return bytes == manifest_bytes_;
  }

  absl::Status PutCurrent() {
    ALPHEUS_RETURN_IF_ERROR(SyncWalDirectory());
    ALPHEUS_RETURN_IF_ERROR(SyncDirectory(to_));
    const std::string made = to_ + "/CURRENT.dbtmp";
    ALPHEUS_RETURN_IF_ERROR(Write(fs_, made, current_));
    ALPHEUS_RETURN_IF_ERROR(ToStatus(
        fs_.RenameFile(made, to_ + "/CURRENT", IOOptions(), nullptr), made));
    return SyncDirectory(to_);
  }

 private:
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) {
    std::vector<std::string> names;
    ALPHEUS_RETURN_IF_ERROR(ToStatus(
        fs_.GetChildren(directory, IOOptions(), &names, nullptr), directory));
    return names;
  }

  absl::StatusOr<std::vector<std::string>> ListOldWal() {
    auto names = List(wal_from_);
    if (names.ok()) return names;
    return absl::Status(
        names.status().code(),
        absl::StrCat(names.status().message(),
                     ". It may have WAL files of before the plugin. If it has "
                     "none, make an empty directory of that name"));
  }

  absl::Status Take(const std::string& name) {
    if (IsTableName(name)) {
      return Link(absl::StrCat(from_, "/", name), absl::StrCat(to_, "/", name));
    }
    const bool is_copied = name == "IDENTITY" || name == kVouchFileName ||
                           absl::StartsWith(name, "OPTIONS-");
    if (!is_copied || absl::EndsWith(name, ".dbtmp")) return absl::OkStatus();
    return Copy(absl::StrCat(from_, "/", name), absl::StrCat(to_, "/", name));
  }

  // Moves a WAL file from before the plugin; ignores markers.
  absl::Status TakePlainWal(const std::string& name) {
    const std::string source = absl::StrCat(wal_from_, "/", name);
    std::error_code error;
    if (!absl::EndsWith(name, ".log") ||
        std::filesystem::is_symlink(source, error)) {
      return absl::OkStatus();
    }
    return Copy(source, absl::StrCat(wal_to_, "/", name));
  }

  absl::Status Copy(const std::string& source, const std::string& target) {
    const auto bytes = Read(fs_, source);
    if (!bytes.ok()) {
      return IsGone(source) ? absl::OkStatus() : bytes.status();
    }
    return Write(fs_, target, *bytes);
  }

  // Returns whether the predecessor has removed an obsolete file meanwhile. It
  // can't remove a file that the database needs without changing the MANIFEST.
  bool IsGone(const std::string& source) {
    return fs_.FileExists(source, IOOptions(), nullptr).IsNotFound();
  }

  absl::Status Link(const std::string& source, const std::string& target) {
    // A link of an earlier pass may be to a table that is gone.
    if (fs_.FileExists(target, IOOptions(), nullptr).ok()) {
      ALPHEUS_RETURN_IF_ERROR(
          ToStatus(fs_.DeleteFile(target, IOOptions(), nullptr), target));
    }
    const IOStatus linked = fs_.LinkFile(source, target, IOOptions(), nullptr);
    if (linked.ok()) return absl::OkStatus();
    return IsGone(source) ? absl::OkStatus() : ToStatus(linked, target);
  }

  // Also makes the directory's own name durable: a database without it would
  // have no WAL.
  absl::Status SyncWalDirectory() {
    if (wal_to_ == to_) return absl::OkStatus();
    ALPHEUS_RETURN_IF_ERROR(SyncDirectory(wal_to_));
    return SyncDirectory(std::filesystem::path(wal_to_).parent_path());
  }

  absl::Status SyncDirectory(const std::string& path) {
    std::unique_ptr<rocksdb::FSDirectory> directory;
    ALPHEUS_RETURN_IF_ERROR(ToStatus(
        fs_.NewDirectory(path, IOOptions(), &directory, nullptr), path));
    return ToStatus(directory->Fsync(IOOptions(), nullptr), path);
  }

  rocksdb::FileSystem& fs_;
  const std::string& from_;
  const std::string& to_;
  const std::string& wal_from_;
  const std::string& wal_to_;
  std::string current_;
  std::string manifest_;
  std::string manifest_bytes_;
};

}  // namespace

absl::StatusOr<bool> HasDatabase(rocksdb::FileSystem& fs,
                                 const std::string& directory) {
  const std::string current = directory + "/CURRENT";
  const IOStatus found = fs.FileExists(current, IOOptions(), nullptr);
  if (found.ok() || found.IsNotFound()) return found.ok();
  return absl::UnavailableError(absl::StrCat(current, ": ", found.ToString()));
}

absl::Status CheckHasNoDatabase(rocksdb::FileSystem& fs,
                                const std::string& to) {
  ALPHEUS_ASSIGN_OR_RETURN(const bool has_one, HasDatabase(fs, to));
  if (!has_one) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      to,
      ": has a database already, which is not the one that the log was "
      "written for last. Take it over into an empty directory"));
}

absl::Status TakeOverDatabase(rocksdb::FileSystem& fs, const WalHome& from,
                              const WalHome& to) {
  ALPHEUS_RETURN_IF_ERROR(CheckHasNoDatabase(fs, to.database));
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_there, HasDatabase(fs, from.database));
  if (!is_there) {
    return absl::FailedPreconditionError(
        absl::StrCat(from.database,
                     ": the log says that the database is there, but "
                     "there is none. Is the file system mounted?"));
  }
  for (const std::string& made : {to.database, to.wal_directory}) {
    ALPHEUS_RETURN_IF_ERROR(
        ToStatus(fs.CreateDirIfMissing(made, IOOptions(), nullptr), made));
  }
  for (int i = 0; i < kTriesMax; ++i) {
    Pass pass(fs, from, to);
    ALPHEUS_RETURN_IF_ERROR(pass.CopyManifest());
    ALPHEUS_RETURN_IF_ERROR(pass.TakeTheRest());
    ALPHEUS_ASSIGN_OR_RETURN(const bool is_unchanged, pass.IsUnchanged());
    if (is_unchanged) return pass.PutCurrent();
  }
  return absl::UnavailableError(absl::StrCat(from.database,
                                             ": changed each of ", kTriesMax,
                                             " times that it was read"));
}

}  // namespace alpheus::wal
