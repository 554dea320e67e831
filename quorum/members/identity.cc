// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/identity.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "log/pmem/file_error.h"

namespace alpheus::quorum {

absl::StatusOr<std::string> ParseIdentity(std::string_view text,
                                          std::string_view file) {
  const std::string line(
      absl::StripAsciiWhitespace({text.data(), text.size()}));
  const size_t colon = line.find(':');
  const bool is_good =
      line.size() <= kIdentityBytesMax && colon != std::string::npos &&
      colon != 0 && colon + 1 != line.size() &&
      line.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
  if (is_good) return line;
  return absl::InvalidArgumentError(absl::StrCat(
      "identity file ", absl::string_view(file.data(), file.size()),
      ": expected one line with name:password, of at most ", kIdentityBytesMax,
      " bytes. Write the line into it that the other nodes have"));
}

absl::StatusOr<std::string> LoadIdentity(const std::string& path) {
  // Does not block on a pipe without a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      descriptor < 0 ? nullptr : fdopen(descriptor, "rb"), std::fclose);
  if (file == nullptr) {
    return OtherFileError(
        absl::StrCat("identity file ", path, " can't be opened"), errno,
        "It has name:password for ZooKeeper, the same on all nodes");
  }
  struct stat found{};
  if (fstat(fileno(file.get()), &found) != 0 || !S_ISREG(found.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "identity file ", path, " is not a regular file. Name a regular file"));
  }
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "identity file ", path,
        ": other users than its owner may use it, expected mode 600 or 400. "
        "If nobody has read it, `chmod 600 ",
        path, "`; else give ZooKeeper another password"));
  }
  std::string text(kIdentityBytesMax + 3, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("identity file ", path, " can't be read"));
  }
  return ParseIdentity(text, path);
}

}  // namespace alpheus::quorum
