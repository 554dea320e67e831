// SPDX-License-Identifier: Apache-2.0
// log_backup: backs up an open log, in the process that has it open, while it
// is appended to.
//
// Idea: a tail reads the durable records, one at a time, and a composer makes a
// region of them (backup_composer.h). A tail waits for nobody and holds nobody
// up, so appends and cleanups go on at their speed. A slow taker of the backup
// costs nothing but the records that are cleaned before they were read.
//
// Invariants:
//   LBK1. The backup has all records that were durable when it began, from the
//         head of that moment on, and no later ones.
//   LBK2. A cleanup never waits for a backup: the ring would run full behind a
//         slow taker, and appends would wait for it. The backup fails instead
//         if a record that it has not read is cleaned.
// Thread safety: one thread at a time; the log is used by others meanwhile.
#ifndef ALPHEUS_API_LOG_LOG_BACKUP_H_
#define ALPHEUS_API_LOG_LOG_BACKUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "alpheus/log_tail.h"
#include "log/base/random.h"
#include "log/core/ring/backup_composer.h"

namespace alpheus {

class LogBackup {
 public:
  // Begins with what is durable now. The log must outlive the backup, and be
  // open as long. Errors: Aborted (the log was cleaned meanwhile, again and
  // again); as BackupComposer::Begin.
  static absl::StatusOr<std::unique_ptr<LogBackup>> Begin(Log& log,
                                                          RandomSource& random);

  const BackupSubject& subject() const { return composer_.subject(); }
  uint64_t region_bytes() const { return composer_.region_bytes(); }

  // Gives the next bytes of the region to the sink: `bytes_min` or more, at
  // most one record more, or all that is left. Returns false once that was all.
  // Errors: Aborted (LBK2); as LogTail::Next and BackupComposer::Add.
  absl::StatusOr<bool> Continue(uint64_t bytes_min, BackupComposer::Sink sink);

 private:
  LogBackup(std::unique_ptr<LogTail> tail, BackupComposer composer)
      : tail_(std::move(tail)), composer_(std::move(composer)) {}

  const std::unique_ptr<LogTail> tail_;
  BackupComposer composer_;
  bool is_done_ = false;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_LOG_BACKUP_H_
