// SPDX-License-Identifier: Apache-2.0
// repair_plan: the repairs that each replica needs before it holds the chosen
// log.
//
// Idea: a replica that only lacks records is *extended*. If that is cut off,
// the replica still has all that it had. A replica that holds other records
// where chosen ones go is repaired *destructively*. Between the first byte and
// the superline it then holds neither log; `repairing` says so (P-H12).
// Extensions come first, so that W replicas hold the chosen log before any
// other is overwritten, if there are that many.
//
// Invariants:
//   RPL1. `repairing` is set first if, and only if, a byte of a record that is
//         valid under the replica's own table will be overwritten by something
//         else. Gaps, torn and corrupt places, and records beyond the chosen
//         end need no flag. A suspect replica is taken to hold records
//         everywhere, as nothing is known of it.
//   RPL2. A destructive repair waits for W installed replicas, unless it is
//         needed to reach W. It always waits for one (PLR2 of plan_runner.h).
//   RPL3. A blank replica is repaired only if the configuration that is
//         installed names it. Its repair comes last, after a quorum has
//         installed (P-A5; opening_quorums.h). It holds nothing until then, so
//         it needs no `repairing`. A replica that the configuration does not
//         name is not touched.
//   RPL4. A suspect replica, and one in the middle of a repair, gets no record
//         that reports do not name. Such a record may be damaged at its source,
//         unseen, and the replica may have the only good one: all records are
//         read first (CopiesUnread).
// Thread safety: pure.
// References: protocol P-A4.5, P-A5, P-H12, P-H13.
#ifndef ALPHEUS_RECOVERY_OPENING_REPAIR_PLAN_H_
#define ALPHEUS_RECOVERY_OPENING_REPAIR_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "recovery/opening/chooser.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// Records to copy, with the PADs before them.
struct CopyRun {
  Lsn first;
  Lsn end;                // one past the last
  ReportSet sources = 0;  // holders; never empty

  bool operator==(const CopyRun&) const = default;
};

struct ReplicaRepair {
  size_t report = 0;  // index of the replica's report
  std::vector<CopyRun> copies;
  bool destructive = false;         // overwrites valid records
  bool set_repairing = false;       // in the superline, before any copy
  bool after_write_quorum = false;  // waits for W installed replicas
  bool is_newcomer = false;         // waits for the quorums (RPL3)
};

struct RepairPlan {
  std::vector<ReplicaRepair> repairs;  // in the order in which they begin
  // Indices of reports of replicas that can't be installed here (RPL3).
  std::vector<size_t> to_resync;
  EpochTable table;  // epoch table that all install
};

// The epoch to open; `epoch` is the ballot.
struct NewEpoch {
  Uuid log_id;
  Epoch epoch;
  uint64_t nonce = 0;
  Configuration configuration = {};  // the epoch is installed with it
};

// Plans the repairs. Requires: `decision` was chosen from these reports.
RepairPlan PlanRepair(const quorum::QuorumSizes& sizes,
                      const Decision& decision,
                      std::span<const StateReport> reports,
                      const NewEpoch& next);

// Returns whether the plan would write records that reports do not name to a
// replica that does not know what it has (RPL4). Requires: the plan was made
// from the decision and the reports.
bool CopiesUnread(const RepairPlan& plan, const Decision& decision,
                  std::span<const StateReport> reports);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_REPAIR_PLAN_H_
