// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/follow/wal_following_file_system.h"

#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/rocksdb/failover/take_over.h"
#include "api/rocksdb/store/wal_handles.h"
#include "api/rocksdb/store/wal_io_status.h"
#include "api/rocksdb/store/wal_paths.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

IOStatus OnlyRead(const std::string& path) {
  return IOStatus::NotSupported(
      "alpheus: with follow=true nothing of the database is changed: open it "
      "read-only or as a secondary, or without follow where no other process "
      "has it",
      path);
}

// Returns an address that no other living thread has (WFG4).
const void* ThisThread() {
  thread_local const char mark = 0;
  return &mark;
}

}  // namespace

WalFollowingFileSystem::WalFollowingFileSystem(
    WalOptions options, const std::shared_ptr<rocksdb::FileSystem>& base)
    : WalReadingFileSystem(base), options_(std::move(options)) {}

rocksdb::Status WalFollowingFileSystem::PrepareOptions(
    const rocksdb::ConfigOptions& options) {
  IOStatus opened = StatusOf(Follower().status());
  if (!opened.ok()) return opened;
  return FileSystemWrapper::PrepareOptions(options);
}

absl::StatusOr<std::shared_ptr<WalFollower>>
WalFollowingFileSystem::Follower() {
  const MutexLock lock(mutex_);
  if (follower_ == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<WalSource> source,
                             OpenWalSource(options_));
    auto follower = std::make_shared<WalFollower>(std::move(source));
    ALPHEUS_RETURN_IF_ERROR(follower->Refresh());
    follower_ = std::move(follower);
  }
  return follower_;
}

std::string WalFollowingFileSystem::WalDirectory(
    const WalFollower& follower) const {
  return options_.wal_directory.empty() ? follower.home().wal_directory
                                        : Canonical(options_.wal_directory);
}

absl::Status WalFollowingFileSystem::CheckHome(const WalFollower& follower) {
  const std::string database = follower.home().database;
  const MutexLock lock(mutex_);
  if (database_.empty() || database == database_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the database ", database_, " was taken over into ", database,
      ". Open it there, with an environment of its own"));
}

absl::StatusOr<bool> WalFollowingFileSystem::MayBeOf(
    const WalHome& home, const std::string& directory) const {
  if (home.database.empty() || home.database == directory) return true;
  if (options_.wal_directory.empty()) return false;
  // Then the database may have another path on this machine too.
  if (Canonical(options_.wal_directory) != home.wal_directory) return true;
  if (home.wal_directory == home.database) return false;
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_there,
                           HasDatabase(*target_, home.database));
  return !is_there;
}

// The directory is changed before the log, and the log's value may not be known
// to be durable yet. So a directory may be ahead, and never behind.
absl::Status WalFollowingFileSystem::CheckVouched(
    const WalFollower& follower, const std::string& directory,
    const std::optional<DirectoryVouch>& vouch) {
  const WalVouch log = follower.vouch();
  if (log.id.empty() || follower.List("").empty()) return absl::OkStatus();
  if (vouch && vouch->log_was == log) return absl::OkStatus();
  if (vouch && vouch->log.id == log.id &&
      vouch->log.generation >= log.generation) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(directory,
                   ": is not the database whose WAL the log has: it was "
                   "replaced by a restore "
                   "or an older copy. Nothing was changed. Open it for "
                   "writing, without "
                   "follow, which says what to do"));
}

absl::Status WalFollowingFileSystem::BeginAtCurrent(const std::string& path) {
  const std::filesystem::path split(path);
  if (split.filename() != "CURRENT") return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const std::shared_ptr<WalFollower> follower,
                           Follower());
  const std::string directory = Canonical(split.parent_path());
  ALPHEUS_RETURN_IF_ERROR(follower->Begin(ThisThread()));
  // Read after the log, which is changed later (DV2).
  ALPHEUS_ASSIGN_OR_RETURN(const std::optional<DirectoryVouch> vouch,
                           ReadDirectoryVouch(*target_, directory));
  ALPHEUS_ASSIGN_OR_RETURN(const std::string identity,
                           DatabaseIdentity(*target_, directory));
  const bool is_of_it = vouch && IsOf(*vouch, identity);
  // The database may have been taken over meanwhile.
  ALPHEUS_RETURN_IF_ERROR(CheckHome(*follower));
  const WalHome home = follower->home();
  ALPHEUS_ASSIGN_OR_RETURN(const bool may_be, MayBeOf(home, directory));
  if (may_be) {
    ALPHEUS_RETURN_IF_ERROR(
        CheckVouched(*follower, directory, is_of_it ? vouch : std::nullopt));
    const MutexLock lock(mutex_);
    if (database_.empty()) database_ = home.database;
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      directory, ": this log is that of the database ", home.database,
      ". Open that one; if it has another path on this machine, say by "
      "wal_dir= where its WAL directory is"));
}

