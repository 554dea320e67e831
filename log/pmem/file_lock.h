// SPDX-License-Identifier: Apache-2.0
// file_lock: the lock of a region's one writer.
//
// It belongs to the open file, not to the process, and is gone with it, however
// the process ends.
//
// References: fcntl(2), F_OFD_SETLK.
#ifndef ALPHEUS_LOG_PMEM_FILE_LOCK_H_
#define ALPHEUS_LOG_PMEM_FILE_LOCK_H_

#include <string>

#include "absl/status/status.h"

namespace alpheus {

// Does not wait. `path` is for messages.
// Errors: FailedPrecondition (somebody has it); as FileError.
absl::Status TakeWriterLock(const std::string& path, int fd);

// Errors: as FileError; the lock is kept.
absl::Status ReleaseWriterLock(const std::string& path, int fd);

// Whether another open file has it. Takes no lock, so that a reader never
// stands in a writer's way.
bool IsLockedByWriter(int fd);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_LOCK_H_
