// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target, without libFuzzer, over the files it is given, and over
// the files in the folders it is given. Fails if there is none.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/fixtures/temp_directory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

namespace {

std::vector<std::string> FilesOf(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    if (!std::filesystem::is_directory(argument)) {
      files.push_back(argument);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argument)) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> files = FilesOf({argv + 1, argv + argc});
  if (files.empty()) {
    std::fprintf(stderr, "usage: %s FILE|FOLDER... with at least one input\n",
                 argv[0]);
    return 2;
  }
  for (const std::string& file : files) {
    const std::vector<std::byte> bytes = alpheus::testing::ReadFile(file);
    // Told before it runs, so that an abort says which input it was; not to
    // standard output, which may be what is tested.
    std::fprintf(stderr, "%s: %zu bytes\n", file.c_str(), bytes.size());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                           bytes.size());
  }
  std::fprintf(stderr, "%zu inputs passed\n", files.size());
  return 0;
}
