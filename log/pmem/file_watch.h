// SPDX-License-Identifier: Apache-2.0
// file_watch: whether a path still leads to the file that is mapped, and
// whether that still has its size.
//
// Idea: a file that was removed, or that another one was renamed over, goes on
// as long as it is mapped, and is gone with the process: what is persisted
// there is in no file that anybody will open. The folder is kept open, so that
// the answer does not depend on the process's own working directory.
//
// Thread safety: const members concurrently.
// References: stat(2).
#ifndef ALPHEUS_LOG_PMEM_FILE_WATCH_H_
#define ALPHEUS_LOG_PMEM_FILE_WATCH_H_

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

  // Two or three system calls. Errors: NotFound (the path leads nowhere);
  // DataLoss (it leads to another file; the file is shorter than what is
  // mapped). What can't be found out is no error.
  absl::Status Check() const;

 private:
  absl::Status CheckName() const;

  std::string path_;
  std::string name_;           // in its folder
  FileDescriptor folder_{-1};  // -1: the path is not watched
  int fd_ = -1;                // -1: nothing is watched
  size_t bytes_ = 0;
  dev_t device_ = 0;
  ino_t number_ = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_WATCH_H_
