// SPDX-License-Identifier: Apache-2.0
// file_lock: the lock of a region's one writer.
//
// It belongs to the open file, not to the process, and is gone with it, however
// the process ends.
//
// References: fcntl(2), F_OFD_SETLK.
#ifndef ALPHEUS_LOG_PMEM_FILE_LOCK_H_
#define ALPHEUS_LOG_PMEM_FILE_LOCK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace alpheus {

// Does not wait. `path` is for messages.
// Errors: FailedPrecondition (somebody has it); as FileError.
absl::Status TakeWriterLock(const std::string& path, int fd);

// Errors: as FileError; the lock is kept.
absl::Status ReleaseWriterLock(const std::string& path, int fd);

// The process that has it, if the system tells: of processes of the same user,
// or if this one is root. For messages: it looks at the open files of all
// processes.
std::optional<int64_t> WriterLockHolder(const std::string& path);
// " (process 1234)", or nothing; part of a message.
std::string DescribeLockHolder(const std::string& path);

// Whether another open file has it. Takes no lock, so that a reader never
// stands in a writer's way.
bool IsLockedByWriter(int fd);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_LOCK_H_
