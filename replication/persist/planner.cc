// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/planner.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "log/base/mutant.h"

namespace alpheus {

absl::StatusOr<Plan> MakePlan(const Platform& platform, UpdateKind kind,
                              UpdateOperation operation) {
  const unsigned bit = 1U << ConfigurationIndex(platform);
  std::string known;
  for (const Method& method : Methods()) {
    const bool is_asked = method.kind == kind && method.operation == operation;
    if (IsMutant("kPlanOfAnotherUpdate") ||
        (is_asked && (method.sufficient_on & bit) != 0)) {
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

}  // namespace alpheus
