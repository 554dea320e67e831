// SPDX-License-Identifier: Apache-2.0
#include "api/log/log_backup.h"

#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log_epoch.h"
#include "alpheus/recovery_report.h"
#include "alpheus/tail_record.h"
#include "log/base/check.h"
#include "log/base/ids.h"
#include "log/base/status_macros.h"

namespace alpheus {
namespace {

// Cleanups that overtake a beginning of a few microseconds, one after the
// other.
constexpr int kTriesMax = 100;

absl::Status Cleaned(const absl::Status& why) {
  return absl::AbortedError(absl::StrCat(
      "the backup was overtaken: ", why.message(),
      ". A cleanup does not wait for a backup. Back up again, before records "
      "are cleaned, or faster"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogBackup>> LogBackup::Begin(
    Log& log, RandomSource& random) {
  for (int i = 0; i < kTriesMax; ++i) {
    BackupSubject subject;
    subject.log_id = log.report().log_id;
    subject.ring_capacity = log.ring_bytes();
    // In this order. The epochs name the owner of each record up to the end,
    // and those of the head that the tail begins at: that is no earlier.
    subject.end_lsn = log.durable_lsn();
    for (const LogEpoch& epoch : log.epochs()) {
      subject.epochs.push_back({epoch.epoch, epoch.start_lsn});
    }
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<LogTail> tail, log.Tail(Lsn(0)));
    subject.head_lsn = tail->next_lsn();
    if (subject.head_lsn > subject.end_lsn + 1) continue;
    ALPHEUS_ASSIGN_OR_RETURN(BackupComposer composer,
                             BackupComposer::Begin(std::move(subject), random));
    return std::unique_ptr<LogBackup>(
        new LogBackup(std::move(tail), std::move(composer)));
  }
  return Cleaned(absl::AbortedError("the head has passed what was durable"));
}

absl::StatusOr<bool> LogBackup::Continue(uint64_t bytes_min,
                                         BackupComposer::Sink sink) {
  if (is_done_) return false;
  uint64_t bytes = 0;
  const auto count = [&](uint64_t offset, std::span<const std::byte> piece) {
    bytes += piece.size();
    return sink(offset, piece);
  };
  const Lsn end = composer_.subject().end_lsn;
  while (bytes < bytes_min && tail_->next_lsn() <= end) {
    const absl::StatusOr<std::optional<TailRecord>> record = tail_->Next();
    if (absl::IsOutOfRange(record.status())) return Cleaned(record.status());
    ALPHEUS_RETURN_IF_ERROR(record.status());
    ALPHEUS_CHECK(*record || tail_->next_lsn() > end,
                  "what was durable stays so (LBK1)");
    // Aborted LSNs may have moved the tail behind the end.
    if (!*record || (*record)->lsn > end) break;
    ALPHEUS_RETURN_IF_ERROR(composer_.Add((*record)->lsn, (*record)->epoch,
                                          (*record)->payload, count));
  }
  if (bytes >= bytes_min) return true;
  ALPHEUS_RETURN_IF_ERROR(composer_.Finish(count));
  is_done_ = true;
  return false;
}

}  // namespace alpheus
