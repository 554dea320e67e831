// SPDX-License-Identifier: Apache-2.0
// ring_scrub: verifies the records of one replica, in slices, and finds damaged
// bytes.
//
// Idea: the caller names a last record that this replica has persisted. Between
// the head and it, every record must be readable: what is not is damage, and
// never a torn end. The walk stops at each damaged place. The caller repairs it
// and lets the walk read it again (GoBack), or passes over it (PassOver). The
// head may move meanwhile: places that it has passed are read no more, and are
// no finding.
//
// Invariants:
//   RSC1. Bytes after the last record are not taken for a record of this log:
//         they may be in flight.
//   RSC2. A finding lies between the head of the last MoveHead (or of the
//         constructor) and the last record.
//   RSC3. Place and chain of each epoch's start are those of the table, unless
//         an unreadable record before it broke the chain.
// Thread safety: one thread; others may write after the last record.
// References: protocol P-A3.5, P-A8;
// docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_RECOVERY_SCRUB_RING_SCRUB_H_
#define ALPHEUS_RECOVERY_SCRUB_RING_SCRUB_H_

#include <cstdint>

#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"

namespace alpheus::recovery {

enum class RingDamage {
  kHeaders,      // of one or more records, whose lengths are unknown
  kPayload,      // of one record, whose header holds
  kPad,          // beside a record that holds
  kCleanedWord,  // neither 0 nor the one that means "cleaned"
  kChain,        // an epoch starts elsewhere than the records before it end
};

struct ScrubFinding {
  RingDamage kind = RingDamage::kHeaders;
  LogPosition at;         // of the first damaged record, or of its PAD
  Lsn end_lsn;            // one past the last damaged record
  RingOffset end_offset;  // end of the damage, as far as was read
  RingOffset record;      // its header, for kinds in which that holds

  uint64_t records() const { return end_lsn - at.lsn; }
};

class RingScrub {
 public:
  enum class Step { kMore, kFinding, kDone };

  // Verifies the records from `head` to `last`, which this replica has
  // persisted.
  RingScrub(Ring ring, EpochTable table, const LogPosition& head, Lsn last);
  RingScrub(const RingScrub&) = delete;
  RingScrub& operator=(const RingScrub&) = delete;

  // Notes the present head. Returns false if it has passed the finding, which
  // is then none: the walk continues at the head.
  bool MoveHead(const LogPosition& head);

  // Reads `bytes_max` more bytes of the ring, at least one record or line.
  // Requires: there is no finding.
  Step Continue(uint64_t bytes_max);

  bool has_finding() const { return has_finding_; }
  const ScrubFinding& finding() const { return finding_; }
  // GoBack reads the place again, as it was repaired; PassOver leaves it as it
  // is.
  void GoBack();
  void PassOver();

  const Ring& ring() const { return ring_; }
  const EpochTable& table() const { return table_; }
  const LogPosition& position() const { return cursor_.position(); }
  Lsn last() const { return last_; }
  // Records and bytes verified.
  uint64_t records() const { return records_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Step Walk(RingOffset until);
  bool WalkPlain(RingOffset until);
  Step SkipHole(RingOffset until);
  bool LeadsToTheStart();
  Step Found(RingDamage kind, const LogPosition& at, RingOffset record);
  void Count(const RecordView& record);

  const Ring ring_;
  const EpochTable table_;
  const Lsn last_;
  const RingOffset limit_;
  RecordCursor cursor_;
  bool is_chained_ = true;  // the position's chain is known
  uint64_t records_ = 0;
  uint64_t bytes_ = 0;
  bool in_hole_ = false;  // while it searches for the next valid header
  RingOffset hole_at_;
  bool has_finding_ = false;
  ScrubFinding finding_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SCRUB_RING_SCRUB_H_
