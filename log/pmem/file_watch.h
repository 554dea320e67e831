// SPDX-License-Identifier: Apache-2.0
// file_watch: whether a path still leads to the file that is mapped, and
// whether that is still whole.
//
// Idea: a file that was removed, or that another one was renamed over, goes on
// as long as it is mapped, and is gone with the process: what is persisted
// there is in no file that anybody will open. The same holds of a file whose
// folder was renamed, or mounted over. So the whole path is followed anew at
// each look; it is made absolute once, so that the answer does not depend on
// the process's own working directory. A process that may not follow it any
// more, as one that has another user or root since, asks the folder.
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
  // `fd` is a regular file, which must stay open; `bytes` of it are mapped. A
  // path that does not lead to it now, as on file systems whose files have no
  // number of their own, is not watched, but its size is.
  FileWatch(const std::string& path, int fd, size_t bytes);

  // A few system calls. Errors: NotFound (the path leads nowhere); DataLoss (it
  // leads to another file; the file is shorter than what is mapped; parts of it
  // were given back, where all of it had blocks). What can't be found out is no
  // error.
  absl::Status Check() const;

  bool is_watching() const { return fd_ >= 0; }

 private:
  // The identity of a file, whatever its names are.
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
  // 0, or the errno.
  int FollowPath(struct stat* named) const;

  std::string path_;
  std::string whole_path_;     // absolute; empty: not watched
  std::string name_;           // in its folder
  FileDescriptor folder_{-1};  // as it was
  int fd_ = -1;                // -1: nothing is watched
  size_t bytes_ = 0;
  bool is_allocated_ = false;  // all of it was
  Identity file_;
  Identity root_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_WATCH_H_
