// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/scratch_file.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"

namespace alpheus::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

absl::StatusOr<std::string> FolderBeside(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return path;
  if (fs::is_regular_file(status)) {
    const fs::path folder = fs::path(path).parent_path();
    return folder.empty() ? "." : folder.string();
  }
  if (!fs::exists(status)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": no such folder or file",
                     error ? absl::StrCat(" (", error.message(), ")") : ""));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": is neither a folder nor a file. Name a folder on the file "
      "system to be measured; a device is never overwritten"));
}

ScratchFile::ScratchFile(const std::string& folder, const std::string& purpose)
    : path_(absl::StrCat(folder, "/.alpheus-", purpose, "-", getpid(), "-",
                         absl::Hex(EntropyRandom().Next()))) {}

void ScratchFile::Remove() {
  // What can't be removed was not created, or is gone already.
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace alpheus::cli
