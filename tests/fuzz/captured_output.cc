// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/captured_output.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/check.h"

namespace alpheus::testing {

MemoryFile::MemoryFile()
    : fd_(memfd_create("fuzz", MFD_CLOEXEC)),
      path_("/proc/self/fd/" + std::to_string(fd_)) {
  ALPHEUS_CHECK(fd_ >= 0, "a fuzz target needs a file in memory");
}

MemoryFile::~MemoryFile() { close(fd_); }

void MemoryFile::Set(std::string_view content) {
  bool done = ftruncate(fd_, 0) == 0 && lseek(fd_, 0, SEEK_SET) == 0;
  done = done && write(fd_, content.data(), content.size()) ==
                     static_cast<ssize_t>(content.size());
  done = done && lseek(fd_, 0, SEEK_SET) == 0;
  ALPHEUS_CHECK(done, "a file in memory takes what is written");
}

std::string MemoryFile::Take() {
  struct stat status{};
  ALPHEUS_CHECK(fstat(fd_, &status) == 0, "a file in memory has a size");
  std::string content(static_cast<size_t>(status.st_size), '\0');
  const ssize_t got = pread(fd_, content.data(), content.size(), 0);
  ALPHEUS_CHECK(got == status.st_size, "a file in memory is read whole");
  Set("");
  return content;
}

MemoryFile& CapturedOutput() {
  static MemoryFile* const file = [] {
    auto* made = new MemoryFile;  // outlives whatever writes at exit
    ALPHEUS_CHECK(dup2(made->fd(), STDOUT_FILENO) == STDOUT_FILENO,
                  "standard output can be redirected");
    return made;
  }();
  return *file;
}

}  // namespace alpheus::testing
