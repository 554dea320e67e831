// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/alpheus/notes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/replicated/candidates/system_error.h"

namespace alpheus::bench::failover {

using replicated::SystemError;

// A new file's bytes are 0, which is a valid value of each member.
absl::StatusOr<NotesFile> NotesFile::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return SystemError(path.c_str());
  if (ftruncate(file, sizeof(Notes)) != 0) {
    close(file);
    return SystemError("ftruncate");
  }
  void* const mapped =
      mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return SystemError("mmap");
  return NotesFile(static_cast<Notes*>(mapped));
}

NotesFile::~NotesFile() {
  if (notes_ != nullptr) munmap(notes_, sizeof(Notes));
}

}  // namespace alpheus::bench::failover
