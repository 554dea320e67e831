// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/wal_folder_file_system.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "api/rocksdb/store/wal_paths.h"

namespace alpheus::wal {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

std::string WalLogName(absl::string_view directory) {
  absl::ConsumePrefix(&directory, "/");
  return absl::StrCat(
      absl::StrReplaceAll(directory, {{"%", "%25"}, {"+", "%2B"}, {"/", "+"}}),
      ".wal");
}

WalFolderFileSystem::WalFolderFileSystem(
    WalOptions options, const std::shared_ptr<rocksdb::FileSystem>& base)
    : FileSystemWrapper(base), options_(std::move(options)) {}

std::string WalFolderFileSystem::LogPathOf(const std::string& directory) const {
  return options_.log.path + WalLogName(directory);
}

std::shared_ptr<WalFileSystem> WalFolderFileSystem::OfDatabase(
    const std::string& directory, bool may_make) {
  const MutexLock lock(mutex_);
  if (const auto found = databases_.find(directory);
      found != databases_.end()) {
    return found->second;
  }
  WalOptions options = options_;
  options.is_folder = false;
  options.log.path = LogPathOf(directory);
  std::error_code error;
  if (!may_make && !std::filesystem::exists(options.log.path, error)) {
    return nullptr;
  }
  return databases_[directory] =
             std::make_shared<WalFileSystem>(std::move(options), target_);
}

std::shared_ptr<rocksdb::FileSystem> WalFolderFileSystem::Of(
    const std::string& path) {
  const std::filesystem::path split(path);
  // The path may be the directory itself.
  std::filesystem::path directory = absl::StrCat(
      Canonical(split.parent_path()), "/", split.filename().string());
  for (; directory.has_relative_path(); directory = directory.parent_path()) {
    auto found = OfDatabase(directory.string(), /*may_make=*/false);
    if (found != nullptr) return found;
  }
  return target_;
}

std::shared_ptr<rocksdb::FileSystem> WalFolderFileSystem::OfEither(
    const std::string& first, const std::string& second) {
  std::shared_ptr<rocksdb::FileSystem> found = Of(first);
  return found == target_ ? Of(second) : found;
}

absl::StatusOr<uint64_t> WalFolderFileSystem::MemtableBytes(
    const std::string& database) {
  return OfDatabase(Canonical(database), /*may_make=*/true)->MemtableBytes();
}

IOStatus WalFolderFileSystem::NewSequentialFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) {
  return Of(path)->NewSequentialFile(path, options, result, dbg);
}

IOStatus WalFolderFileSystem::NewRandomAccessFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) {
  return Of(path)->NewRandomAccessFile(path, options, result, dbg);
}

IOStatus WalFolderFileSystem::NewWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  return Of(path)->NewWritableFile(path, options, result, dbg);
}

IOStatus WalFolderFileSystem::ReopenWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  return Of(path)->ReopenWritableFile(path, options, result, dbg);
}

IOStatus WalFolderFileSystem::ReuseWritableFile(
    const std::string& path, const std::string& old_path,
    const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  return OfEither(path, old_path)
      ->ReuseWritableFile(path, old_path, options, result, dbg);
}

IOStatus WalFolderFileSystem::NewRandomRWFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* dbg) {
  return Of(path)->NewRandomRWFile(path, options, result, dbg);
}

IOStatus WalFolderFileSystem::NewDirectory(
    const std::string& path, const IOOptions& options,
    std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* dbg) {
  return Of(path)->NewDirectory(path, options, result, dbg);
}

IOStatus WalFolderFileSystem::FileExists(const std::string& path,
                                         const IOOptions& options,
                                         IODebugContext* dbg) {
  return Of(path)->FileExists(path, options, dbg);
}

IOStatus WalFolderFileSystem::GetChildren(const std::string& directory,
                                          const IOOptions& options,
                                          std::vector<std::string>* result,
                                          IODebugContext* dbg) {
  return Of(directory)->GetChildren(directory, options, result, dbg);
}

IOStatus WalFolderFileSystem::GetChildrenFileAttributes(
    const std::string& directory, const IOOptions& options,
    std::vector<rocksdb::FileAttributes>* result, IODebugContext* dbg) {
  return Of(directory)->GetChildrenFileAttributes(directory, options, result,
                                                  dbg);
}

IOStatus WalFolderFileSystem::DeleteFile(const std::string& path,
                                         const IOOptions& options,
                                         IODebugContext* dbg) {
  return Of(path)->DeleteFile(path, options, dbg);
}

IOStatus WalFolderFileSystem::Truncate(const std::string& path, size_t size,
                                       const IOOptions& options,
                                       IODebugContext* dbg) {
  return Of(path)->Truncate(path, size, options, dbg);
}

IOStatus WalFolderFileSystem::GetFileSize(const std::string& path,
                                          const IOOptions& options,
                                          uint64_t* size, IODebugContext* dbg) {
  return Of(path)->GetFileSize(path, options, size, dbg);
}

IOStatus WalFolderFileSystem::GetFileModificationTime(const std::string& path,
                                                      const IOOptions& options,
                                                      uint64_t* seconds,
                                                      IODebugContext* dbg) {
  return Of(path)->GetFileModificationTime(path, options, seconds, dbg);
}

IOStatus WalFolderFileSystem::RenameFile(const std::string& from,
                                         const std::string& to,
                                         const IOOptions& options,
                                         IODebugContext* dbg) {
  return OfEither(from, to)->RenameFile(from, to, options, dbg);
}

IOStatus WalFolderFileSystem::LinkFile(const std::string& from,
                                       const std::string& to,
                                       const IOOptions& options,
                                       IODebugContext* dbg) {
  return OfEither(from, to)->LinkFile(from, to, options, dbg);
}

IOStatus WalFolderFileSystem::NumFileLinks(const std::string& path,
                                           const IOOptions& options,
                                           uint64_t* count,
                                           IODebugContext* dbg) {
  return Of(path)->NumFileLinks(path, options, count, dbg);
}

IOStatus WalFolderFileSystem::AreFilesSame(const std::string& first,
                                           const std::string& second,
                                           const IOOptions& options,
                                           bool* result, IODebugContext* dbg) {
  return OfEither(first, second)
      ->AreFilesSame(first, second, options, result, dbg);
}

IOStatus WalFolderFileSystem::IsDirectory(const std::string& path,
                                          const IOOptions& options,
                                          bool* is_directory,
                                          IODebugContext* dbg) {
  return Of(path)->IsDirectory(path, options, is_directory, dbg);
}

IOStatus WalFolderFileSystem::LockFile(const std::string& path,
                                       const IOOptions& options,
                                       rocksdb::FileLock** lock,
                                       IODebugContext* dbg) {
  const std::shared_ptr<WalFileSystem> of = OfDatabase(
      Canonical(std::filesystem::path(path).parent_path()), /*may_make=*/true);
  IOStatus locked = of->LockFile(path, options, lock, dbg);
  if (!locked.ok()) return locked;
  const MutexLock guard(mutex_);
  locks_[*lock] = of;
  return locked;
}

IOStatus WalFolderFileSystem::UnlockFile(rocksdb::FileLock* lock,
                                         const IOOptions& options,
                                         IODebugContext* dbg) {
  std::shared_ptr<WalFileSystem> of;
  {
    const MutexLock guard(mutex_);
    of = std::move(locks_[lock]);
    locks_.erase(lock);
  }
  if (of == nullptr) return target_->UnlockFile(lock, options, dbg);
  return of->UnlockFile(lock, options, dbg);
}

}  // namespace alpheus::wal
