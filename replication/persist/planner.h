// SPDX-License-Identifier: Apache-2.0
// planner: which method persists an update on a platform.
//
// Idea: a lookup, so that all of it can be tested. What is not built in is an
// error: never a method that is not enough.
//
// Thread safety: pure functions.
// References: remote persistence taxonomy, Tables 1 to 3; protocol P-A3.4,
// P-R7.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLANNER_H_
#define ALPHEUS_REPLICATION_PERSIST_PLANNER_H_

#include "absl/status/statusor.h"
#include "replication/persist/method.h"
#include "replication/persist/platform.h"

namespace alpheus {

// Of the methods for such updates by such an operation, the first that is
// enough on the platform. Errors: Unimplemented (none is built in).
absl::StatusOr<Plan> MakePlan(const Platform& platform, UpdateKind kind,
                              UpdateOperation operation);

// For the log's records, as the primary has them: when one is persisted. A
// record has its checksum, so each is a singleton, and so is a batch of them: a
// scan takes what is whole from its front.
absl::StatusOr<Plan> MakeRecordPlan(const Platform& platform);

// The link checks what it carries by 32 bits or more, as adapters with RDMA do
// (ICRC). TCP has 16 bits, of which one damage in some ten thousands slips by.
bool ChecksBytes(const Platform& platform);

// The same for a session. Where the link does not check what it carries nothing
// counts before the backup has summed it, which no one-sided method waits for:
// there it is RecordPlanOfBackup.
absl::StatusOr<Plan> MakeSessionPlan(const Platform& platform);

// What the backup does with records, on each platform: the row that is enough
// on all of them. It persists, walks, acknowledges and marks what it was told
// of, whether the primary counts these acks or did not wait for them
// (docs/design/remote_persistence.md).
Plan RecordPlanOfBackup();

// For a change of a replica's superline that another host asks for: a message,
// applied and persisted before its ack. Errors: Unimplemented (none that leaves
// no message unapplied).
absl::StatusOr<Plan> MakeSuperlinePlan(const Platform& platform);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_PLANNER_H_
