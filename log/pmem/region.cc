// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/region.h"

#include <fcntl.h>
#include <libpmem.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/pmem/file_descriptor.h"
#include "log/pmem/file_error.h"
#include "log/pmem/file_lock.h"

namespace alpheus {
namespace {

constexpr int64_t kBlockBytes = 512;  // of st_blocks

absl::Status Allocate(const std::string& path, int fd, size_t bytes) {
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error != 0) return FileError(path, "posix_fallocate", error);
  if (fsync(fd) != 0) return FileError(path, "fsync", errno);
  return absl::OkStatus();
}

bool IsOnTmpfs(int fd) {
  struct statfs system{};
  return fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

// Compares counts of blocks; most file systems add those of their own metadata.
// tmpfs adds none, and would check each page to find a hole: 6 ms for 256 MiB,
// a fifth of an opening. So an exact count is believed; a larger one may
// include blocks after the end, which hide a hole.
bool HasHoles(int fd, const struct stat& info) {
  const int64_t allocated = info.st_blocks * kBlockBytes;
  if (allocated < info.st_size) return true;
  if (allocated == info.st_size && IsOnTmpfs(fd)) return false;
  return lseek(fd, 0, SEEK_HOLE) < info.st_size;
}

// Allocates holes, which a copy by `cp --sparse`, `tar -S` or `rsync -S` has;
// on a full file system a store into one would get SIGBUS.
absl::Status AllocateHoles(const std::string& path, int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return FileError(path, "fstat", errno);
  if (!S_ISREG(info.st_mode) || info.st_size == 0) return absl::OkStatus();
  if (!HasHoles(fd, info)) return absl::OkStatus();
  int error = 0;
  do {
    error = fallocate(fd, 0, 0, info.st_size) == 0 ? 0 : errno;
  } while (error == EINTR);
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(absl::StrCat(
          path, ": the file has holes, of ", info.st_size, " bytes ",
          info.st_blocks * kBlockBytes,
          " are allocated, and its file system has no room for the rest (",
          std::strerror(error),
          "). Nothing was changed; free space, or copy it without holes"));
    default:
      // The file system preallocates nothing: RG4.
      return absl::OkStatus();
  }
}

// Returns the bytes of a file or a device-DAX (whose st_size is 0).
absl::StatusOr<size_t> SizeOf(const std::string& path, int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return FileError(path, "fstat", errno);
  if (S_ISREG(info.st_mode)) return static_cast<size_t>(info.st_size);
  if (!S_ISCHR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": neither a regular file nor a DAX device"));
  }
  std::ifstream size_file(absl::StrCat("/sys/dev/char/", major(info.st_rdev),
                                       ":", minor(info.st_rdev), "/size"));
  size_t bytes = 0;
  if (!(size_file >> bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a character device that is not DAX"));
  }
  return bytes;
}

// Returns whether a mapping is of the medium itself.
bool IsDax(int fd) {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ,
                          MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
  if (page == MAP_FAILED) return false;
  munmap(page, kPageBytes);
  return true;
}

// Returns whether flushed stores are as persistent as the file system, which
// then lives in memory only.
bool IsMemory(int fd) {
  struct statfs system{};
  if (fstatfs(fd, &system) != 0) return true;  // no reason to warn
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC ||
      system.f_type == HUGETLBFS_MAGIC) {
    return true;
  }
  return IsDax(fd);
}

// Warns of the variable that libpmem believes whatever it sees.
std::string WarningOfForcedPmem(const std::string& path, int fd) {
  struct stat info{};
  if (std::getenv("PMEM_IS_PMEM_FORCE") == nullptr || fstat(fd, &info) != 0 ||
      !S_ISREG(info.st_mode) || IsMemory(fd)) {
    return "";
  }
  return absl::StrCat(
      path,
      ": PMEM_IS_PMEM_FORCE declares this file to be persistent memory, which "
      "its file system is not: msync is switched off, and a power cut loses "
      "records that were acknowledged. Unset it, except for measurements");
}

bool IsExistingDevice(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode);
}

}  // namespace

