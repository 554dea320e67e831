// SPDX-License-Identifier: Apache-2.0
// join_plan: the repairs that a replica needs before it can follow an open
// epoch.
//
// Idea: the primary's own ring holds the whole log from the head on, so the
// replica is compared with it, record by record, from the place up to which the
// replica says that it has the same (SharedPlace of state_report.h). Equal
// records stay, the others are copied. The end of the comparison depends on
// what the replica knows. A replica of an earlier epoch installs the log as the
// epoch began. A replica of this epoch keeps what it has without a gap, and
// gets what it said to have. The session brings all later records, live ones
// included, at its own pace, as to any backup that is behind.
//
// Invariants:
//   JP1. All records from the head to `next` are those of the primary's ring;
//        the replica has them or they are copied. Those before the shared place
//        are not compared: an epoch has one record at an LSN, and the replica
//        walked its own.
//   JP2. `next` is after all that the replica may have acknowledged in this
//        epoch: after what it proves and, if it knows nothing, after what is
//        durable.
//   JP3. `repairing` is set first if, and only if, valid records of an earlier
//        epoch will be overwritten by other bytes (RPL1 of repair_plan.h;
//        valid: under the replica's own table). A replica of this epoch is
//        never marked here, since its acknowledgements count:
//        * If it knows what it has, the copies end at what it proves in this
//          epoch. It wrote these places in this epoch already, so a valid
//          record there is overwritten by equal bytes only.
//        * If it knows nothing, it is marked already.
//   JP4. A replica may join without durable records at or after `next`, like
//        any backup that is behind. It says nothing of them, and W others hold
//        them.
//   JP5. Only a member joins: node and incarnation are in the configuration of
//        the log, whatever the replica's own says. Adding a blank replica is a
//        change of members.
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
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// The open epoch, and its log at the moment at which a replica joins.
struct RunningEpoch {
  Configuration configuration;
  Epoch epoch;
  EpochTable table;   // ends with the epoch
  LogPosition start;  // where the epoch starts
  LogPosition head;
  RingEnd finished;
  Lsn durable_lsn;
};

struct JoinPlan {
  std::vector<CopyRange> copies;  // copied from the primary's own ring
  uint64_t records = 0;           // number of records in `copies`
  bool set_repairing = false;     // before any copy
  RingOffset written_end;         // end of the last copy; 0 without copies
  LogPosition next;               // one past what is installed
};

// Checks JP5, and that the replica has a ring of the log's capacity. Errors:
// FailedPrecondition.
absl::Status CheckJoins(const RunningEpoch& running, uint64_t ring_capacity,
                        const StateReport& report);

class JoinPlanner {
 public:
  // `ring` is the primary's. Its bytes from the head to the last finished
  // record must not change until the copies are done. Requires: CheckJoins.
  JoinPlanner(Ring ring, RunningEpoch running, StateReport report);
  JoinPlanner(const JoinPlanner&) = delete;
  JoinPlanner& operator=(const JoinPlanner&) = delete;

  // Compares `bytes_max` more bytes of the ring, one record at least. Returns
  // true once plan() is complete. Errors: DataLoss (the own ring can't be read;
  // the replica claims records that this primary did not write).
  absl::StatusOr<bool> Continue(uint64_t bytes_max);
  const JoinPlan& plan() const { return plan_; }
  const RunningEpoch& running() const { return running_; }

 private:
  bool is_of_this_epoch() const { return report_.log_epoch == running_.epoch; }
  LogPosition Shared() const;
  void KeepShared();
  void AddUnnamedOthers(std::vector<Extent>* valid) const;
  // Returns the last LSN that the replica must have before it follows.
  Lsn MustHave() const;
  bool EndsBefore(Lsn lsn, bool has) const;
  void Copy(RingOffset begin, const RecordView& record);
  absl::Status Unreadable(const LogPosition& at) const;
  void Keep(Lsn lsn);
  std::vector<Extent> ValidOthers() const;
  bool OverwritesValid() const;
  void Finish();

  const Ring ring_;
  const RunningEpoch running_;
  const StateReport report_;
  const LogPosition shared_;
  RecordCursor cursor_;
  VerdictReader verdicts_;
  std::vector<VerdictRun> kept_;  // replica's records that equal the primary's
  std::vector<Extent> written_;
  JoinPlan plan_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_RESYNC_JOIN_PLAN_H_
