// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/database_lock.h"

#include "absl/strings/str_cat.h"

namespace alpheus::wal {

absl::Status DatabaseLock::Take(const std::string& directory) {
  const MutexLock lock(mutex_);
  if (locks_ > 0 && database_ != directory) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory, ": this log is that of the database ", database_,
        ", which is open. Give each database a log of its own"));
  }
  if (locks_++ == 0) has_made_wal_ = is_vouched_ = false;
  database_ = directory;
  return absl::OkStatus();
}

void DatabaseLock::Release() {
  const MutexLock lock(mutex_);
  if (--locks_ != 0) return;
  database_.clear();
  is_vouched_ = false;
}

std::string DatabaseLock::database() const {
  const MutexLock lock(mutex_);
  return database_;
}

std::string DatabaseLock::opening() const {
  const MutexLock lock(mutex_);
  return has_made_wal_ ? "" : database_;
}

bool DatabaseLock::is_free() const {
  const MutexLock lock(mutex_);
  return locks_ == 0;
}

bool DatabaseLock::is_to_be_left() const {
  const MutexLock lock(mutex_);
  return locks_ == 1 && is_vouched_;
}

void DatabaseLock::NoteWalMade() {
  const MutexLock lock(mutex_);
  has_made_wal_ = true;
}

void DatabaseLock::NoteVouched() {
  const MutexLock lock(mutex_);
  is_vouched_ = locks_ > 0;
}

bool DatabaseLock::is_vouched() const {
  const MutexLock lock(mutex_);
  return is_vouched_;
}

}  // namespace alpheus::wal
