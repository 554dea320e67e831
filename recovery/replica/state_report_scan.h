// SPDX-License-Identifier: Apache-2.0
// state_report_scan: reads a replica's ring for its state report, in slices.
//
// Idea: a scan begins at the proven place and ends at the ceiling (P-A3.7). One
// of several GiB takes seconds all the same, and its thread has other logs to
// serve. The state of the scan is in the object, so that the caller may stop
// and continue it anywhere.
//
// Invariants:
//   SSC1. The report does not depend on the slices.
//   SSC2. A report that begins after the head names a proven record first, and
//         the header at the head could be read. So one contiguous fault that
//         takes unproven records together with others also takes a record that
//         is read: the report says corrupt, never that the log ends there (SC5
//         of scan.h).
//   SSC3. Nothing at or after the ceiling is read (P-A3.7).
// Thread safety: one thread.
// References: protocol P-A4.3, P-H9, P-H10; state_report.h.
#ifndef ALPHEUS_RECOVERY_REPLICA_STATE_REPORT_SCAN_H_
#define ALPHEUS_RECOVERY_REPLICA_STATE_REPORT_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "log/core/read/record_cursor.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

struct StateReportOptions {
  // The medium may have lost what was persisted: its unsafe-shutdown count
  // grew.
  bool suspect = false;
  // See OpeningScanOf (region_state.h).
  uint64_t read_whole_bytes_max = kReadWholeBytesMax;
};

class StateReportScan {
 public:
  // `state` is that of the region. Requires: everything visible was persisted
  // before (P-H7), and no session of an earlier promise can write any more
  // (P-H6). The report then stays true until a session of the ballot writes.
  StateReportScan(std::span<std::byte> region, const RegionState& state,
                  const StateReportOptions& options);
  StateReportScan(const StateReportScan&) = delete;
  StateReportScan& operator=(const StateReportScan&) = delete;

  // Reads `bytes_max` more bytes of the ring, and at least one whole record or
  // line. Returns true once the report is complete.
  bool Continue(uint64_t bytes_max);
  // Returns the report. Call it once, after Continue returned true.
  StateReport Take() { return std::move(report_); }

  // Range of the ring that is read, for who persists it before. The end is a
  // lap after the head at most.
  RingOffset begin() const { return input_.start.offset; }
  RingOffset end() const { return end_; }
  // Number of bytes of the ring that the scan has looked at.
  uint64_t bytes_read() const;

 private:
  bool WalkRecords(RingOffset until);
  bool SkipHole(RingOffset until);
  bool LooksTorn() const;

  const RegionState state_;
  const ScanInput input_;
  const RingOffset end_;  // the ceiling
  RecordCursor cursor_;
  StateReport report_;
  bool is_done_ = false;
  // Set while the scan searches for the next valid header.
  bool in_hole_ = false;
  RingOffset hole_at_;
};

// Scans at once.
StateReport ReportOfRegion(std::span<std::byte> region,
                           const RegionState& state,
                           const StateReportOptions& options);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_REPLICA_STATE_REPORT_SCAN_H_
