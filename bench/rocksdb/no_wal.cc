// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/no_wal.h"

#include <string>

#include "bench/rocksdb/wal_name.h"
#include "rocksdb/file_system.h"

namespace alpheus::bench::wal {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class NothingToRecover : public Contestant {
 public:
  bool has_wal() const final { return false; }
  absl::StatusOr<Location> Finish() final {
    return absl::FailedPreconditionError(name() + " has no WAL");
  }
  absl::StatusOr<Place> TakeBack() final { return Begin(); }
  absl::Status End() final { return absl::OkStatus(); }
};

class PutAlone final : public NothingToRecover {
 public:
  std::string name() const override { return kNoWalName; }
  absl::StatusOr<Place> Begin() override {
    return Place{.env = rocksdb::Env::Default(), .has_wal = false};
  }
};

class DiscardingFile final : public rocksdb::FSWritableFile {
 public:
  using FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& /*options*/,
                  IODebugContext* /*dbg*/) override {
    size_ += data.size();
    return IOStatus::OK();
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
    return size_;
  }

 private:
  uint64_t size_ = 0;
};

class DiscardingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  DiscardingFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "DiscardingFileSystem"; }
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* dbg) override {
    if (!WalNumberOf(path)) {
      return target_->NewWritableFile(path, options, result, dbg);
    }
    *result = std::make_unique<DiscardingFile>();
    return IOStatus::OK();
  }
};

class FloorWal final : public NothingToRecover {
 public:
  std::string name() const override { return kFloorName; }
  absl::StatusOr<Place> Begin() override { return Place{.env = env_.get()}; }

 private:
  const std::unique_ptr<rocksdb::Env> env_ =
      rocksdb::NewCompositeEnv(std::make_shared<DiscardingFileSystem>());
};

}  // namespace

std::unique_ptr<Contestant> NoWal() { return std::make_unique<PutAlone>(); }

std::unique_ptr<Contestant> DiscardedWal() {
  return std::make_unique<FloorWal>();
}

}  // namespace alpheus::bench::wal
