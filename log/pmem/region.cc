// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/region.h"

#include <fcntl.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"

namespace alpheus {
namespace {

// The one place where errno of file calls becomes a status.
absl::Status FileError(const std::string& path, const char* call, int error) {
  const std::string what =
      absl::StrCat(path, ": ", call, " failed: ", std::strerror(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(
          absl::StrCat(what, ". Create it with `alpheus format`"));
    case EEXIST:
      return absl::AlreadyExistsError(absl::StrCat(
          what, ". Nothing was changed; name another file or remove it"));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(absl::StrCat(
          what,
          ". The region was not created; free space or format a smaller "
          "one"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(what);
    case EINVAL:
    case EISDIR:
      return absl::InvalidArgumentError(what);
    default:
      return absl::UnavailableError(what);
  }
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct flock WholeFile(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

absl::Status TakeWriterLock(const std::string& path, int fd) {
  struct flock lock = WholeFile(F_WRLCK);
  if (IsMutant("kRegionShared")) lock.l_type = F_RDLCK;
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return absl::OkStatus();
  if (errno == EAGAIN || errno == EACCES) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": another writer has this region open. A region has one writer "
        "at a time; close the other one, or read it with LogReader"));
  }
  return FileError(path, "fcntl(F_OFD_SETLK)", errno);
}

// A directory entry is durable only once the directory itself is.
absl::Status SyncDirectoryOf(const std::string& path) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  FileDescriptor fd(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return FileError(directory, "open", errno);
  if (fsync(fd.get()) != 0) return FileError(directory, "fsync", errno);
  return absl::OkStatus();
}

absl::Status AllocateNewFile(const std::string& path, int fd, size_t bytes) {
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error != 0) return FileError(path, "posix_fallocate", error);
  if (fsync(fd) != 0) return FileError(path, "fsync", errno);
  return SyncDirectoryOf(path);
}

// By a writer. A query takes no lock, so a reader never stands in its way.
bool IsLocked(int fd) {
  struct flock lock = WholeFile(F_WRLCK);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Bytes of a file or a device-DAX (whose st_size is 0).
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
  if (IsExistingDevice(path)) {
    ALPHEUS_ASSIGN_OR_RETURN(Region region, OpenForWriting(path));
    if (bytes > region.size_) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the device has ", region.size_,
                       " bytes, fewer than the ", bytes, " asked for"));
    }
    if (bytes != 0) region.size_ = bytes;
    return region;
  }
  if (bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a file region needs a size"));
  }
  FileDescriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                         S_IRUSR | S_IWUSR | S_IRGRP));
  if (fd.get() < 0) return FileError(path, "open", errno);
  absl::Status made = TakeWriterLock(path, fd.get());
  if (made.ok()) made = AllocateNewFile(path, fd.get(), bytes);
  if (made.ok()) {
    absl::StatusOr<Region> region = MapForWriting(path, fd.get());
    if (region.ok()) {
      fd.Release();
      return region;
    }
    made = region.status();
  }
  unlink(path.c_str());
  return made;
}

absl::StatusOr<Region> Region::OpenForWriting(const std::string& path) {
  FileDescriptor fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return FileError(path, "open", errno);
  ALPHEUS_RETURN_IF_ERROR(TakeWriterLock(path, fd.get()));
  // A file that was just restored from a copy may be in the page cache only.
  if (fsync(fd.get()) != 0 && errno != EINVAL) {  // EINVAL: a device
    return FileError(path, "fsync", errno);
  }
  ALPHEUS_ASSIGN_OR_RETURN(Region region, MapForWriting(path, fd.get()));
  fd.Release();
  return region;
}

