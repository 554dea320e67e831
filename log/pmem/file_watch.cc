// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace alpheus {
namespace {

constexpr char kNoLonger[] =
    " while it was in use: nothing is acknowledged there any more. ";

}  // namespace

FileWatch::FileWatch(const std::string& path, int fd, size_t bytes)
    : path_(path), bytes_(bytes) {
  struct stat opened{};
  if (fstat(fd, &opened) != 0 || !S_ISREG(opened.st_mode)) return;
  fd_ = fd;
  device_ = opened.st_dev;
  number_ = opened.st_ino;
  const std::filesystem::path whole(path);
  name_ = whole.filename();
  const std::string folder =
      whole.has_parent_path() ? whole.parent_path().string() : ".";
  folder_ =
      FileDescriptor(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!CheckName().ok()) folder_ = FileDescriptor(-1);
}

absl::Status FileWatch::Check() const {
  struct stat opened{};
  if (fd_ < 0 || fstat(fd_, &opened) != 0) return absl::OkStatus();
  if (static_cast<size_t>(opened.st_size) < bytes_) {
    return absl::DataLossError(absl::StrCat(
        path_, ": the file was truncated to ", opened.st_size, " of ", bytes_,
        " bytes", kNoLonger, "Put the whole file back"));
  }
  if (opened.st_nlink == 0 && folder_.get() < 0) {
    return absl::NotFoundError(absl::StrCat(
        path_, ": the file was removed", kNoLonger, "Put the whole file back"));
  }
  return CheckName();
}

absl::Status FileWatch::CheckName() const {
  if (folder_.get() < 0) return absl::OkStatus();
  struct stat named{};
  if (fstatat(folder_.get(), name_.c_str(), &named, 0) != 0) {
    if (errno != ENOENT) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(path_, ": the file was removed or renamed", kNoLonger,
                     "If it has another name, give it this one again"));
  }
  if (named.st_dev == device_ && named.st_ino == number_) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(path_, ": another file was put in its place", kNoLonger,
                   "End whoever has it open before a file is replaced"));
}

}  // namespace alpheus