const char* RegionMediumName(RegionMedium medium) {
  switch (medium) {
    case RegionMedium::kPersistentMemory:
      return "pmem";
    case RegionMedium::kFile:
      return "file";
    case RegionMedium::kAnonymous:
      return "anonymous";
  }
  return "unknown";
}

absl::StatusOr<Region> Region::Create(const std::string& path, size_t bytes) {
  if (IsExistingDevice(path)) return CreateOnDevice(path, bytes);
  const auto use_of = [](std::span<std::byte> found, bool /*is_device*/) {
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    return std::ranges::all_of(found, is_zero) ? RegionUse::kNothing
                                               : RegionUse::kUsed;
  };
  const auto write = [](Region&) { return absl::OkStatus(); };
  return CreateFile(path, bytes, {write, use_of, 0});
}

absl::StatusOr<Region> Region::Create(const std::string& path, size_t bytes,
                                      const RegionContent& content) {
  const bool is_device = IsExistingDevice(path);
  absl::StatusOr<Region> region = is_device ? CreateOnDevice(path, bytes)
                                            : CreateFile(path, bytes, content);
  if (!is_device && absl::IsAlreadyExists(region.status())) {
    return CreateInUnused(path, bytes, content, region.status());
  }
  if (!is_device || !region.ok()) return region;
  if (content.use_of(region->bytes(), is_device) != RegionUse::kNothing) {
    return absl::AlreadyExistsError(absl::StrCat(
        path,
        ": holds a log, or other data. Nothing was changed; "
        "wipe its first ",
        content.fixed_bytes, " bytes if they are no longer needed"));
  }
  ALPHEUS_RETURN_IF_ERROR(content.write(*region));
  return region;
}

absl::StatusOr<Region> Region::CreateOnDevice(const std::string& path,
                                              size_t bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, OpenForWriting(path));
  if (bytes > region.size_) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the device has ", region.size_,
                     " bytes, fewer than the ", bytes, " asked for"));
  }
  if (bytes != 0) region.size_ = bytes;
  return region;
}

