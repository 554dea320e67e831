// SPDX-License-Identifier: Apache-2.0
// repair_plan: what each replica needs before it holds the chosen log.
//
// Idea: a replica that only lacks records is extended; whatever stage that is
// cut off in, it still has all that it had. A replica that holds other records
// where chosen ones go is repaired destructively: between the first byte and
// the superline it holds neither log, which `repairing` says for it (P-H12).
// Extensions come first, so that W replicas hold the chosen log before any
// other one is touched, if there are that many.
//
// Invariants:
//   RPL1. `repairing` is set first if, and only if, a byte of a record that is
//         valid under the replica's own table will be overwritten by something
//         else. Gaps, torn and corrupt places and records beyond the chosen end
//         need none. Of a suspect replica nothing is known: it is taken to hold
//         records everywhere.
//   RPL2. A destructive repair waits for W installed replicas, unless it is
//         needed for them; for one at least, in any case (PLR2 of
//         plan_runner.h).
//   RPL3. A blank replica is repaired only if the configuration that is
//         installed names it, as the last of all, and not before a quorum has
//         installed (P-A5; opening_quorums.h). It holds nothing until then, so
//         that nothing of it has to be marked. Who is not named is not touched.
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
#include "recovery/protocol/answer.h"

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
  bool is_newcomer = false;         // not before quorums are installed (RPL3)
};

struct RepairPlan {
  std::vector<ReplicaRepair> repairs;  // in the order of their beginning
  std::vector<size_t> to_rejoin;       // answers of replicas that can't be
                                       // installed here (RPL3)
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

#endif  // ALPHEUS_RECOVERY_OPENING_REPAIR_PLAN_H_
