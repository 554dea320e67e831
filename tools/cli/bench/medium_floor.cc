// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bench/medium_floor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "log/pmem/file_descriptor.h"
#include "log/pmem/file_error.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"

namespace alpheus::cli {
namespace {

template <Persistence P>
class Floor final : public MediumFloor {
 public:
  // `argument` is what P is made of.
  template <class Argument>
  Floor(Region region, Argument argument, uint64_t payload_bytes,
        bool past_cache)
      : region_(std::move(region)),
        pmem_(std::move(argument)),
        source_(RecordBytes(payload_bytes), std::byte{0x5a}),
        past_cache_(past_cache) {}

  uint64_t places() const override {
    return region_.bytes().size() / source_.size();
  }

  const char* way() const override {
    if (region_.medium() == RegionMedium::kFile) return "stores and msync";
    return past_cache_ ? "stores past the cache and a fence"
                       : "stores, flushes and a fence";
  }

  absl::Status Persist(uint64_t place) override {
    std::byte* const to = region_.bytes().data() + place * source_.size();
    if (past_cache_) {
      pmem_.CopyLinesNt(to, source_.data(), source_.size() / kLineBytes);
    } else {
      pmem_.Copy(to, source_.data(), source_.size());
      pmem_.Flush(to, source_.size());
    }
    if (pmem_.Fence()) return absl::OkStatus();
    return pmem_.Error();
  }

 private:
  const Region region_;
  P pmem_;
  const std::vector<std::byte> source_;
  const bool past_cache_;
};

class WriteFloor final : public MediumFloor {
 public:
  WriteFloor(std::string path, FileDescriptor file, uint64_t file_bytes,
             uint64_t payload_bytes)
      : path_(std::move(path)),
        file_(std::move(file)),
        file_bytes_(file_bytes),
        source_(RecordBytes(payload_bytes), std::byte{0x5a}) {}

  uint64_t places() const override { return file_bytes_ / source_.size(); }

  const char* way() const override { return "write and fdatasync"; }

  absl::Status Persist(uint64_t place) override {
    ALPHEUS_RETURN_IF_ERROR(Write(place * source_.size(), source_.size()));
    return Sync();
  }

  // Writes all of the file once.
  absl::Status Fill() {
    for (uint64_t at = 0; at < file_bytes_; at += source_.size()) {
      ALPHEUS_RETURN_IF_ERROR(
          Write(at, std::min<uint64_t>(source_.size(), file_bytes_ - at)));
    }
    return Sync();
  }

 private:
  absl::Status Write(uint64_t at, size_t bytes) {
    const ssize_t written =
        pwrite(file_.get(), source_.data(), bytes, static_cast<off_t>(at));
    if (written == static_cast<ssize_t>(bytes)) return absl::OkStatus();
    // A write is short when the file system is full.
    return NewFileError(path_, "pwrite", written < 0 ? errno : ENOSPC);
  }

  absl::Status Sync() {
    if (fdatasync(file_.get()) == 0) return absl::OkStatus();
    return NewFileError(path_, "fdatasync", errno);
  }

  const std::string path_;
  const FileDescriptor file_;
  const uint64_t file_bytes_;
  const std::vector<std::byte> source_;
};

}  // namespace

std::unique_ptr<MediumFloor> MakeMediumFloor(Region region,
                                             uint64_t payload_bytes,
                                             bool past_cache) {
  if (region.medium() == RegionMedium::kFile) {
    std::string path = region.path();
    return std::make_unique<Floor<MsyncPersistence>>(
        std::move(region), std::move(path), payload_bytes, false);
  }
  const LibpmemPersistence::Options options{
      .auto_flush = LibpmemPersistence::DetectAutoFlush()};
  return std::make_unique<Floor<LibpmemPersistence>>(std::move(region), options,
                                                     payload_bytes, past_cache);
}

absl::StatusOr<std::unique_ptr<MediumFloor>> MakeWriteFloor(
    const std::string& path, uint64_t file_bytes, uint64_t payload_bytes) {
  FileDescriptor file(
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) return NewFileError(path, "open", errno);
  unlink(path.c_str());
  auto floor = std::make_unique<WriteFloor>(path, std::move(file), file_bytes,
                                            payload_bytes);
  ALPHEUS_RETURN_IF_ERROR(floor->Fill());
  return floor;
}

}  // namespace alpheus::cli
