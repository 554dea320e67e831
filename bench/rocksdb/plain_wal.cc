// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/plain_wal.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/replicated/cluster_folder.h"
#include "bench/rocksdb/wal_name.h"
#include "log/base/status_macros.h"
#include "rocksdb/file_system.h"

namespace alpheus::bench::wal {
namespace {

using replicated::ScratchFolder;
using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class PlainWal final : public Contestant {
 public:
  PlainWal(std::string name, Place place)
      : name_(std::move(name)), place_(std::move(place)) {}
  PlainWal(std::string name, ScratchFolder folder)
      : name_(std::move(name)),
        folder_(std::make_unique<ScratchFolder>(std::move(folder))),
        place_{.env = rocksdb::Env::Default(),
               .wal_directory = folder_->path()} {}

  std::string name() const override { return name_; }
  absl::StatusOr<Place> Begin() override { return place_; }
  absl::StatusOr<Place> Restart() override { return place_; }
  absl::Status End() override { return absl::OkStatus(); }

 private:
  const std::string name_;
  const std::unique_ptr<ScratchFolder> folder_;
  const Place place_;
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

class FloorWal final : public Contestant {
 public:
  std::string name() const override { return kFloorName; }
  absl::StatusOr<Place> Begin() override { return Place{.env = env_.get()}; }
  absl::StatusOr<Place> Restart() override { return Begin(); }
  absl::Status End() override { return absl::OkStatus(); }

 private:
  const std::unique_ptr<rocksdb::Env> env_ =
      rocksdb::NewCompositeEnv(std::make_shared<DiscardingFileSystem>());
};

}  // namespace

std::unique_ptr<Contestant> NoWal() {
  return std::make_unique<PlainWal>(
      kNoWalName, Place{.env = rocksdb::Env::Default(), .has_wal = false});
}

std::unique_ptr<Contestant> DiscardedWal() {
  return std::make_unique<FloorWal>();
}

absl::StatusOr<std::unique_ptr<Contestant>> DefaultWal(
    const std::string& name, const std::string& parent) {
  ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(parent));
  return std::make_unique<PlainWal>(name, std::move(folder));
}

absl::StatusOr<std::unique_ptr<Contestant>> DiskWal(const std::string& parent) {
  struct statfs found{};
  if (statfs(parent.c_str(), &found) != 0) {
    return absl::UnavailableError(
        absl::StrCat(parent, ": statfs failed: ", std::strerror(errno)));
  }
  if (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC) {
    return absl::NotFoundError(absl::StrCat(
        parent, " is in memory; name a folder on a disk by --disk"));
  }
  return DefaultWal(kDiskName, parent);
}

}  // namespace alpheus::bench::wal
