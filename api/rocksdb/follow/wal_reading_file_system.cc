// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/follow/wal_reading_file_system.h"

#include <algorithm>
#include <utility>

namespace alpheus::wal {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

IOStatus WalReadingFileSystem::NewSequentialFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) {
  absl::StatusOr<FoundWal> found = FindWal(path);
  if (!found.ok()) return StatusOf(found.status());
  if (found->file == nullptr) {
    return target_->NewSequentialFile(path, options, result, dbg);
  }
  *result = NewWalScanner(std::move(found->read));
  return IOStatus::OK();
}

IOStatus WalReadingFileSystem::NewRandomAccessFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) {
  absl::StatusOr<FoundWal> found = FindWal(path);
  if (!found.ok()) return StatusOf(found.status());
  if (found->file == nullptr) {
    return target_->NewRandomAccessFile(path, options, result, dbg);
  }
  *result = NewWalReader(std::move(found->read));
  return IOStatus::OK();
}

IOStatus WalReadingFileSystem::FileExists(const std::string& path,
                                          const IOOptions& options,
                                          IODebugContext* dbg) {
  const absl::StatusOr<FoundWal> found = FindWal(path);
  if (!found.ok()) return StatusOf(found.status());
  if (found->file != nullptr) return IOStatus::OK();
  return target_->FileExists(path, options, dbg);
}

IOStatus WalReadingFileSystem::GetChildrenFileAttributes(
    const std::string& directory, const IOOptions& options,
    std::vector<rocksdb::FileAttributes>* result, IODebugContext* dbg) {
  // The base file system would not ask this one for names and sizes; the
  // interface's default does.
  // NOLINTNEXTLINE(bugprone-parent-virtual-call)
  return FileSystem::GetChildrenFileAttributes(directory, options, result, dbg);
}

IOStatus WalReadingFileSystem::GetFileSize(const std::string& path,
                                           const IOOptions& options,
                                           uint64_t* size,
                                           IODebugContext* dbg) {
  const absl::StatusOr<FoundWal> found = FindWal(path);
  if (!found.ok()) return StatusOf(found.status());
  if (found->file == nullptr) {
    return target_->GetFileSize(path, options, size, dbg);
  }
  *size = found->file->size();
  return IOStatus::OK();
}

IOStatus WalReadingFileSystem::GetFileModificationTime(const std::string& path,
                                                       const IOOptions& options,
                                                       uint64_t* seconds,
                                                       IODebugContext* dbg) {
  const absl::StatusOr<FoundWal> found = FindWal(path);
  if (!found.ok()) return StatusOf(found.status());
  if (found->file == nullptr) {
    return target_->GetFileModificationTime(path, options, seconds, dbg);
  }
  *seconds = found->file->seconds();
  return IOStatus::OK();
}

void WalReadingFileSystem::AddNames(std::vector<std::string> names,
                                    std::vector<std::string>* result) {
  for (std::string& name : names) {
    if (std::ranges::find(*result, name) == result->end()) {
      result->push_back(std::move(name));
    }
  }
}

}  // namespace alpheus::wal
