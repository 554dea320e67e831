// SPDX-License-Identifier: Apache-2.0
// answer: what one replica says of its log to the primary of one ballot.
//
// Idea: recovery chooses from what replicas *know*, and not knowing is an
// answer of its own. A record that can't be read is *torn* if nobody can have
// been told that it is there, and *corrupt* if somebody was; a replica whose
// medium may have lost what it acknowledged knows nothing. Verdicts are kept
// in runs, so that a whole log is one run and a flat vector of records.
//
// Invariants:
//   AN1. Runs are sorted, disjoint and unbroken from head.lsn on; behind the
//        last one everything is absent.
//   AN2. A replica that is blank, suspect or repairing answers unknown of every
//        LSN (P-H12, P-H16, P-H25).
//   AN3. What is at or below proven_lsn is never torn nor absent (P-INV-9).
// Thread safety: values and pure functions.
// References: protocol P-A4.3, P-H9, P-H10, P-H12, P-H16, P-H25; answer_scan.h.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_ANSWER_H_
#define ALPHEUS_RECOVERY_PROTOCOL_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"

namespace alpheus {

enum class Verdict : uint8_t {
  kHave,     // header and payload hold under the replica's own table
  kTorn,     // something is there, and nobody was told of it
  kAbsent,   // nothing is there
  kCorrupt,  // it was acknowledged and can't be read: never a nack
  kUnknown,  // the replica can't say: never a nack (but see chooser.h)
};

// "have", "torn", "absent", "corrupt" or "unknown".
const char* VerdictName(Verdict verdict);

// A record that a replica has; with its LSN its identity.
struct HeldRecord {
  Epoch epoch;
  RingOffset offset;  // of the header
  uint32_t header_checksum = 0;
  uint32_t lines = 0;  // in the ring, header included

  RingOffset end() const { return offset + lines * kLineBytes; }
  bool operator==(const HeldRecord&) const = default;
};
static_assert(sizeof(HeldRecord) == 24);

// Behind every LSN.
inline constexpr Lsn kEndOfLsns(std::numeric_limits<uint64_t>::max());

struct VerdictRun {
  Lsn first;
  Lsn end;  // behind the last one
  Verdict verdict = Verdict::kAbsent;
  size_t held = 0;  // of a have: index of the first one in Answer::held

  bool operator==(const VerdictRun&) const = default;
};

struct Answer {
  NodeId node;
  uint64_t incarnation = 0;
  Configuration configuration;
  uint64_t ring_capacity = 0;  // bytes
  Epoch log_epoch;             // what ranks logs
  Epoch promised_before;       // before this ballot; ranks nothing (P-H4)
  EpochTable table;
  LogPosition head;
  // Of the log epoch: up to here records were persisted and acknowledged. From
  // the watermark, the start of the log epoch and later records.
  Lsn proven_lsn;

  bool blank = false;      // the configuration doesn't name the incarnation
  bool suspect = false;    // the medium may have lost persisted bytes
  bool repairing = false;  // a destructive repair was cut off

  std::vector<VerdictRun> runs;
  std::vector<HeldRecord> held;

  bool knows() const { return !blank && !suspect && !repairing; }
};

// Adds the next LSNs behind the last run, or to it.
void AddVerdict(Answer* answer, Verdict verdict, uint64_t count = 1);
void AddHeld(Answer* answer, const HeldRecord& record);

// Reads verdicts of one answer at LSNs that never decrease, each in amortised
// constant time.
class VerdictReader {
 public:
  // `answer` must outlive the reader.
  explicit VerdictReader(const Answer& answer) : answer_(&answer) {}

  struct Seen {
    Verdict verdict = Verdict::kUnknown;
    const HeldRecord* record = nullptr;  // of a have
    Lsn end;  // behind the last LSN that lies in the same run
  };
  // What counts of the answer at `lsn`: whatever its runs say, AN2 and AN3 hold
  // of it, since an answer may come from a program of another version.
  Seen At(Lsn lsn);

 private:
  const Answer* answer_;
  size_t run_ = 0;
};

// Whether the configuration names another incarnation than this one.
bool IsBlank(const Superline& superline);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_PROTOCOL_ANSWER_H_
