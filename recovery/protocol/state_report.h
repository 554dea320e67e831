// SPDX-License-Identifier: Apache-2.0
// state_report: the state report of one replica's log to the primary of one
// ballot.
//
// Idea: recovery chooses from what replicas *know*, and *unknown* is a verdict
// of its own. An unreadable record is *corrupt* if it is proven (watermark.h),
// and else *torn*: it was not persisted here, or it was damaged before anything
// proved it (scan.h). A replica whose medium may have lost persisted bytes
// knows nothing. Verdicts are kept in runs, so that a whole log is one run and
// a flat vector of records.
//
// A replica has walked and persisted its records long before anybody asks. So
// it reads, and reports one by one, only what lies after its proven place
// (P-A3.7); of what lies before, the place says enough (chooser.h).
//
// Invariants:
//   STR1. Runs are sorted, disjoint and unbroken from start() on; after the
//         last run everything is absent.
//   STR2. A replica that is blank, suspect or repairing reports unknown for
//         every LSN (P-H12, P-H16, P-H25).
//   STR3. No LSN up to proven_lsn is torn or absent (P-INV-9).
//   STR4. From the head to start() the replica has each record, of the epoch
//         that owns it in the replica's own table, with the chain of start().
//         It was walked and persisted, but not read again for the report. The
//         record at a start() after the head is proven.
// Thread safety: values and pure functions.
// References: protocol P-A4.3, P-H9, P-H10, P-H12, P-H16, P-H25;
// state_report_scan.h.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_STATE_REPORT_H_
#define ALPHEUS_RECOVERY_PROTOCOL_STATE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"

namespace alpheus::recovery {

enum class Verdict : uint8_t {
  kHave,     // header and payload hold under the replica's own table
  kTorn,     // a broken record that is not proven
  kAbsent,   // nothing is there, and nothing is proven
  kCorrupt,  // proven, and can't be read: never a nack
  kUnknown,  // the replica can't say: never a nack (but see chooser.h)
};

// Returns "have", "torn", "absent", "corrupt" or "unknown".
const char* VerdictName(Verdict verdict);

// A record that a replica has: with the LSN, its identity.
struct ReportedRecord {
  Epoch epoch;
  RingOffset offset;  // place of the header
  uint32_t header_checksum = 0;
  uint32_t lines = 0;  // in the ring, header included

  RingOffset end() const { return offset + lines * kLineBytes; }
  bool operator==(const ReportedRecord&) const = default;
};
static_assert(sizeof(ReportedRecord) == 24);

// Greater than every LSN.
inline constexpr Lsn kEndOfLsns(std::numeric_limits<uint64_t>::max());

struct VerdictRun {
  Lsn first;
  Lsn end;  // one past the last
  Verdict verdict = Verdict::kAbsent;
  size_t first_record =
      0;  // for kHave: index of `first` in StateReport::records

  bool operator==(const VerdictRun&) const = default;
};

struct StateReport {
  NodeId node;
  uint64_t incarnation = 0;
  Configuration configuration;
  uint64_t ring_capacity = 0;  // bytes
  Epoch log_epoch;             // ranks the log
  // The promise before this ballot's; ranks nothing (P-H4).
  Epoch promised_before;
  EpochTable table;
  LogPosition head;
  // Proven place, after the head; none: the head is (STR4).
  std::optional<LogPosition> place = std::nullopt;
  // Last LSN that is proven: by the watermark, the start of the log epoch, or
  // the header of a later record.
  Lsn proven_lsn;

  bool blank = false;      // `configuration`, its own, does not name it
  bool suspect = false;    // the medium may have lost persisted bytes
  bool repairing = false;  // a destructive repair was cut off

  std::vector<VerdictRun> runs;
  std::vector<ReportedRecord> records;

  bool knows() const { return !blank && !suspect && !repairing; }
  // Returns where the runs begin.
  const LogPosition& start() const { return place ? *place : head; }
};

// Both add the next LSNs, to the last run or as a new one.
void AddVerdict(StateReport* report, Verdict verdict, uint64_t count = 1);
void AddRecord(StateReport* report, const ReportedRecord& record);

// Reads verdicts of one report at LSNs that never decrease, each in amortised
// constant time.
class VerdictReader {
 public:
  // `report` must outlive the reader.
  explicit VerdictReader(const StateReport& report) : report_(&report) {}

  struct Seen {
    Verdict verdict = Verdict::kUnknown;
    const ReportedRecord* record = nullptr;  // for kHave, from start() on
    Epoch epoch;                             // of a record that the replica has
    Lsn end;  // one past the last LSN of the same run, and of its owner
  };
  // Returns what counts of the report at `lsn`. STR2 and STR3 hold of it
  // whatever the runs say, since a program of another version may have sent
  // them.
  Seen At(Lsn lsn);

 private:
  const StateReport* report_;
  size_t run_ = 0;
};

// Returns the record that the report names at `lsn`; nullptr if there is none.
const ReportedRecord* FindRecord(const StateReport& report, Lsn lsn);

// Returns the last place up to which the replica's records are those of the log
// with this table, as far as its own table and proven place say: `place`, or
// where the owners of LSNs begin to differ. Searches from `from` on; returns
// `from` if the place is not after it, or if the owners differ from there on.
// Requires: `from` is a place of both logs.
LogPosition SharedPlace(const EpochTable& own, const LogPosition& place,
                        const EpochTable& table, const LogPosition& from);

// Returns true if the configuration names another incarnation than this one.
bool IsBlank(const Superline& superline);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_STATE_REPORT_H_
