// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/alpheus_commit_log.h"

#include "log/base/status_macros.h"

namespace alpheus::bench::ordered_store {

absl::StatusOr<uint64_t> AlpheusCommitLog::Write(
    int /*worker*/, std::span<const std::byte> change) {
  ALPHEUS_ASSIGN_OR_RETURN(Reservation record, log_->Reserve(change.size()));
  ALPHEUS_RETURN_IF_ERROR(log_->Copy(record, 0, change));
  ALPHEUS_ASSIGN_OR_RETURN(const Lsn lsn, log_->Complete(std::move(record)));
  return lsn.value;
}

absl::Status AlpheusCommitLog::Commit(int /*worker*/, uint64_t place) {
  return log_->Force(Lsn(place), OptionsOf(policy_));
}

absl::Status AlpheusCommitLog::CommitAll() {
  const Lsn last = log_->next_lsn() - 1;
  return last == Lsn(0) ? absl::OkStatus() : log_->Force(last);
}

absl::Status AlpheusCommitLog::Reclaim() {
  return log_->CleanupThrough(log_->durable_lsn());
}

absl::StatusOr<uint64_t> AlpheusCommitLog::Replay(const Log& log,
                                                  const Visit& visit) {
  uint64_t count = 0;
  RecoveredRange records = log.Recovered();
  for (const RecoveredRecord& record : records) {
    visit(record.payload);
    ++count;
  }
  ALPHEUS_RETURN_IF_ERROR(records.status());
  return count;
}

}  // namespace alpheus::bench::ordered_store
