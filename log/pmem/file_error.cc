// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_error.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace alpheus {
namespace {

std::string What(const std::string& path, const char* call, int error) {
  return absl::StrCat(path, ": ", call, " failed: ", std::strerror(error));
}

}  // namespace

absl::Status FileError(const std::string& path, const char* call, int error) {
  const std::string what = What(path, call, error);
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(
          absl::StrCat(what, ". Is the path right? `alpheus format --file ",
                       path, " --size SIZE` makes a new log"));
    case EEXIST:
      return absl::AlreadyExistsError(absl::StrCat(
          what,
          ". Nothing was changed, as somebody may need what is there. Name "
          "another file"));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(absl::StrCat(
          what, ". Free space, or make a smaller file; nothing was created"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          what, ". Give this user the right to read and write it"));
    case EROFS:
      return absl::PermissionDeniedError(
          absl::StrCat(what, ". Mount its file system for writing"));
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(
          absl::StrCat(what, ". Name it by fewer bytes"));
    case ENOTDIR:
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": a part of the path is a file. Correct it"));
    case ELOOP:
      return absl::InvalidArgumentError(absl::StrCat(
          what,
          ": a link leads to itself, or too many follow each other. "
          "Correct the path or the link"));
    case EINVAL:
    case EISDIR:
    case ENXIO:   // a socket, or a device without a driver
    case ENODEV:  // what can't be mapped
      return absl::InvalidArgumentError(
          absl::StrCat(what, ". Name a regular file or a DAX device"));
    default:
      return absl::UnavailableError(what);
  }
}

absl::Status ReadFileError(const std::string& path, const char* call,
                           int error) {
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(
          absl::StrCat(What(path, call, error), ". Is the path right?"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          What(path, call, error), ". Give this user the right to read it"));
    default:
      return FileError(path, call, error);
  }
}

absl::Status NewFileError(const std::string& path, const char* call,
                          int error) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(
        absl::StrCat(What(path, call, error),
                     ". Give this user the right to write in the folder ",
                     folder.string(), "; nothing was created"));
  }
  if (error != ENOENT) return FileError(path, call, error);
  return absl::NotFoundError(
      absl::StrCat(What(path, call, error), ": there is no folder ",
                   folder.string(), ". Make it first; nothing was created"));
}

absl::Status OtherFileError(absl::string_view what, int error,
                            absl::string_view remedy) {
  switch (error) {
    case ENAMETOOLONG:
    case ENOTDIR:
    case ELOOP:
    case EISDIR:
    case ENXIO:
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": ", std::strerror(error), ". Correct the path"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(what, ": ", std::strerror(error), ". User ", geteuid(),
                       ", by whom this program runs, needs the right to read "
                       "it, and to pass "
                       "through all folders above"));
    default:
      // Remedy last: the failure is read first.
      return absl::Status(absl::ErrnoToStatusCode(error),
                          absl::StrCat(what, ": ", std::strerror(error),
                                       remedy.empty() ? "" : ". ", remedy));
  }
}

}  // namespace alpheus
