// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_lock.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "log/base/mutant.h"
#include "log/pmem/file_error.h"

namespace alpheus {
namespace {

struct flock WholeFile(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

absl::Status TakeWriterLock(const std::string& path, int fd) {
  struct flock lock = WholeFile(F_WRLCK);
  if (IsMutant("kRegionShared")) lock.l_type = F_RDLCK;
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return absl::OkStatus();
  if (errno == EAGAIN || errno == EACCES) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": another writer has this region open, and a region has one at a "
        "time. Close that one first; `alpheus cat` reads the log meanwhile"));
  }
  return FileError(path, "fcntl(F_OFD_SETLK)", errno);
}

absl::Status ReleaseWriterLock(const std::string& path, int fd) {
  struct flock lock = WholeFile(F_UNLCK);
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return absl::OkStatus();
  return FileError(path, "fcntl(F_OFD_SETLK)", errno);
}

bool IsLockedByWriter(int fd) {
  struct flock lock = WholeFile(F_WRLCK);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace alpheus
