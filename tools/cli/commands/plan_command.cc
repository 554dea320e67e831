// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/status_macros.h"
#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_table.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/plan/plan_arguments.h"
#include "tools/cli/plan/plan_report.h"
#include "tools/cli/plan/plan_verification.h"

namespace alpheus::cli {
namespace {

std::vector<PlannedUpdate> PlansOf(const replication::Platform& platform) {
  std::vector<PlannedUpdate> plans;
  for (const replication::UpdateKind kind : replication::kUpdateKinds) {
    for (const replication::UpdateOperation operation :
         replication::kUpdateOperations) {
      plans.push_back(
          {platform, replication::PlanOfTable(platform, kind, operation)});
    }
  }
  return plans;
}

std::vector<PlannedUpdate> WholeTable() {
  std::vector<PlannedUpdate> plans;
  for (size_t i = 0; i < replication::kConfigurationCount; ++i) {
    for (PlannedUpdate& update : PlansOf(replication::PlatformOfTable(i))) {
      plans.push_back(std::move(update));
    }
  }
  return plans;
}

std::vector<PlannedUpdate> CheapestPlans(const PlanArguments& arguments) {
  std::vector<PlannedUpdate> plans;
  for (size_t i = 0; i < replication::kConfigurationCount; ++i) {
    if (!arguments.Wants(replication::PlatformOfTable(i))) continue;
    const replication::Platform platform =
        arguments.WithAdapter(replication::PlatformOfTable(i));
    for (const replication::UpdateKind kind : replication::kUpdateKinds) {
      plans.push_back({platform, replication::CheapestOfTable(
                                     platform, kind, arguments.costs)});
    }
  }
  return plans;
}

std::string AnswerTo(const PlanArguments& arguments) {
  const bool is_csv = arguments.format == "csv";
  if (arguments.cheapest) {
    const std::vector<PlannedUpdate> plans = CheapestPlans(arguments);
    return is_csv ? CheapestToCsv(plans) : CheapestToText(plans);
  }
  if (arguments.all) {
    const std::vector<PlannedUpdate> plans = WholeTable();
    return is_csv ? PlansToCsv(plans) : TableToText(plans);
  }
  const std::vector<PlannedUpdate> plans = PlansOf(arguments.platform());
  return is_csv ? PlansToCsv(plans) : PlansToText(plans);
}

absl::Status RunPlan(const PlanArguments& arguments) {
  ALPHEUS_RETURN_IF_ERROR(CheckPlanArguments(arguments));
  if (!arguments.verify) return WriteAll(STDOUT_FILENO, AnswerTo(arguments));
  const PlanVerification found = VerifyTable();
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, VerificationToText(found)));
  return VerdictOf(found);
}

}  // namespace

void AddPlanCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = AddCommand(
      app, "plan",
      {.purpose = "Show how remote updates become persistent",
       .about = "Shows the steps that make an update persistent on another "
                "host: for one platform, for all platforms, or the cheapest "
                "ones. Or verifies all of them on a model of remote memory.",
       .good = "the steps were shown; or all methods are verified",
       .failed = "a method is wrong on the model, or anything else"});
  AddPlanOptions(command, arguments.get());
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] { return RunPlan(*arguments); };
  });
}

}  // namespace alpheus::cli
