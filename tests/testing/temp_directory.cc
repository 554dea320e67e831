// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/temp_directory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "log/base/check.h"

namespace alpheus::testing {

TempDirectory::TempDirectory() {
  const bool has_shm = access("/dev/shm", W_OK) == 0;
  path_ = has_shm ? "/dev/shm/alpheus_test_XXXXXX" : "/tmp/alpheus_test_XXXXXX";
  ALPHEUS_CHECK(mkdtemp(path_.data()) != nullptr, "tests need a directory");
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;  // a leftover directory fails no test
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::byte> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  ALPHEUS_CHECK(in.is_open(), "the file to read exists");
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  in.read(reinterpret_cast<char*>(bytes.data()),
          static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

void WriteFile(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  ALPHEUS_CHECK(out.good(), "the file could be written");
}

}  // namespace alpheus::testing
