// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/file_hole.h"

#include <fcntl.h>

#include <filesystem>

#include "log/base/check.h"
#include "log/pmem/file_descriptor.h"

namespace alpheus::testing {

void MakeHole(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  const auto bytes = static_cast<off_t>(std::filesystem::file_size(path));
  const int made = fallocate(
      file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes);
  ALPHEUS_CHECK(made == 0, "the file system makes holes");
}

}  // namespace alpheus::testing
