// SPDX-License-Identifier: Apache-2.0
// ring_scrub: verifies the records of one replica, in slices, and says where
// bytes are damaged.
//
// Idea: from the head to a last record that this replica once persisted nothing
// may be unreadable: what can't be read there is damage, and no torn end. The
// walk stops at each place that is damaged; whoever repairs it lets the walk
// look again (GoBack), or passes over it. The head may move on meanwhile: what
// it has passed is looked at no more, and is no finding.
//
// Invariants:
//   RSC1. Nothing behind the last record is looked at as a record of this log:
//         its bytes may be under way.
//   RSC2. A finding lies between the head that was last told and the last
//         record.
//   RSC3. The place and the chain of each epoch's start are those of the table,
//         unless an unreadable record before it broke the chain.
// Thread safety: one thread; others may write behind the last record.
// References: protocol P-A3.5, P-A8;
// docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_RECOVERY_RING_SCRUB_H_
#define ALPHEUS_RECOVERY_RING_SCRUB_H_

#include <cstdint>

#include "log/base/ids.h"
#include "log/core/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"

namespace alpheus {

enum class RingDamage {
  kHeaders,      // of one record or more, which have no length then
  kPayload,      // of one record, whose header holds
  kPad,          // beside a record that holds
  kCleanedWord,  // neither 0 nor the one that means "cleaned"
  kChain,        // an epoch starts elsewhere than the records before it end
};

struct ScrubFinding {
  RingDamage kind = RingDamage::kHeaders;
  LogPosition at;         // of the first damaged record, or of its PAD
  Lsn end_lsn;            // behind the last one
  RingOffset end_offset;  // what begins here is not damaged, or not looked at
  RingOffset record;      // its header, of a kind that has one that holds

  uint64_t records() const { return end_lsn - at.lsn; }
};

class RingScrub {
 public:
  enum class Step { kMore, kFinding, kDone };

  // The records from `head` to `last`, which this replica has persisted.
  RingScrub(Ring ring, EpochTable table, const LogPosition& head, Lsn last);
  RingScrub(const RingScrub&) = delete;
  RingScrub& operator=(const RingScrub&) = delete;

  // The head has moved on, or has not. A finding that it has passed is none any
  // more: false then, and the walk goes on at the head.
  bool MoveHead(const LogPosition& head);

  // Looks at so many bytes of the ring more; at one record or line at least.
  // Requires: there is no finding.
  Step Continue(uint64_t bytes_max);

  bool has_finding() const { return has_finding_; }
  const ScrubFinding& finding() const { return finding_; }
  // Looks at it again, as it was repaired; or leaves it as it is.
  void GoBack();
  void PassOver();

  const Ring& ring() const { return ring_; }
  const EpochTable& table() const { return table_; }
  const LogPosition& position() const { return cursor_.position(); }
  Lsn last() const { return last_; }
  // Verified.
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
  bool in_hole_ = false;  // while the next header that holds is looked for
  RingOffset hole_at_;
  bool has_finding_ = false;
  ScrubFinding finding_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_RING_SCRUB_H_
