// SPDX-License-Identifier: Apache-2.0
// repair_plan: what each replica needs before it holds the chosen log.
//
// Idea: a replica that only lacks records is extended; whatever stage that is
// cut off in, it still has all that it had. A replica that holds other records
// where chosen ones go is repaired destructively: between the first byte and
// the superline it holds neither log, which `repairing` says for it (H12).
// Extensions come first, so that W replicas hold the chosen log before any
// other one is touched, if there are that many.
//
// Invariants:
//   G1. `repairing` is set first if, and only if, a byte of a record that is
//       valid under the replica's own table will be overwritten by something
//       else. Gaps, torn and corrupt places and records beyond the chosen end
//       need none. Of a suspect replica nothing is known: it is taken to hold
//       records everywhere.
//   G2. A destructive repair waits for W installed replicas, unless it is
//       needed for them; for one at least, in any case (L2 of plan_runner.h).
//   G3. A blank replica is repaired only if the configuration that is installed
//       names it, as the last of all, and not before a quorum has installed
//       (A5; opening_quorums.h). It holds nothing until then, so that nothing
//       of it has to be marked. Who is not named is not touched.
// Thread safety: pure.
// References: protocol A4.5, A5, H12, H13.
#ifndef ALPHEUS_RECOVERY_REPAIR_PLAN_H_
#define ALPHEUS_RECOVERY_REPAIR_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "recovery/answer.h"
#include "recovery/chooser.h"

namespace alpheus {

// Records to copy, with the PADs before them.
struct CopyRun {
  Lsn first;
  Lsn end;                // behind the last one
  AnswerSet sources = 0;  // who holds them; never empty

  bool operator==(const CopyRun&) const = default;
};

struct ReplicaRepair {
  size_t answer = 0;  // index of the replica's answer
  std::vector<CopyRun> copies;
  bool destructive = false;         // overwrites valid records
  bool set_repairing = false;       // in the superline, before any copy
  bool after_write_quorum = false;  // not before W others are installed
  bool is_newcomer = false;         // not before quorums are installed (G3)
};

struct RepairPlan {
  std::vector<ReplicaRepair> repairs;  // in the order of their beginning
  std::vector<size_t> to_rejoin;       // answers of replicas that can't be
                                       // installed here (G3)
  EpochTable table;                    // for all of them
};

// The epoch that is to be opened; `epoch` is the ballot.
struct NewEpoch {
  Uuid log_id;
  Epoch epoch;
  uint64_t nonce = 0;
  Configuration configuration = {};  // that it is installed with
};

// Requires: `decision` was chosen from these answers.
RepairPlan PlanRepair(const QuorumSizes& sizes, const Decision& decision,
                      std::span<const Answer> answers, const NewEpoch& next);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REPAIR_PLAN_H_
