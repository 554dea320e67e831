// SPDX-License-Identifier: Apache-2.0
// planner: picks the method that persists an update on a platform.
//
// Idea: the planner is a lookup, so that all of it can be tested. A missing
// method is an error: the planner never picks one that is not enough.
//
// Thread safety: pure functions.
// References: remote persistence taxonomy, Tables 1 to 3; protocol P-A3.4,
// P-R7.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLAN_PLANNER_H_
#define ALPHEUS_REPLICATION_PERSIST_PLAN_PLANNER_H_

#include "absl/status/statusor.h"
#include "replication/persist/platform/method.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::replication {

// Returns the first built-in method for the update and operation that is enough
// on the platform. Errors: Unimplemented (none is built in).
absl::StatusOr<Plan> MakePlan(const Platform& platform, UpdateKind kind,
                              UpdateOperation operation);

// Returns the plan by which the primary counts a record as persisted. A record
// has its checksum, so each is a singleton. A batch is a singleton too: a scan
// keeps the whole records at its front.
absl::StatusOr<Plan> MakeRecordPlan(const Platform& platform);

// Returns true if the link has a check of 32 bits or more, as adapters with
// RDMA do (ICRC). TCP has 16 bits, which miss one damage in some ten thousands.
bool ChecksBytes(const Platform& platform);

// Returns the primary's plan for a session. Where the link checks what it
// carries, it is MakeRecordPlan. Elsewhere a record counts only after the
// backup has summed it. No one-sided method waits for that, so the plan is
// RecordPlanOfBackup: the ack counts.
absl::StatusOr<Plan> MakeSessionPlan(const Platform& platform);

// Returns the backup's plan for records, the same on each platform: the row
// that is enough on all of them. The backup persists, walks and acknowledges
// all announced records and stores a watermark, whether or not the primary
// waits for the ack (docs/design/remote_persistence.md).
Plan RecordPlanOfBackup();

// Returns the plan for a change of a replica's superline that another host asks
// for: a message, applied and persisted before its ack. Errors: Unimplemented
// (every method leaves messages unapplied).
absl::StatusOr<Plan> MakeSuperlinePlan(const Platform& platform);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_PLAN_PLANNER_H_