// Nothing was written, so every error may be retried. A missing log may come
// back too, and must not look like a missing file (WFG3).
IOStatus WalFollowingFileSystem::StatusOf(const absl::Status& status) const {
  const bool is_away = absl::IsUnavailable(status) || absl::IsNotFound(status);
  if (!is_away) return ToIoStatus(status);
  IOStatus unavailable =
      IOStatus::IOError(absl::StrCat("alpheus: ", status.message()));
  unavailable.SetRetryable(true);
  return unavailable;
}

std::optional<std::string> WalFollowingFileSystem::NameOf(
    const WalFollower& follower, const std::string& path) const {
  const std::string directory = WalDirectory(follower);
  if (directory.empty() || !MayNameAWal(path)) return std::nullopt;
  const std::filesystem::path split(path);
  return Below(directory, absl::StrCat(Canonical(split.parent_path()), "/",
                                       split.filename().string()));
}

absl::StatusOr<WalFollowingFileSystem::FoundWal>
WalFollowingFileSystem::FindWal(const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::shared_ptr<WalFollower> follower,
                           Follower());
  const std::optional<std::string> name = NameOf(*follower, path);
  if (!name) return FoundWal();
  WalFollower::Followed found = follower->Find(*name);
  if (found.file == nullptr) return FoundWal();
  std::shared_ptr<WalFile> file = found.file;
  // RocksDB's secondary keeps its reader while the file grows.
  auto open = std::make_shared<OpenFollowed>(follower, std::move(found));
  return FoundWal{
      std::move(file),
      [this, open = std::move(open)](uint64_t offset, std::span<std::byte> out,
                                     size_t* copied) {
        const absl::StatusOr<size_t> read = open->Read(offset, out);
        *copied = read.value_or(0);
        return StatusOf(read.status());
      }};
}

IOStatus WalFollowingFileSystem::NewSequentialFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) {
  IOStatus checked = StatusOf(BeginAtCurrent(path));
  if (!checked.ok()) return checked;
  IOStatus opened =
      WalReadingFileSystem::NewSequentialFile(path, options, result, dbg);
  if (!opened.IsPathNotFound() && !opened.IsNotFound()) return opened;
  const absl::StatusOr<std::shared_ptr<WalFollower>> follower = Follower();
  if (!follower.ok()) return StatusOf(follower.status());
  const std::optional<std::string> name = NameOf(**follower, path);
  if (!name || !DirectoryOf(*name).empty()) return opened;
  return StatusOf(absl::UnavailableError(
      absl::StrCat(path,
                   ": the log has no such WAL file. It was removed if it was "
                   "listed. Nothing was changed; try again")));
}

// Hides markers of files that the log has removed, or that are not durable yet.
IOStatus WalFollowingFileSystem::GetChildren(const std::string& directory,
                                             const IOOptions& options,
                                             std::vector<std::string>* result,
                                             IODebugContext* dbg) {
  const absl::StatusOr<std::shared_ptr<WalFollower>> follower = Follower();
  if (!follower.ok()) return StatusOf(follower.status());
  const auto find = [&]() -> std::optional<std::string> {
    const std::string home = WalDirectory(**follower);
    if (home.empty()) return std::nullopt;
    return Below(home, Canonical(directory));
  };
  std::optional<std::string> below = find();
  if (const absl::Status same = CheckHome(**follower); !same.ok()) {
    return StatusOf(same);
  }
  // A log that was never written does not name the directory of its files yet.
  if (below || WalDirectory(**follower).empty()) {
    absl::Status refreshed = (*follower)->Refresh();
    if (refreshed.ok()) refreshed = CheckHome(**follower);
    if (!refreshed.ok()) return StatusOf(refreshed);
    below = find();
  }
  IOStatus listed = target_->GetChildren(directory, options, result, dbg);
  if (!listed.ok() || !below) return listed;
  std::erase_if(*result, [&](const std::string& name) {
    std::error_code error;
    return MayNameAWal(name) &&
           std::filesystem::is_symlink(std::filesystem::path(directory) / name,
                                       error);
  });
  absl::StatusOr<std::vector<std::string>> names =
      (*follower)->List(ThisThread(), *below);
  if (!names.ok()) return StatusOf(names.status());
  AddNames(*std::move(names), result);
  return listed;
}

