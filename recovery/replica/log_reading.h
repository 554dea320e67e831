// SPDX-License-Identifier: Apache-2.0
// log_reading: reads all records of a log that is about to be installed, in
// slices.
//
// Idea: a replica installs only what it has read itself. Each record must be
// there with its payload, each epoch must start where the table says, and the
// log must end at its place. Records that it read when they arrived, and has
// proven since, are not read again; the chain at the end says that they are of
// this log.
// The caller may stop the reading and continue it anywhere, as it may a
// StateReportScan.
//
// Thread safety: one thread.
// References: protocol P-A4.5; REP3 of local_replica.h.
#ifndef ALPHEUS_RECOVERY_REPLICA_LOG_READING_H_
#define ALPHEUS_RECOVERY_REPLICA_LOG_READING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/read/lsn_index.h"
#include "log/core/read/record_cursor.h"
#include "log/core/read/scan.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/watermark.h"
#include "recovery/protocol/installation.h"

namespace alpheus::recovery {

// Returns "LSN 3 at offset 128 with chain 0x1".
std::string DescribePosition(const LogPosition& position);

class LogReading {
 public:
  // Reads the log of `installation` in `ring`, which begins `ring_offset` bytes
  // after the start of region `name`, from `start` on: the head or a place
  // after it. The installation's table has the keys of the log, and must
  // outlive the object.
  LogReading(std::string name, Ring ring, uint64_t ring_offset,
             const Installation& installation, const LogPosition& start);
  LogReading(const LogReading&) = delete;
  LogReading& operator=(const LogReading&) = delete;

  // Reads `bytes_max` more bytes of the ring, and at least one whole record.
  // Returns true once all of the log was read. Errors: DataLoss (LSN, offset: a
  // record is not there, or the chain differs).
  absl::StatusOr<bool> Continue(uint64_t bytes_max);

  const LogPosition& start() const { return start_; }
  // Those below are complete once Continue has returned true.
  // Place of the last record; zeros if none was read.
  const WatermarkPlace& last() const { return last_; }
  const std::shared_ptr<LsnIndex>& index() const { return index_; }
  const std::vector<DamagedPad>& damaged_pads() const { return damaged_pads_; }

 private:
  // Checks the epoch that starts at `at`, if one does.
  absl::Status CheckStart(const LogPosition& at) const;
  absl::Status CheckEnd(const LogPosition& at) const;
  absl::Status Unreadable(const LogPosition& at) const;

  const std::string name_;
  const Ring ring_;
  const uint64_t ring_offset_;
  const Installation& installation_;
  const LogPosition start_;
  RecordCursor cursor_;
  WatermarkPlace last_;
  std::shared_ptr<LsnIndex> index_;
  std::vector<DamagedPad> damaged_pads_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_REPLICA_LOG_READING_H_
