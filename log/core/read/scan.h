// SPDX-License-Identifier: Apache-2.0
// scan: finds the end of a log and judges it.
//
// Idea: the log has no tail pointer, so it ends where the first record can't be
// read. But a media error looks the same. So the scan looks for a proof that
// the record was once persisted here. The proofs are the watermark, the durable
// LSN in the header of any later record, and the start of the installed epoch
// (installing it persisted all records before).
// If the record is *proven* so, it is *corrupt*, and the log is not shown. If
// it is not proven, it is *torn* (or was never written), and the log ends
// before it. The proof comes a little after the acknowledgement. So in the last
// batch before a crash a damaged record counts as torn, too; nowhere else does
// a log become shorter in silence (P-C6).
//
// An opening need not read all of that (region_state.h). It may start at a
// record after the head, if all up to that one are proven. It need not search
// for later records after the ceiling, where none was ever written.
//
// Invariants:
//   SC1. The kept records are an unbroken run of LSNs from the start on.
//   SC2. A record at or below proven_lsn that can't be read is corrupt (P-H9).
//   SC3. A log whose first record can't be read is empty only if nothing proves
//        a record (P-H10).
//   SC4. Where start and ceiling say the truth, end, verdict and cut records
//        are those of a scan of the whole ring, if that can read every record
//        before the start.
//   SC5. Let the start be after the head, and the record there proven. If a
//        fault in one run of bytes took records before it, and others that
//        nothing proves, the log is corrupt, as a scan of the whole ring finds.
//        Reason: either way round the ring, that run has the record at the
//        start or the header at the head, and both are read.
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
  kTorn,      // it ends before a broken record that is not proven
  kCorrupt,   // a record that is proven can't be read
};

// "complete", "torn" or "corrupt".
const char* TailVerdictName(TailVerdict verdict);

// PAD that can't be read, beside a record that can; to be rewritten.
struct DamagedPad {
  Lsn next_lsn;
  RingOffset offset;
};

struct ScanResult {
  LogPosition end;  // after the last record that is kept
  LogPosition last{Lsn(0), RingOffset(0)};  // before it; LSN 0 if none is kept
  TailVerdict verdict = TailVerdict::kComplete;

  // Counts of the records that were read, from the scan's start on.
  uint64_t data_records = 0;     // kept, not cleaned, not aborted
  uint64_t cleaned_records = 0;  // kept
  uint64_t aborted_records = 0;  // kept
  uint64_t payload_bytes = 0;    // of data_records
  std::vector<DamagedPad> damaged_pads;

  // Highest LSN that is proven persisted here, by the region's evidence
  // (ScanInput) and by headers.
  Lsn proven_lsn;
  // Highest LSN that a header names as durable: W replicas had persisted it.
  Lsn named_durable_lsn;
  // Record at `end`, unless the verdict is kComplete.
  bool bad_payload = false;  // its header holds, its payload does not
  uint64_t bad_bytes = 0;    // size in the ring; 0 if unknown
  // Records after `end` whose headers hold: completed, and cut with it.
  uint64_t cut_records = 0;
  Lsn cut_last_lsn;
};

struct ScanInput {
  Ring ring;
  // File that holds the ring from byte `ring_begin` on; none if it is in no
  // file.
  FileView file;
  uint64_t ring_begin = 0;  // bytes
  const EpochTable* table = nullptr;
  LogPosition head;
  LogPosition start;   // where reading begins; the head or after it
  RingOffset ceiling;  // where the search for later records ends
  // Highest LSN proven by the watermark and the installed epoch (RegionState).
  Lsn proven_lsn;
};

// Scans from the start; calls `visit` with each kept record in LSN order
// (cleaned and aborted ones included) and the position before it.
using ScanVisitor =
    absl::FunctionRef<void(const LogPosition& before, const RecordView&)>;
ScanResult ScanLog(const ScanInput& input, ScanVisitor visit);
ScanResult ScanLog(const ScanInput& input);
// Scans, and notes positions in `index`.
ScanResult ScanLog(const ScanInput& input, LsnIndex* index);

// Returns true if the header of the record at the head can be read (SC5).
bool HeadIsReadable(const ScanInput& input);

// Returns the position of the first record after `from` whose header holds,
// with an LSN above `from.lsn`; LSN 0 if there is none. For salvage.
LogPosition FindRecordAfter(const ScanInput& input, LogPosition from);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_READ_SCAN_H_
