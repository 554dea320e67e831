// SPDX-License-Identifier: Apache-2.0
#include "alpheus/log_tail.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "api/log/log_engine.h"
#include "log/base/status_macros.h"
#include "log/core/space/reclaimer.h"

namespace alpheus {

absl::StatusOr<std::unique_ptr<LogTail>> Log::Tail(Lsn from) {
  const Lsn head = head_lsn();
  const Lsn next = next_lsn();
  if (from != Lsn(0) && (from < head || from > next)) {
    return absl::OutOfRangeError(
        absl::StrCat("tail from LSN ", from.value, ": the log begins at LSN ",
                     head.value, ", and its next LSN is ", next.value,
                     ". Begin at one of these or between them; earlier records "
                     "were cleaned"));
  }
  return std::unique_ptr<LogTail>(
      new LogTail(*this, from == Lsn(0) ? head : from));
}

LogTail::LogTail(Log& log, Lsn from)
    : log_(log),
      place_(std::make_unique<TailPlace>()),
      durable_lsn_(log.durable_lsn()),
      next_lsn_(from) {
  place_->lsn = from;
  log_.open_tails_.fetch_add(1, std::memory_order_relaxed);
}

LogTail::~LogTail() {
  log_.open_tails_.fetch_sub(1, std::memory_order_release);
}

absl::StatusOr<std::optional<TailRecord>> LogTail::Next() {
  // Loaded first: all records that are durable then are shown before "none".
  const Lsn durable = log_.durable_lsn();
  ALPHEUS_ASSIGN_OR_RETURN(const bool any, log_.engine_->CopyNext(*place_));
  durable_lsn_ = durable;
  next_lsn_ = place_->lsn;
  if (!any) return std::nullopt;
  durable_lsn_ = std::max(durable, place_->copied_lsn);
  return TailRecord{place_->copied_lsn, place_->epoch, place_->payload,
                    place_->copied_offset};
}

}  // namespace alpheus
