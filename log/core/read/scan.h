// SPDX-License-Identifier: Apache-2.0
// scan: finds the end of a log and says what the end is.
//
// Idea: the log has no tail pointer, so its end is where the first record
// can't be read; but a bad record is also what a media error looks like. The
// scan therefore gathers evidence that the record was once persisted: the
// watermark, the durable LSN in the header of any record further on, and the
// start of the epoch that is installed. With evidence the record is *corrupt*
// and the log is not shown; without it the record is *torn* (or was never
// written) and the log ends before it. Never a silently shorter log (P-C6).
//
// Invariants:
//   SC1. The kept records are an unbroken run of LSNs from the head.
//   SC2. A record at or below proven_lsn that can't be read is corrupt (P-H9).
//   SC3. A log whose first record can't be read is empty only if nothing proves
//        a record (P-H10).
// Thread safety: pure.
// References: protocol P-A3.5, P-A4.3, P-H9 to P-H11; docs/formats/log.md#scan.
#ifndef ALPHEUS_LOG_CORE_READ_SCAN_H_
#define ALPHEUS_LOG_CORE_READ_SCAN_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "log/core/read/lsn_index.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/pmem/file_view.h"

namespace alpheus {

enum class TailVerdict {
  kComplete,  // the log ends where nothing was written after it
  kTorn,      // it ends before a record that was never acknowledged
  kCorrupt,   // a record that was acknowledged can't be read
};

// "complete", "torn" or "corrupt".
const char* TailVerdictName(TailVerdict verdict);

// A PAD that can't be read beside a record that can; to be written anew.
struct DamagedPad {
  Lsn next_lsn;
  RingOffset offset;
};

struct ScanResult {
  LogPosition end;  // behind the last record that is kept
  TailVerdict verdict = TailVerdict::kComplete;

  uint64_t data_records = 0;     // kept, not cleaned, not aborted
  uint64_t cleaned_records = 0;  // kept
  uint64_t aborted_records = 0;  // kept
  uint64_t payload_bytes = 0;    // of data_records
  std::vector<DamagedPad> damaged_pads;

  // Highest LSN that is proven to have been persisted here: what the region
  // proves, and what headers name.
  Lsn proven_lsn;
  // Highest LSN that a header names as durable: W replicas had persisted it.
  Lsn named_durable_lsn;
  // Of the record at `end`, when the verdict is not kComplete.
  bool bad_payload = false;  // its header holds: the payload is what is bad
  uint64_t bad_bytes = 0;    // in the ring; 0 if the length is unknown
  // Records behind it whose headers hold: completed, and cut off with it.
  uint64_t cut_records = 0;
  Lsn cut_last_lsn;
};

struct ScanInput {
  Ring ring;
  // The ring once more, if it lies in a file, from there on.
  FileView file;
  uint64_t ring_begin = 0;  // bytes
  const EpochTable* table = nullptr;
  LogPosition head;
  // From the watermark and the installed epoch (RegionState).
  Lsn proven_lsn;
};

// Scans from the head; calls `visit` with each kept record in LSN order
// (cleaned and aborted ones included) and the position before it.
using ScanVisitor =
    absl::FunctionRef<void(const LogPosition& before, const RecordView&)>;
ScanResult ScanLog(const ScanInput& input, ScanVisitor visit);
ScanResult ScanLog(const ScanInput& input);
// Notes positions on its way.
ScanResult ScanLog(const ScanInput& input, LsnIndex* index);

// The first record behind `from` whose header holds, LSN above `from.lsn`; its
// position, or one with LSN 0 if there is none. For salvage.
LogPosition FindRecordBehind(const ScanInput& input, LogPosition from);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_READ_SCAN_H_
