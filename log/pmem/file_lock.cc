// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "log/pmem/file_error.h"

namespace alpheus {
namespace {

namespace fs = std::filesystem;

struct flock WholeFile(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// Reads the open file's info: F_OFD_GETLK and /proc/locks name no process for
// such a lock.
bool ShowsLock(const fs::path& info) {
  std::ifstream lines(info);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("lock:") && absl::StrContains(line, "OFDLCK") &&
        absl::StrContains(line, "WRITE")) {
      return true;
    }
  }
  return false;
}

// Returns whether the process, a folder of /proc, has the file open with the
// lock.
bool HasLock(const fs::path& process, const struct stat& file) {
  std::error_code error;
  for (fs::directory_iterator open(process / "fd", error), end; open != end;
       open.increment(error)) {
    if (error) break;
    struct stat other{};
    if (stat(open->path().c_str(), &other) != 0 ||
        other.st_dev != file.st_dev || other.st_ino != file.st_ino) {
      continue;
    }
    if (ShowsLock(process / "fdinfo" / open->path().filename())) return true;
  }
  return false;
}

}  // namespace

absl::Status TakeWriterLock(const std::string& path, int fd) {
  struct flock lock = WholeFile(F_WRLCK);
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

std::optional<int64_t> WriterLockHolder(const std::string& path) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) return std::nullopt;
  std::error_code error;  // process gone, or another user's: skipped
  for (fs::directory_iterator process("/proc", error), end; process != end;
       process.increment(error)) {
    if (error) break;
    int64_t pid = 0;
    if (!absl::SimpleAtoi(process->path().filename().string(), &pid)) continue;
    if (HasLock(process->path(), file)) return pid;
  }
  return std::nullopt;
}

std::string DescribeLockHolder(const std::string& path) {
  const std::optional<int64_t> holder = WriterLockHolder(path);
  return holder ? absl::StrCat(" (process ", *holder, ")") : "";
}

bool IsLockedByWriter(int fd) {
  struct flock lock = WholeFile(F_WRLCK);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace alpheus
