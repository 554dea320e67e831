// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_handles.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "api/rocksdb/store/wal_io_status.h"

namespace alpheus::wal {
namespace {

using rocksdb::DirFsyncOptions;
using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Reads into the scratch buffer: RocksDB joins pieces there, and the ring's
// bytes live no longer than the file.
IOStatus ReadAt(const ReadWal& read, uint64_t offset, size_t n, Slice* result,
                char* scratch) {
  size_t copied = 0;
  IOStatus status =
      read(offset, std::as_writable_bytes(std::span(scratch, n)), &copied);
  *result = Slice(scratch, copied);
  return status;
}

class WalWriter final : public rocksdb::FSWritableFile {
 public:
  WalWriter(OpenWal wal, const FileOptions& options,
            std::function<absl::Status()> mark)
      : FSWritableFile(options), wal_(std::move(wal)), mark_(std::move(mark)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions& /*options*/,
                  IODebugContext* /*dbg*/) override {
    absl::Status appended = wal_.store->Append(
        *wal_.file, std::as_bytes(std::span(data.data(), data.size())));
    if (appended.ok() && mark_ != nullptr) {
      appended = mark_();
      if (appended.ok()) mark_ = nullptr;
    }
    return ToIoStatus(appended);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& /*options*/,
                    IODebugContext* /*dbg*/) override {
    return ToIoStatus(wal_.store->Truncate(*wal_.file, size));
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
    return ToIoStatus(wal_.store->Sync(*wal_.file));
  }
  // Ranges exist on disks only: make everything before the end durable.
  IOStatus RangeSync(uint64_t /*offset*/, uint64_t /*bytes*/,
                     const IOOptions& options, IODebugContext* dbg) override {
    return Sync(options, dbg);
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions& /*options*/,
                       IODebugContext* /*dbg*/) override {
    return wal_.file->size();
  }
  IOStatus InvalidateCache(size_t /*offset*/, size_t /*length*/) override {
    return IOStatus::OK();
  }

 private:
  const OpenWal wal_;
  std::function<absl::Status()> mark_;
};

class WalScanner final : public rocksdb::FSSequentialFile {
 public:
  explicit WalScanner(ReadWal read) : read_(std::move(read)) {}

  IOStatus Read(size_t n, const IOOptions& /*options*/, Slice* result,
                char* scratch, IODebugContext* /*dbg*/) override {
    IOStatus read = ReadAt(read_, offset_, n, result, scratch);
    offset_ += result->size();
    return read;
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += n;
    return IOStatus::OK();
  }
  IOStatus PositionedRead(uint64_t offset, size_t n,
                          const IOOptions& /*options*/, Slice* result,
                          char* scratch, IODebugContext* /*dbg*/) override {
    return ReadAt(read_, offset, n, result, scratch);
  }
  IOStatus InvalidateCache(size_t /*offset*/, size_t /*length*/) override {
    return IOStatus::OK();
  }

 private:
  const ReadWal read_;
  uint64_t offset_ = 0;
};

class WalReader final : public rocksdb::FSRandomAccessFile {
 public:
  explicit WalReader(ReadWal read) : read_(std::move(read)) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& /*options*/,
                Slice* result, char* scratch,
                IODebugContext* /*dbg*/) const override {
    return ReadAt(read_, offset, n, result, scratch);
  }
  // Does nothing: the bytes are in memory.
  IOStatus Prefetch(uint64_t /*offset*/, size_t /*n*/,
                    const IOOptions& /*options*/,
                    IODebugContext* /*dbg*/) override {
    return IOStatus::OK();
  }
  IOStatus InvalidateCache(size_t /*offset*/, size_t /*length*/) override {
    return IOStatus::OK();
  }

 private:
  const ReadWal read_;
};

class WalDirectory final : public rocksdb::FSDirectory {
 public:
  WalDirectory(std::shared_ptr<WalStore> store,
               std::unique_ptr<rocksdb::FSDirectory> base)
      : store_(std::move(store)), base_(std::move(base)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    IOStatus synced = ToIoStatus(store_->SyncAll());
    return synced.ok() ? base_->Fsync(options, dbg) : synced;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                               const DirFsyncOptions& what) override {
    IOStatus synced = ToIoStatus(store_->SyncAll());
    return synced.ok() ? base_->FsyncWithDirOptions(options, dbg, what)
                       : synced;
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    return base_->Close(options, dbg);
  }
  size_t GetUniqueId(char* id, size_t max_size) const override {
    return base_->GetUniqueId(id, max_size);
  }

 private:
  const std::shared_ptr<WalStore> store_;
  const std::unique_ptr<rocksdb::FSDirectory> base_;
};

}  // namespace

std::unique_ptr<rocksdb::FSWritableFile> NewWalWriter(
    OpenWal wal, const FileOptions& options,
    std::function<absl::Status()> mark) {
  return std::make_unique<WalWriter>(std::move(wal), options, std::move(mark));
}

ReadWal ReadOf(OpenWal wal) {
  return [wal = std::move(wal)](uint64_t offset, std::span<std::byte> out,
                                size_t* copied) {
    const absl::StatusOr<size_t> read = wal.store->Read(*wal.file, offset, out);
    *copied = read.value_or(0);
    return ToIoStatus(read.status());
  };
}

std::unique_ptr<rocksdb::FSSequentialFile> NewWalScanner(ReadWal read) {
  return std::make_unique<WalScanner>(std::move(read));
}

std::unique_ptr<rocksdb::FSRandomAccessFile> NewWalReader(ReadWal read) {
  return std::make_unique<WalReader>(std::move(read));
}

std::unique_ptr<rocksdb::FSDirectory> NewWalDirectory(
    std::shared_ptr<WalStore> store,
    std::unique_ptr<rocksdb::FSDirectory> base) {
  return std::make_unique<WalDirectory>(std::move(store), std::move(base));
}

}  // namespace alpheus::wal