IOStatus WalFollowingFileSystem::CheckElsewhere(const std::string& path) {
  const absl::StatusOr<std::shared_ptr<WalFollower>> follower = Follower();
  if (!follower.ok()) return StatusOf(follower.status());
  const std::string canonical = Canonical(path);
  for (const std::string& kept :
       {WalDirectory(**follower), (*follower)->home().database}) {
    if (kept.empty() || !Below(kept, canonical)) continue;
    return OnlyRead(path);
  }
  return IOStatus::OK();
}

IOStatus WalFollowingFileSystem::NewWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->NewWritableFile(path, options, result, dbg);
}

IOStatus WalFollowingFileSystem::ReopenWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->ReopenWritableFile(path, options, result, dbg);
}

IOStatus WalFollowingFileSystem::ReuseWritableFile(
    const std::string& path, const std::string& old_path,
    const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  for (const std::string& name : {path, old_path}) {
    IOStatus elsewhere = CheckElsewhere(name);
    if (!elsewhere.ok()) return elsewhere;
  }
  return target_->ReuseWritableFile(path, old_path, options, result, dbg);
}

IOStatus WalFollowingFileSystem::NewRandomRWFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->NewRandomRWFile(path, options, result, dbg);
}

IOStatus WalFollowingFileSystem::DeleteFile(const std::string& path,
                                            const IOOptions& options,
                                            IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->DeleteFile(path, options, dbg);
}

IOStatus WalFollowingFileSystem::Truncate(const std::string& path, size_t size,
                                          const IOOptions& options,
                                          IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->Truncate(path, size, options, dbg);
}

IOStatus WalFollowingFileSystem::RenameFile(const std::string& from,
                                            const std::string& to,
                                            const IOOptions& options,
                                            IODebugContext* dbg) {
  for (const std::string& name : {from, to}) {
    IOStatus elsewhere = CheckElsewhere(name);
    if (!elsewhere.ok()) return elsewhere;
  }
  return target_->RenameFile(from, to, options, dbg);
}

// Allowed into another directory, as for a checkpoint of a secondary's tables.
IOStatus WalFollowingFileSystem::LinkFile(const std::string& from,
                                          const std::string& to,
                                          const IOOptions& options,
                                          IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(to);
  if (!elsewhere.ok()) return elsewhere;
  return target_->LinkFile(from, to, options, dbg);
}

IOStatus WalFollowingFileSystem::NewLogger(
    const std::string& path, const IOOptions& options,
    std::shared_ptr<rocksdb::Logger>* result, IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->NewLogger(path, options, result, dbg);
}

IOStatus WalFollowingFileSystem::CreateDir(const std::string& path,
                                           const IOOptions& options,
                                           IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->CreateDir(path, options, dbg);
}

IOStatus WalFollowingFileSystem::CreateDirIfMissing(const std::string& path,
                                                    const IOOptions& options,
                                                    IODebugContext* dbg) {
  if (target_->FileExists(path, options, dbg).ok()) return IOStatus::OK();
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->CreateDirIfMissing(path, options, dbg);
}

IOStatus WalFollowingFileSystem::DeleteDir(const std::string& path,
                                           const IOOptions& options,
                                           IODebugContext* dbg) {
  IOStatus elsewhere = CheckElsewhere(path);
  if (!elsewhere.ok()) return elsewhere;
  return target_->DeleteDir(path, options, dbg);
}

// Refused: only a process that opens a database for writing locks it, even one
// that the log does not know yet.
IOStatus WalFollowingFileSystem::LockFile(const std::string& path,
                                          const IOOptions& /*options*/,
                                          rocksdb::FileLock** /*lock*/,
                                          IODebugContext* /*dbg*/) {
  return OnlyRead(path);
}

}  // namespace alpheus::wal
