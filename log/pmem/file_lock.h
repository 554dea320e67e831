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

// Takes the lock without waiting. `path` is for messages.
// Errors: FailedPrecondition (another process has it); as FileError.
// Errors: FailedPrecondition (somebody has it); as FileError.
absl::Status TakeWriterLock(const std::string& path, int fd);

// Errors: as FileError; the lock is kept.
absl::Status ReleaseWriterLock(const std::string& path, int fd);

// Returns the process that has the lock, if the system shows it: a process of
// the same user, or any if this one is root. For messages only: it reads the
// open files of all processes.
std::optional<int64_t> WriterLockHolder(const std::string& path);
// Returns " (process 1234)", or nothing; part of a message.
std::string DescribeLockHolder(const std::string& path);

// Returns whether another open file has the lock. Takes no lock, so that a
// reader never blocks a writer.
bool IsLockedByWriter(int fd);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_LOCK_H_