absl::StatusOr<Region> Region::MapForWriting(const std::string& path, int fd) {
  ALPHEUS_ASSIGN_OR_RETURN(const size_t bytes, SizeOf(path, fd));
  if (bytes == 0) {
    return absl::DataLossError(absl::StrCat(
        path,
        ": the file is empty, not a log region; restore it, or remove it "
        "and run `alpheus format`"));
  }
  size_t mapped_bytes = 0;
  int is_pmem = 0;
  void* data = pmem_map_file(path.c_str(), 0, 0, 0, &mapped_bytes, &is_pmem);
  if (data == nullptr) return FileError(path, "pmem_map_file", errno);
  Region region;
  region.data_ = static_cast<std::byte*>(data);
  region.size_ = mapped_bytes;
  region.mapped_size_ = mapped_bytes;
  region.medium_ =
      is_pmem != 0 ? RegionMedium::kPersistentMemory : RegionMedium::kFile;
  region.writable_ = true;
  region.mapped_by_libpmem_ = true;
  region.fd_ = fd;
  region.path_ = path;
  return region;
}

absl::StatusOr<Region> Region::OpenForReading(const std::string& path) {
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FileError(path, "open", errno);
  ALPHEUS_ASSIGN_OR_RETURN(const size_t bytes, SizeOf(path, fd.get()));
  if (bytes == 0 && IsLocked(fd.get())) {
    return absl::UnavailableError(absl::StrCat(
        path, ": it is being formatted; read it when that is done"));
  }
  if (bytes == 0) {
    return absl::DataLossError(
        absl::StrCat(path, ": the file is empty, not a log region"));
  }
  // Not pmem_map_file: it opens for writing, and a reader may have no right to.
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return FileError(path, "mmap", errno);
  Region region;
  region.data_ = static_cast<std::byte*>(data);
  region.size_ = bytes;
  region.mapped_size_ = bytes;
  region.medium_ = RegionMedium::kFile;
  region.fd_ = fd.Release();
  region.path_ = path;
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

void Region::LandIn(Region memory) {
  ALPHEUS_CHECK(memory.size_ == size_, "a copy of the whole");
  std::memcpy(memory.data_, data_, size_);
  pmem_persist(data_, size_);
  landing_ = std::make_unique<Region>(std::move(memory));
}

FileView Region::file() const {
  struct stat info{};
  const bool is_file = !is_landed() && fd_ >= 0 && fstat(fd_, &info) == 0 &&
                       S_ISREG(info.st_mode);
  return is_file ? FileView(fd_) : FileView();
}

bool Region::HasWriter() const {
  if (medium_ == RegionMedium::kAnonymous || writable_) return writable_;
  return IsLocked(fd_);
}

// Threads may be in the middle of a store: one mapping takes the place of the
// other at once, and all stores from then on go to this process's own pages.
absl::Status Region::GiveUp() {
  if (fd_ < 0) return absl::OkStatus();
  // A device has no private pages: zeros are read from then on.
  const bool is_device = IsExistingDevice(path_);
  const int flags = MAP_PRIVATE | MAP_FIXED | (is_device ? MAP_ANONYMOUS : 0);
  if (!IsMutant("kGivenUpRegionWritten") &&
      mmap(data_, mapped_size_, PROT_READ | PROT_WRITE, flags,
           is_device ? -1 : fd_, 0) == MAP_FAILED) {
    return FileError(path_, "mmap", errno);
  }
  // The mapping keeps the open file, and a lock with it.
  struct flock lock = WholeFile(F_UNLCK);
  if (fcntl(fd_, F_OFD_SETLK, &lock) != 0) {
    return FileError(path_, "fcntl(F_OFD_SETLK)", errno);
  }
  close(fd_);
  fd_ = -1;
  return absl::OkStatus();
}

Region::Region(Region&& other) noexcept { *this = std::move(other); }

Region& Region::operator=(Region&& other) noexcept {
  if (this == &other) return *this;
  Release();
  landing_ = std::move(other.landing_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_size_ = std::exchange(other.mapped_size_, 0);
  medium_ = other.medium_;
  writable_ = other.writable_;
  mapped_by_libpmem_ = other.mapped_by_libpmem_;
  fd_ = std::exchange(other.fd_, -1);
  path_ = std::move(other.path_);
  return *this;
}

Region::~Region() { Release(); }

void Region::Release() {
  if (data_ != nullptr) {
    if (mapped_by_libpmem_) {
      pmem_unmap(data_, mapped_size_);
    } else {
      munmap(data_, mapped_size_);
    }
  }
  if (fd_ >= 0) close(fd_);
  data_ = nullptr;
  fd_ = -1;
}

}  // namespace alpheus
