// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/pmem/file_descriptor.h"
#include "log/pmem/file_error.h"

namespace alpheus {
namespace {

absl::Status CheckOwnerAlone(const struct stat& found, absl::string_view name,
                             const std::string& path,
                             const ConfigFileKind& kind) {
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      name, " has mode ",
      absl::StrCat(found.st_mode >> 6 & 7, found.st_mode >> 3 & 7,
                   found.st_mode & 7),
      ": other users than its owner may use it, expected 600 or 400. If nobody "
      "has read it, `chmod 600 ",
      path, "`; else ", kind.if_exposed));
}

int64_t NanosOf(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

ConfigFileStamp StampOf(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return {};
  return {.device = found.st_dev,
          .number = found.st_ino,
          .bytes = found.st_size,
          .written_ns = NanosOf(found.st_mtim),
          .changed_ns = NanosOf(found.st_ctim)};
}

absl::StatusOr<std::string> ReadConfigFile(const std::string& path,
                                           const ConfigFileKind& kind) {
  const std::string name = absl::StrCat(kind.name, " ", path);
  // Does not block on a pipe without a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      descriptor < 0 ? nullptr : fdopen(descriptor, "rb"), std::fclose);
  if (file == nullptr) {
    const FileDescriptor closes(descriptor);  // there was no memory
    return OtherFileError(absl::StrCat(name, " can't be opened"), errno,
                          kind.if_missing);
  }
  struct stat found{};
  if (fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not a regular file. Name a regular file"));
  }
  if (kind.readers == ReadableBy::kOwner) {
    ALPHEUS_RETURN_IF_ERROR(CheckOwnerAlone(found, name, path, kind));
  }
  // A buffer of the file's own would keep a secret. Without one a file can be
  // read all the same.
  (void)std::setvbuf(file.get(), nullptr, _IONBF, 0);
  // One byte more than allowed, to detect a larger file.
  std::string text(kind.bytes_max + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return OtherFileError(absl::StrCat(name, " can't be read"), errno);
  }
  if (text.size() > kind.bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has more than ", kind.bytes_max, " bytes. Name another file"));
  }
  return text;
}

absl::Status WriteConfigFile(int descriptor, absl::string_view text,
                             const std::string& path,
                             const ConfigFileKind& kind) {
  const ssize_t written = write(descriptor, text.data(), text.size());
  const bool is_whole = written == static_cast<ssize_t>(text.size());
  if (is_whole && fsync(descriptor) == 0) return absl::OkStatus();
  if (written >= 0 && !is_whole) errno = ENOSPC;
  return OtherFileError(absl::StrCat(kind.name, " ", path, " can't be written"),
                        errno);
}

}  // namespace alpheus
