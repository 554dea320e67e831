// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace alpheus {
namespace {

constexpr char kNoLonger[] =
    " while it was in use: nothing is acknowledged there any more. ";

// Returns whether the error means that the path leads nowhere, for any process.
bool IsOfNoFile(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

}  // namespace

FileWatch::FileWatch(const std::string& path, int fd, size_t bytes)
    : path_(path), bytes_(bytes) {
  struct stat opened{};
  if (fstat(fd, &opened) != 0 || !S_ISREG(opened.st_mode)) return;
  fd_ = fd;
  is_allocated_ = HasBlocks(opened);
  file_ = IdentityOf(opened);
  root_ = Root();
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (error) return;
  whole_path_ = whole.string();
  name_ = whole.filename().string();
  folder_ = FileDescriptor(
      open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!CheckName().ok()) whole_path_.clear();
}

FileWatch::Identity FileWatch::Root() {
  struct stat root{};
  return stat("/", &root) == 0 ? IdentityOf(root) : Identity();
}

bool FileWatch::HasBlocks(const struct stat& info) const {
  constexpr uint64_t kBlockBytes = 512;  // of st_blocks
  return static_cast<uint64_t>(info.st_blocks) * kBlockBytes >= bytes_;
}

absl::Status FileWatch::Check() const {
  if (fd_ < 0) return absl::OkStatus();
  if (absl::Status content = CheckContent(); !content.ok()) return content;
  return CheckName();
}

absl::Status FileWatch::CheckContent() const {
  struct stat opened{};
  if (fstat(fd_, &opened) != 0) return absl::OkStatus();
  if (static_cast<size_t>(opened.st_size) < bytes_) {
    return absl::DataLossError(absl::StrCat(
        path_, ": the file was truncated to ", opened.st_size, " of ", bytes_,
        " bytes", kNoLonger, "Put the whole file back"));
  }
  // A file system that compresses may use fewer blocks without a hole.
  if (is_allocated_ && !HasBlocks(opened) &&
      lseek(fd_, 0, SEEK_HOLE) < static_cast<off_t>(bytes_)) {
    return absl::DataLossError(absl::StrCat(
        path_,
        ": a hole was made in the file, or it was truncated and extended "
        "again,",
        kNoLonger, "Put the whole file back"));
  }
  if (opened.st_nlink == 0 && whole_path_.empty()) {
    return absl::NotFoundError(absl::StrCat(
        path_, ": the file was removed", kNoLonger, "Put the whole file back"));
  }
  return absl::OkStatus();
}

int FileWatch::FollowPath(struct stat* named) const {
  const int error = stat(whole_path_.c_str(), named) == 0 ? 0 : errno;
  const bool is_known = error == 0 || IsOfNoFile(error);
  if (error == 0 && IdentityOf(*named) == file_) return 0;
  if (folder_.get() < 0 || (is_known && Root() == root_)) return error;
  return fstatat(folder_.get(), name_.c_str(), named, 0) == 0 ? 0 : errno;
}

absl::Status FileWatch::CheckName() const {
  if (whole_path_.empty()) return absl::OkStatus();
  struct stat named{};
  const int error = FollowPath(&named);
  if (IsOfNoFile(error)) {
    return absl::NotFoundError(absl::StrCat(
        path_, ": the file was removed or renamed, or a folder above it was,",
        kNoLonger, "If it has another name, give it this one again"));
  }
  if (error != 0 || IdentityOf(named) == file_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      path_,
      ": another file was put in its place, or a folder above it was replaced "
      "or mounted over,",
      kNoLonger,
      "Before replacing a file, end every process that has it open"));
}

}  // namespace alpheus
