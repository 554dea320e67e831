// SPDX-License-Identifier: Apache-2.0
// Recovered records of the C interface, over RecoveredRange.
#include <optional>

#include "absl/strings/str_cat.h"
#include "alpheus/alpheus.h"
#include "alpheus/log.h"
#include "api/c/log_handle.h"
#include "api/c/result.h"

using alpheus::RecoveredRange;
using alpheus::RecoveredRecord;
using alpheus::c::Return;
using alpheus::c::ReturnNull;
using alpheus::c::ReturnOk;

struct alpheus_cursor {
  explicit alpheus_cursor(alpheus_log* owner)
      : log(owner), range(owner->log->Recovered()) {}

  alpheus_log* const log;
  RecoveredRange range;
  std::optional<RecoveredRange::Iterator> at;  // once next was called
  alpheus_record record{};
};

namespace {

alpheus_record ViewOf(const RecoveredRecord& record) {
  return {record.lsn.value, record.epoch.value, record.payload.data(),
          record.payload.size()};
}

alpheus_cursor* NewCursor(alpheus_log& log) {
  // Relaxed: the thread that closes the log learns by other means that this
  // returned.
  log.cursors.fetch_add(1, std::memory_order_relaxed);
  return new alpheus_cursor(&log);
}

absl::Status Visit(alpheus_log& log, alpheus_record_visitor visit,
                   void* context) {
  return log.log->ForEachRecovered([&](const RecoveredRecord& record) {
    const alpheus_record view = ViewOf(record);
    if (visit(context, &view)) return absl::OkStatus();
    return absl::CancelledError(
        absl::StrCat("the visitor stopped at LSN ", record.lsn.value));
  });
}

}  // namespace

extern "C" {

alpheus_code alpheus_log_recovered(alpheus_log* log, alpheus_cursor** cursor,
                                   alpheus_error* error) noexcept {
  if (cursor == nullptr) {
    return ReturnNull("alpheus_log_recovered", "cursor", error);
  }
  *cursor = nullptr;
  if (log == nullptr) return ReturnNull("alpheus_log_recovered", "log", error);
  *cursor = NewCursor(*log);
  return ReturnOk(error);
}

const alpheus_record* alpheus_cursor_next(alpheus_cursor* cursor) noexcept {
  if (cursor == nullptr) return nullptr;
  if (!cursor->at) {
    cursor->at = cursor->range.begin();
  } else if (*cursor->at != cursor->range.end()) {
    ++*cursor->at;
  }
  if (*cursor->at == cursor->range.end()) return nullptr;
  cursor->record = ViewOf(**cursor->at);
  return &cursor->record;
}

alpheus_code alpheus_cursor_finish(alpheus_cursor* cursor,
                                   alpheus_error* error) noexcept {
  if (cursor == nullptr) return ReturnOk(error);
  const absl::Status status = cursor->range.status();
  alpheus_log* const log = cursor->log;
  delete cursor;
  // Release: the cursor's reads happen before the log goes.
  log->cursors.fetch_sub(1, std::memory_order_release);
  return Return(status, error);
}

alpheus_code alpheus_log_for_each_recovered(alpheus_log* log,
                                            alpheus_record_visitor visit,
                                            void* context,
                                            alpheus_error* error) noexcept {
  if (log == nullptr) {
    return ReturnNull("alpheus_log_for_each_recovered", "log", error);
  }
  if (visit == nullptr) {
    return ReturnNull("alpheus_log_for_each_recovered", "visit", error);
  }
  return Return(Visit(*log, visit, context), error);
}

}  // extern "C"
