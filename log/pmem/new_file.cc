// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/new_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/pmem/file_error.h"
#include "log/pmem/file_lock.h"

namespace alpheus {
namespace {

std::string FolderOf(const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string PathOfOpen(int fd) { return absl::StrCat("/proc/self/fd/", fd); }

// Returns whether the path is taken; a dangling link takes it too.
bool IsTaken(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0;
}

// Returns whether the name leads to the open file, and how many names that has.
bool LeadsTo(const std::string& name, int fd, nlink_t* names) {
  struct stat named{};
  struct stat opened{};
  if (lstat(name.c_str(), &named) != 0 || fstat(fd, &opened) != 0) return false;
  *names = opened.st_nlink;
  return named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

absl::Status IsBeingMade(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(
      path,
      ": another process is making this file. Nothing was changed; look "
      "again when that is done"));
}

}  // namespace

std::string NewFile::WorkingName(const std::string& path) {
  return absl::StrCat(path, ".alpheus-new");
}

absl::StatusOr<NewFile> NewFile::Open(const std::string& path,
                                      RegionUseFunction use_of, unsigned mode) {
  if (IsTaken(path)) return NewFileError(path, "open", EEXIST);
  FileDescriptor fd(
      open(FolderOf(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  // The other way reports all other reasons.
  if (fd.get() < 0 || !IsTaken(PathOfOpen(fd.get()))) {
    return OpenNamed(path, use_of, mode);
  }
  ALPHEUS_RETURN_IF_ERROR(TakeWriterLock(path, fd.get()));
  return NewFile(path, "", std::move(fd));
}

absl::StatusOr<NewFile> NewFile::OpenNamed(const std::string& path,
                                           RegionUseFunction use_of,
                                           unsigned mode) {
  if (IsTaken(path)) return NewFileError(path, "open", EEXIST);
  return OpenWorking(path, use_of, mode, /*replaces=*/false);
}

absl::StatusOr<NewFile> NewFile::OpenToReplace(const std::string& path,
                                               RegionUseFunction use_of,
                                               unsigned mode) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return FileError(path, "canonical", error.value());
  return OpenWorking(file.string(), use_of, mode, /*replaces=*/true);
}

absl::StatusOr<NewFile> NewFile::OpenWorking(const std::string& path,
                                             RegionUseFunction use_of,
                                             unsigned mode, bool replaces) {
  ALPHEUS_RETURN_IF_ERROR(RemoveRemains(path, use_of));
  const std::string name = WorkingName(path);
  FileDescriptor fd(
      open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (fd.get() < 0 && errno == EEXIST) return IsBeingMade(path);
  if (fd.get() < 0) return NewFileError(path, "open", errno);
  // A process that found the file before its lock was taken may treat it as
  // leftovers.
  if (!TakeWriterLock(name, fd.get()).ok()) return IsBeingMade(path);
  return NewFile(path, name, std::move(fd), replaces);
}

absl::Status NewFile::RemoveRemains(const std::string& path,
                                    RegionUseFunction use_of) {
  const std::string name = WorkingName(path);
  FileDescriptor fd(
      open(name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return absl::OkStatus();
  if (fd.get() < 0) return NewFileError(path, "open", errno);
  if (!TakeWriterLock(name, fd.get()).ok()) return IsBeingMade(path);
  nlink_t names = 0;
  if (!LeadsTo(name, fd.get(), &names)) return IsBeingMade(path);
  ALPHEUS_ASSIGN_OR_RETURN(const RegionUse use,
                           UseOfFile(name, fd.get(), use_of));
  if (use == RegionUse::kUsed && names == 1) {
    return absl::AlreadyExistsError(absl::StrCat(
        name, ": what is made as ", path,
        " has this name meanwhile, and there is a log or something else that "
        "may be needed. Nothing was changed; move it elsewhere"));
  }
  if (unlink(name.c_str()) == 0) return absl::OkStatus();
  return FileError(name, "unlink", errno);
}

NewFile::~NewFile() {
  nlink_t names = 0;
  if (fd_.get() >= 0 && !working_name_.empty() &&
      LeadsTo(working_name_, fd_.get(), &names)) {
    unlink(working_name_.c_str());
  }
}

std::string NewFile::open_path() const { return PathOfOpen(fd_.get()); }

absl::Status NewFile::GiveName() {
  if (replaces_) {
    if (rename(working_name_.c_str(), path_.c_str()) == 0) {
      return absl::OkStatus();
    }
    return NewFileError(path_, "rename", errno);
  }
  if (working_name_.empty()) {
    if (linkat(AT_FDCWD, open_path().c_str(), AT_FDCWD, path_.c_str(),
               AT_SYMLINK_FOLLOW) == 0) {
      return absl::OkStatus();
    }
    return NewFileError(path_, "linkat", errno);
  }
  if (renameat2(AT_FDCWD, working_name_.c_str(), AT_FDCWD, path_.c_str(),
                RENAME_NOREPLACE) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return NewFileError(path_, "renameat2", errno);
  }
  // Fallback: two names for a moment, or until the next making of this file if
  // the process dies in between (NF3).
  if (link(working_name_.c_str(), path_.c_str()) != 0) {
    return NewFileError(path_, "link", errno);
  }
  if (unlink(working_name_.c_str()) == 0) return absl::OkStatus();
  return NewFileError(working_name_, "unlink", errno);
}

absl::Status NewFile::Publish() {
  ALPHEUS_RETURN_IF_ERROR(GiveName());
  working_name_.clear();
  return SyncFolderOf(path_);
}

int NewFile::Release() { return fd_.Release(); }

absl::StatusOr<RegionUse> UseOfFile(const std::string& path, int fd,
                                    RegionUseFunction use_of) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return FileError(path, "fstat", errno);
  if (!S_ISREG(info.st_mode)) return RegionUse::kUsed;
  if (info.st_size == 0) return RegionUse::kNothing;
  const auto bytes = static_cast<size_t>(info.st_size);
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return FileError(path, "mmap", errno);
  const RegionUse use =
      use_of({static_cast<std::byte*>(data), bytes}, /*is_device=*/false);
  munmap(data, bytes);
  return use;
}

absl::Status SyncFolderOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  FileDescriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return FileError(folder, "open", errno);
  if (fsync(fd.get()) != 0) return FileError(folder, "fsync", errno);
  return absl::OkStatus();
}

}  // namespace alpheus
