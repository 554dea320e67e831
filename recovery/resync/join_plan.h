// SPDX-License-Identifier: Apache-2.0
// join_plan: what a replica needs before it can follow an epoch that is open.
//
// Idea: the primary's own ring holds the whole log from the head on, so the
// replica is compared with it, record by record; what is the same stays, the
// rest is copied. Where this ends depends on how far the replica's own word
// reaches. One of an earlier epoch installs the log as the epoch began with it.
// One of this epoch keeps what it has without a gap, and what it has said to
// have is copied. All that comes behind the session brings, at its pace, as to
// any backup that is behind; live records with it.
//
// Invariants:
//   JP0. Only a member joins: node and incarnation are in the configuration of
//        the log, whatever the replica's own says. A blank one is a change of
//        members.
//   JP1. All records from the head to next are those of the primary's ring, and
//        the replica has them or they are copied.
//   JP2. next is behind all that the replica may have acknowledged in this
//        epoch: behind what it proves, and, if it knows nothing, behind what is
//        durable.
//   JP3. `repairing` is set first if, and only if, records of an earlier epoch
//        that are valid under the replica's own table are overwritten by
//        something else (RPL1 of repair_plan.h). A replica of this epoch is
//        never marked, since its acknowledgements count: what it knows is
//        overwritten by the same bytes only, because places that it proves it
//        has reused before, and what knows nothing is marked already.
//   JP4. A replica joins without records behind next that are durable. That is
//        the state of any backup that is behind: it says nothing of them, and
//        W others hold them.
// Thread safety: one thread.
// References: protocol P-A5, P-H12.
#ifndef ALPHEUS_RECOVERY_RESYNC_JOIN_PLAN_H_
#define ALPHEUS_RECOVERY_RESYNC_JOIN_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "recovery/opening/copy_ranges.h"
#include "recovery/opening/extents.h"
#include "recovery/protocol/answer.h"

namespace alpheus {

// The epoch that is open, and its log as it is when a replica joins.
struct RunningEpoch {
  Configuration configuration;
  Epoch epoch;
  EpochTable table;   // ends with the epoch
  LogPosition start;  // of the epoch
  LogPosition head;
  RingEnd finished;
  Lsn durable_lsn;
};

struct JoinPlan {
  std::vector<CopyRange> copies;  // all of the primary's own ring
  uint64_t records = 0;           // that they hold
  bool set_repairing = false;     // before any copy
  LogPosition next;               // behind what is installed
};

// JP0, and that the replica has the log's ring. Errors: FailedPrecondition.
absl::Status CheckJoins(const RunningEpoch& running, uint64_t ring_capacity,
                        const Answer& answer);

class JoinPlanner {
 public:
  // `ring` is the primary's, whose bytes from the head to the last finished
  // record stay as they are until the copies are done. Requires: CheckJoins.
  JoinPlanner(Ring ring, RunningEpoch running, Answer answer);
  JoinPlanner(const JoinPlanner&) = delete;
  JoinPlanner& operator=(const JoinPlanner&) = delete;

  // Looks at so many bytes of the ring more, one record at least. True: plan()
  // is there. Errors: DataLoss (the own ring can't be read; the replica says to
  // have what this primary has not written).
  absl::StatusOr<bool> Continue(uint64_t bytes_max);
  const JoinPlan& plan() const { return plan_; }
  const RunningEpoch& running() const { return running_; }

 private:
  bool is_of_this_epoch() const { return answer_.log_epoch == running_.epoch; }
  // The last LSN that the replica must have before it follows.
  Lsn MustHave() const;
  bool EndsBefore(Lsn lsn, bool has) const;
  void Copy(RingOffset begin, const RecordView& record);
  void Keep(Lsn lsn);
  std::vector<Extent> ValidOthers() const;
  bool OverwritesValid() const;
  void Finish();

  const Ring ring_;
  const RunningEpoch running_;
  const Answer answer_;
  RecordCursor cursor_;
  VerdictReader verdicts_;
  std::vector<VerdictRun> kept_;  // the replica's records that are the same
  std::vector<Extent> written_;
  JoinPlan plan_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_RESYNC_JOIN_PLAN_H_
