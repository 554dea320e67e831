// SPDX-License-Identifier: Apache-2.0
// recovered_source: delivers the range that opening a log recovered; see
// recovered_range.h.
//
// Thread safety: one thread; others may append and clean meanwhile.
// References: protocol P-A4.6, P-H11.
#ifndef ALPHEUS_API_LOG_RECOVERED_SOURCE_H_
#define ALPHEUS_API_LOG_RECOVERED_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "alpheus/recovered_range.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"

namespace alpheus {

class RecoveredSource final : public RecoveredRange::Source {
 public:
  // Delivers the records from `head` to `end_lsn`. The opening has checked
  // those from `read_from` on; the others are checked here, with their chain.
  // `ring_offset` (bytes from the start of the region) and `name` are for
  // messages. Once `is_released` others may write to the ring, so that
  // delivered records are in doubt (Aborted). `is_released` and `table` must
  // outlive the source.
  RecoveredSource(const Ring& ring, uint64_t ring_offset,
                  const EpochTable& table, const LogPosition& head,
                  const LogPosition& read_from, Lsn end_lsn,
                  const std::atomic<bool>& is_released, std::string name);

  bool Next(RecoveredRecord* record) override;
  absl::Status status() const override { return status_; }
  absl::Status ForEach(
      const std::function<absl::Status(const RecoveredRecord&)>& visit)
      override;

 private:
  // Returns the cursor that reads the next record.
  RecordCursor& Current() {
    return unread_.position().lsn < read_from_.lsn ? unread_ : cursor_;
  }
  absl::Status Unreadable(const LogPosition& at) const;
  // Checks that the unread records lead to those that the opening read.
  absl::Status CheckJoint() const;
  bool IsReleased();

  const LogPosition read_from_;
  RecordCursor unread_;  // up to read_from_; checks payloads
  RecordCursor cursor_;
  const Ring ring_;
  const uint64_t ring_offset_;
  const Lsn end_lsn_;
  const std::atomic<bool>& is_released_;
  const std::string name_;
  absl::Status status_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_RECOVERED_SOURCE_H_
