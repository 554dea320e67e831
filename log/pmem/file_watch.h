// SPDX-License-Identifier: Apache-2.0
// file_watch: checks that a path still leads to the mapped file, and that the
// file is whole.
//
// Idea: a file that was removed, or replaced by a rename, exists while it is
// mapped, and is gone with the process: nobody will find what is persisted
// there. The same holds if its folder was renamed or mounted over. So each
// check follows the whole path again. The path is made absolute once, so that
// the result does not depend on the working directory. A process that may no
// longer follow it, because its user or root changed, asks the folder.
//
// Thread safety: const members concurrently.
// References: stat(2).
#ifndef ALPHEUS_LOG_PMEM_FILE_WATCH_H_
#define ALPHEUS_LOG_PMEM_FILE_WATCH_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "log/pmem/file_descriptor.h"

namespace alpheus {

class FileWatch {
 public:
  // Watches nothing.
  FileWatch() = default;
  // Watches `path`. `fd` is a regular file, which must stay open; `bytes` of it
  // are mapped. If the path does not lead to it now, as on file systems without
  // stable file numbers, only its size is watched.
  FileWatch(const std::string& path, int fd, size_t bytes);

  // Checks path and file; a few system calls. Errors: NotFound (the path leads
  // nowhere); DataLoss (it leads to another file; the file is shorter than its
  // mapping; parts of a fully allocated file were deallocated). A state that
  // can't be found out is no error.
  absl::Status Check() const;

  bool is_watching() const { return fd_ >= 0; }

 private:
  // Identity of a file, independent of its names.
  struct Identity {
    dev_t device = 0;
    ino_t number = 0;

    bool operator==(const Identity&) const = default;
  };

  static Identity IdentityOf(const struct stat& info) {
    return {info.st_dev, info.st_ino};
  }
  static Identity Root();
  bool HasBlocks(const struct stat& info) const;
  absl::Status CheckContent() const;
  absl::Status CheckName() const;
  // Follows the path. Returns 0, or the errno.
  int FollowPath(struct stat* named) const;

  std::string path_;
  std::string whole_path_;     // absolute; empty: not watched
  std::string name_;           // name in its folder
  FileDescriptor folder_{-1};  // folder at construction
  int fd_ = -1;                // -1: nothing is watched
  size_t bytes_ = 0;
  bool is_allocated_ = false;  // all of it had blocks
  Identity file_;
  Identity root_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_WATCH_H_
