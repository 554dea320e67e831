// SPDX-License-Identifier: Apache-2.0
// temp_directory: a directory of the test's own, removed with it.
#ifndef ALPHEUS_TESTS_TESTING_TEMP_DIRECTORY_H_
#define ALPHEUS_TESTS_TESTING_TEMP_DIRECTORY_H_

#include <cstddef>
#include <string>
#include <vector>

namespace alpheus::testing {

class TempDirectory {
 public:
  // Under /dev/shm if that is writable, so that tests don't wait for disks.
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::vector<std::byte> ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::vector<std::byte>& bytes);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TESTING_TEMP_DIRECTORY_H_