absl::StatusOr<Region> Region::CreateFile(const std::string& path, size_t bytes,
                                          const RegionContent& content) {
  if (bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a file region needs a size"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(NewFile file, NewFile::Open(path, content.use_of));
  return FillNewFile(std::move(file), path, bytes, content);
}

absl::StatusOr<Region> Region::Replace(const std::string& path, size_t bytes,
                                       const RegionContent& content) {
  if (IsExistingDevice(path)) {
    return absl::AlreadyExistsError(absl::StrCat(
        path,
        ": a device holds a log that nobody has opened. Nothing was changed; "
        "wipe its first ",
        content.fixed_bytes, " bytes"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(NewFile file,
                           NewFile::OpenToReplace(path, content.use_of));
  return FillNewFile(std::move(file), path, bytes, content);
}

absl::StatusOr<Region> Region::FillNewFile(NewFile file,
                                           const std::string& path,
                                           size_t bytes,
                                           const RegionContent& content) {
  ALPHEUS_RETURN_IF_ERROR(Allocate(path, file.fd(), bytes));
  ALPHEUS_ASSIGN_OR_RETURN(Region region,
                           MapForWriting(path, file.open_path(), file.fd()));
  absl::Status made = content.write(region);
  if (made.ok()) made = file.Publish();
  region.fd_ = -1;  // the file owns it while this may fail
  if (!made.ok()) return made;
  region.fd_ = file.Release();
  region.Watch();
  return region;
}

// Fills the existing file in place: its name leads to nothing of value until
// the new content is whole, and to that afterwards.
absl::StatusOr<Region> Region::CreateInUnused(const std::string& path,
                                              size_t bytes,
                                              const RegionContent& content,
                                              const absl::Status& exists) {
  FileDescriptor fd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return exists;
  if (!TakeWriterLock(path, fd.get()).ok()) return exists;
  ALPHEUS_ASSIGN_OR_RETURN(const RegionUse use,
                           UseOfFile(path, fd.get(), content.use_of));
  if (use != RegionUse::kNothing) return exists;
  if (ftruncate(fd.get(), 0) != 0) return FileError(path, "ftruncate", errno);
  ALPHEUS_RETURN_IF_ERROR(Allocate(path, fd.get(), bytes));
  ALPHEUS_RETURN_IF_ERROR(SyncFolderOf(path));
  ALPHEUS_ASSIGN_OR_RETURN(Region region, MapForWriting(path, path, fd.get()));
  fd.Release();
  region.Watch();
  ALPHEUS_RETURN_IF_ERROR(content.write(region));
  return region;
}

absl::StatusOr<Region> Region::OpenForWriting(const std::string& path) {
  // Non-blocking: opening a pipe would wait for its other end.
  FileDescriptor fd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return FileError(path, "open", errno);
  ALPHEUS_RETURN_IF_ERROR(TakeWriterLock(path, fd.get()));
  // A file that was just restored from a copy may be in the page cache only.
  if (fsync(fd.get()) != 0 && errno != EINVAL) {  // EINVAL: a device
    return FileError(path, "fsync", errno);
  }
  ALPHEUS_RETURN_IF_ERROR(AllocateHoles(path, fd.get()));
  ALPHEUS_ASSIGN_OR_RETURN(Region region, MapForWriting(path, path, fd.get()));
  fd.Release();
  region.Watch();
  return region;
}

absl::StatusOr<Region> Region::MapForWriting(const std::string& path,
                                             const std::string& open_path,
                                             int fd) {
  ALPHEUS_ASSIGN_OR_RETURN(const size_t bytes, SizeOf(path, fd));
  if (bytes == 0) {
    return absl::DataLossError(absl::StrCat(
        path,
        ": the file is empty, not a log region; restore it, or remove it, and "
        "run `alpheus format`, or `alpheus replace` if it is a cluster's "
        "replica"));
  }
  size_t mapped_bytes = 0;
  int is_pmem = 0;
  void* data =
      pmem_map_file(open_path.c_str(), 0, 0, 0, &mapped_bytes, &is_pmem);
  if (data == nullptr) return FileError(path, "pmem_map_file", errno);
  Region region;
  region.data_ = static_cast<std::byte*>(data);
  region.size_ = mapped_bytes;
  region.mapped_size_ = mapped_bytes;
  region.medium_ =
      is_pmem != 0 ? RegionMedium::kPersistentMemory : RegionMedium::kFile;
  region.writable_ = true;
  region.mapped_by_libpmem_ = true;
  region.is_in_page_cache_ = !IsDax(fd);
  if (is_pmem != 0) region.warning_ = WarningOfForcedPmem(path, fd);
  region.fd_ = fd;
  region.path_ = path;
  region.Guard();
  return region;
}

absl::StatusOr<Region> Region::OpenForReading(const std::string& path) {
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return ReadFileError(path, "open", errno);
  ALPHEUS_ASSIGN_OR_RETURN(const size_t bytes, SizeOf(path, fd.get()));
  if (bytes == 0 && IsLockedByWriter(fd.get())) {
    return absl::UnavailableError(absl::StrCat(
        path, ": it is being formatted; read it when that is done"));
  }
  if (bytes == 0) {
    return absl::DataLossError(
        absl::StrCat(path, ": the file is empty, not a log region"));
  }
  // Not pmem_map_file: it opens for writing, and a reader may have no right to.
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return ReadFileError(path, "mmap", errno);
  Region region;
  region.data_ = static_cast<std::byte*>(data);
  region.size_ = bytes;
  region.mapped_size_ = bytes;
  region.medium_ = RegionMedium::kFile;
  region.fd_ = fd.Release();
  region.path_ = path;
  region.Guard();
  return region;
}

absl::StatusOr<Region> Region::Anonymous(size_t bytes, std::string name) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return FileError(name, "mmap", errno);
  Region region;
  region.data_ = static_cast<std::byte*>(data);
  region.size_ = bytes;
  region.mapped_size_ = bytes;
  region.writable_ = true;
  region.alarm_ = std::make_shared<RegionAlarm>(name);
  region.path_ = std::move(name);
  return region;
}

absl::StatusOr<Region> Region::ZeroPadded(size_t bytes) const {
  ALPHEUS_ASSIGN_OR_RETURN(Region copy, Anonymous(bytes));
  std::memcpy(copy.data_, data_, size_);
  copy.writable_ = false;
  copy.path_ = path_;
  return copy;
}

void Region::UseShadow(Region memory) {
  ALPHEUS_CHECK(memory.size_ == size_, "a copy of the whole");
  std::memcpy(memory.data_, data_, size_);
  pmem_persist(data_, size_);
  shadow_ = std::make_unique<Region>(std::move(memory));
}

FileView Region::file() const {
  struct stat info{};
  const bool is_file = !is_shadowed() && fd_ >= 0 && fstat(fd_, &info) == 0 &&
                       S_ISREG(info.st_mode);
  return is_file ? FileView(fd_) : FileView();
}

bool Region::HasWriter() const {
  if (medium_ == RegionMedium::kAnonymous || writable_) return writable_;
  return IsLockedByWriter(fd_);
}

// Threads may be in the middle of a store: one mapping replaces the other at
// once, and all later stores go to this process's own pages.
absl::Status Region::Detach() {
  if (fd_ < 0) return absl::OkStatus();
  // A device has no private pages: zeros are read from then on.
  const bool is_device = IsExistingDevice(path_);
  const int flags = MAP_PRIVATE | MAP_FIXED | (is_device ? MAP_ANONYMOUS : 0);
  if (mmap(data_, mapped_size_, PROT_READ | PROT_WRITE, flags,
           is_device ? -1 : fd_, 0) == MAP_FAILED) {
    return FileError(path_, "mmap", errno);
  }
  // The mapping keeps the open file, and a lock with it.
  ALPHEUS_RETURN_IF_ERROR(ReleaseWriterLock(path_, fd_));
  watch_ = FileWatch();
  close(fd_);
  fd_ = -1;
  return absl::OkStatus();
}

Region::Region(Region&& other) noexcept { *this = std::move(other); }

Region& Region::operator=(Region&& other) noexcept {
  if (this == &other) return *this;
  Release();
  shadow_ = std::move(other.shadow_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_size_ = std::exchange(other.mapped_size_, 0);
  medium_ = other.medium_;
  is_in_page_cache_ = other.is_in_page_cache_;
  writable_ = other.writable_;
  mapped_by_libpmem_ = other.mapped_by_libpmem_;
  fd_ = std::exchange(other.fd_, -1);
  fork_watch_ = other.fork_watch_;
  alarm_ = other.alarm_;
  watch_ = std::move(other.watch_);
  guard_ = std::move(other.guard_);
  warning_ = std::move(other.warning_);
  path_ = std::move(other.path_);
  return *this;
}

Region::~Region() { Release(); }

void Region::Guard() {
  alarm_ = std::make_shared<RegionAlarm>(path_);
  guard_ = BusGuard(data_, mapped_size_, alarm_);
}

void Region::Watch() { watch_ = FileWatch(path_, fd_, mapped_size_); }

void Region::CheckFile() const {
  if (const absl::Status found = watch_.Check(); !found.ok()) {
    alarm_->Raise(found);
  }
}

// The lock goes first: a process that waits for it does not wait until a
// gigabyte is unmapped, which takes a tenth of a second in small pages. Nothing
// is stored through this mapping any more.
void Region::Release() {
  guard_ = BusGuard();
  // RG5: children may have the open file for longer than this process.
  if (fd_ >= 0 && writable_ && !fork_watch_.IsForksChild()) {
    ReleaseWriterLock(path_, fd_).IgnoreError();
  }
  if (fd_ >= 0) close(fd_);
  if (data_ != nullptr) {
    if (mapped_by_libpmem_) {
      pmem_unmap(data_, mapped_size_);
    } else {
      munmap(data_, mapped_size_);
    }
  }
  data_ = nullptr;
  fd_ = -1;
}

}  // namespace alpheus
