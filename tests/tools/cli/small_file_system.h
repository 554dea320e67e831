// SPDX-License-Identifier: Apache-2.0
// small_file_system: a file system that is soon full.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_TOOLS_CLI_SMALL_FILE_SYSTEM_H_
#define ALPHEUS_TESTS_TOOLS_CLI_SMALL_FILE_SYSTEM_H_

#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

namespace alpheus::testing {

// In memory. Not available, as to a user without rights: `why_not` says so.
class SmallFileSystem {
 public:
  // `size`: as tmpfs takes it.
  explicit SmallFileSystem(const std::string& path,
                           const std::string& size = "1m")
      : path_(path) {
    std::filesystem::create_directory(path_);
    mounted_ = mount("alpheus", path_.c_str(), "tmpfs", 0,
                     ("size=" + size).c_str()) == 0;
    if (!mounted_) why_not_ = std::strerror(errno);
  }
  ~SmallFileSystem() {
    if (mounted_) umount(path_.c_str());
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;

  bool is_mounted() const { return mounted_; }
  const std::string& why_not() const { return why_not_; }

 private:
  const std::string path_;
  bool mounted_ = false;
  std::string why_not_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TOOLS_CLI_SMALL_FILE_SYSTEM_H_
