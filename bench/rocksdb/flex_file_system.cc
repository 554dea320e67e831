// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/flex_file_system.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "bench/rocksdb/wal_name.h"

namespace alpheus::bench::wal {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Every byte that was appended is durable: syncing has nothing left to do.
class FlexWriter final : public rocksdb::FSWritableFile {
 public:
  FlexWriter(std::shared_ptr<FlexStore> store, std::shared_ptr<FlexLog> file)
      : store_(std::move(store)), file_(std::move(file)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions& /*options*/,
                  IODebugContext* /*dbg*/) override {
    if (FlexStore::Append(*file_,
                          std::as_bytes(std::span(data.data(), data.size())))) {
      return IOStatus::OK();
    }
    return IOStatus::NoSpace("flex: the slot of the WAL file is full");
  }
  IOStatus Close(const IOOptions& /*options*/,
                 IODebugContext* /*dbg*/) override {
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions& /*options*/,
                 IODebugContext* /*dbg*/) override {
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions& /*options*/,
                IODebugContext* /*dbg*/) override {
    return IOStatus::OK();
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions& /*options*/,
                       IODebugContext* /*dbg*/) override {
    return file_->stored().size();
  }

 private:
  const std::shared_ptr<FlexStore> store_;
  const std::shared_ptr<FlexLog> file_;
};

class FlexScanner final : public rocksdb::FSSequentialFile {
 public:
  FlexScanner(std::shared_ptr<FlexStore> store, std::shared_ptr<FlexLog> file)
      : store_(std::move(store)), file_(std::move(file)) {}

  IOStatus Read(size_t n, const IOOptions& /*options*/, Slice* result,
                char* scratch, IODebugContext* /*dbg*/) override {
    const std::span<const std::byte> stored = file_->stored();
    const size_t copied = std::min(n, stored.size() - offset_);
    if (copied != 0) std::memcpy(scratch, stored.data() + offset_, copied);
    offset_ += copied;
    *result = Slice(scratch, copied);
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t n) override {
    offset_ = std::min(offset_ + n, file_->stored().size());
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<FlexStore> store_;
  const std::shared_ptr<FlexLog> file_;
  size_t offset_ = 0;
};

IOStatus Refused(const char* what, const std::string& path) {
  return IOStatus::NotSupported(
      std::string("flex: ") + what + " a WAL file in a region", path);
}

}  // namespace

FlexFileSystem::FlexFileSystem(std::shared_ptr<FlexStore> store)
    : FileSystemWrapper(rocksdb::FileSystem::Default()),
      store_(std::move(store)) {}

std::shared_ptr<FlexLog> FlexFileSystem::Find(const std::string& path) const {
  const std::optional<uint64_t> number = WalNumberOf(path);
  return number ? store_->Find(*number) : nullptr;
}

IOStatus FlexFileSystem::NewSequentialFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) {
  std::shared_ptr<FlexLog> file = Find(path);
  if (file == nullptr) {
    return target_->NewSequentialFile(path, options, result, dbg);
  }
  *result = std::make_unique<FlexScanner>(store_, std::move(file));
  return IOStatus::OK();
}

IOStatus FlexFileSystem::NewWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  const std::optional<uint64_t> number = WalNumberOf(path);
  if (!number) return target_->NewWritableFile(path, options, result, dbg);
  absl::StatusOr<std::shared_ptr<FlexLog>> file = store_->Create(*number);
  if (!file.ok()) {
    return IOStatus::NoSpace(std::string(file.status().message()));
  }
  *result = std::make_unique<FlexWriter>(store_, *std::move(file));
  return IOStatus::OK();
}

IOStatus FlexFileSystem::FileExists(const std::string& path,
                                    const IOOptions& options,
                                    IODebugContext* dbg) {
  if (Find(path) != nullptr) return IOStatus::OK();
  return target_->FileExists(path, options, dbg);
}

IOStatus FlexFileSystem::GetChildren(const std::string& directory,
                                     const IOOptions& options,
                                     std::vector<std::string>* result,
                                     IODebugContext* dbg) {
  IOStatus listed = target_->GetChildren(directory, options, result, dbg);
  if (!listed.ok()) return listed;
  for (const uint64_t number : store_->List()) {
    // RocksDB's form: six digits at least.
    std::string digits = std::to_string(number);
    digits.insert(0, digits.size() < 6 ? 6 - digits.size() : 0, '0');
    result->push_back(digits + ".log");
  }
  return listed;
}

IOStatus FlexFileSystem::DeleteFile(const std::string& path,
                                    const IOOptions& options,
                                    IODebugContext* dbg) {
  const std::optional<uint64_t> number = WalNumberOf(path);
  if (number && store_->Remove(*number)) return IOStatus::OK();
  return target_->DeleteFile(path, options, dbg);
}

IOStatus FlexFileSystem::GetFileSize(const std::string& path,
                                     const IOOptions& options, uint64_t* size,
                                     IODebugContext* dbg) {
  const std::shared_ptr<FlexLog> file = Find(path);
  if (file == nullptr) return target_->GetFileSize(path, options, size, dbg);
  *size = file->stored().size();
  return IOStatus::OK();
}

IOStatus FlexFileSystem::RenameFile(const std::string& from,
                                    const std::string& to,
                                    const IOOptions& options,
                                    IODebugContext* dbg) {
  if (Find(from) != nullptr) return Refused("renaming", from);
  return target_->RenameFile(from, to, options, dbg);
}

IOStatus FlexFileSystem::LinkFile(const std::string& from,
                                  const std::string& to,
                                  const IOOptions& options,
                                  IODebugContext* dbg) {
  if (Find(from) != nullptr) return Refused("linking", from);
  return target_->LinkFile(from, to, options, dbg);
}

IOStatus FlexFileSystem::Truncate(const std::string& path, size_t size,
                                  const IOOptions& options,
                                  IODebugContext* dbg) {
  if (Find(path) != nullptr) return Refused("truncating", path);
  return target_->Truncate(path, size, options, dbg);
}

}  // namespace alpheus::bench::wal
