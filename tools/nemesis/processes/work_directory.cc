// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/processes/work_directory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace alpheus::demo {

absl::StatusOr<WorkDirectory> WorkDirectory::Create(const std::string& parent) {
  std::string path = absl::StrCat(parent, "/alpheus-demo-XXXXXX");
  if (mkdtemp(path.data()) != nullptr) return WorkDirectory(path);
  return absl::FailedPreconditionError(absl::StrCat(
      parent, ": no directory can be made there; name another with --dir"));
}

WorkDirectory::~WorkDirectory() {
  std::error_code ignored;  // a leftover in a temporary directory
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string DefaultParent(bool in_memory) {
  const char* memory = "/dev/shm";
  if (in_memory && access(memory, W_OK | X_OK) == 0) return memory;
  std::error_code error;
  const std::filesystem::path temporary =
      std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : temporary.string();
}

}  // namespace alpheus::demo
