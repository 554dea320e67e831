// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/plan/planner.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_steps.h"

namespace alpheus::replication {

absl::StatusOr<Plan> MakePlan(const Platform& platform, UpdateKind kind,
                              UpdateOperation operation) {
  const unsigned bit = 1U << ConfigurationIndex(AsInTables(platform));
  std::string known;
  for (const Method& method : Methods()) {
    const bool is_asked = method.kind == kind && method.operation == operation;
    if (is_asked && (method.sufficient_on & bit) != 0) {
      return Plan{method.cell, method.steps};
    }
    absl::StrAppend(
        &known, known.empty() ? "" : ", ", UpdateKindName(method.kind), " by ",
        UpdateOperationName(method.operation), " (", method.cell, ")");
  }
  return absl::UnimplementedError(absl::StrCat(
      "no method is built in that persists a ", UpdateKindName(kind),
      " update by ", UpdateOperationName(operation), " on platform ",
      PlatformToString(platform), "; built in are: ", known,
      ". Ask for one of these"));
}

absl::StatusOr<Plan> MakeRecordPlan(const Platform& platform) {
  return MakePlan(platform, UpdateKind::kSingleton,
                  UpdateOperation::kWriteImmediate);
}

bool ChecksBytes(const Platform& platform) {
  return platform.transport == Transport::kInfiniBand;
}

absl::StatusOr<Plan> MakeSessionPlan(const Platform& platform) {
  ALPHEUS_ASSIGN_OR_RETURN(const Plan plan, MakeRecordPlan(platform));
  return ChecksBytes(platform) ? plan : RecordPlanOfBackup();
}

Plan RecordPlanOfBackup() {
  for (const Method& method : Methods()) {
    if (std::ranges::equal(method.steps, steps::kWriteImmediateThenAck)) {
      return Plan{method.cell, method.steps};
    }
  }
  ALPHEUS_CHECK(false, "the row that is enough everywhere is built in");
  return {};
}

absl::StatusOr<Plan> MakeSuperlinePlan(const Platform& platform) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const Plan plan,
      MakePlan(platform, UpdateKind::kCompound, UpdateOperation::kSend));
  const bool is_applied =
      std::ranges::count(plan.steps, StepAction::kResponderCopyAndFlush,
                         &Step::action) == 1;
  if (is_applied && !NeedsMessagesApplied(plan.steps)) return plan;
  return absl::UnimplementedError(absl::StrCat(
      PlanToString(plan), " on platform ", PlatformToString(platform),
      " leaves a message to be applied, or unflushed; no superline is changed "
      "so. Build in a row that copies and flushes"));
}

}  // namespace alpheus::replication
