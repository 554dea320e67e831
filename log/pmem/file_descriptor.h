// SPDX-License-Identifier: Apache-2.0
// file_descriptor: a file descriptor that is closed with its owner.
//
// Thread safety: one thread per object.
#ifndef ALPHEUS_LOG_PMEM_FILE_DESCRIPTOR_H_
#define ALPHEUS_LOG_PMEM_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace alpheus {

class FileDescriptor {
 public:
  // Negative: none.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  // Gives the descriptor to the caller.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_DESCRIPTOR_H_
