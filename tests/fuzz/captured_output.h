// SPDX-License-Identifier: Apache-2.0
// captured_output: takes what the process writes to standard output, for fuzz
// targets of commands that write there.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_FUZZ_CAPTURED_OUTPUT_H_
#define ALPHEUS_TESTS_FUZZ_CAPTURED_OUTPUT_H_

#include <string>
#include <string_view>

namespace alpheus::testing {

// A file in memory; gone with the process.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }
  // Under which the process can open it.
  const std::string& path() const { return path_; }

  // Replaces the content; position 0.
  void Set(std::string_view content);
  // The content; the file is empty afterwards.
  std::string Take();

 private:
  int fd_;
  std::string path_;
};

// From the first call on, standard output goes into this file.
MemoryFile& CapturedOutput();

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_FUZZ_CAPTURED_OUTPUT_H_
