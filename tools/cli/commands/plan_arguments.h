// SPDX-License-Identifier: Apache-2.0
// plan_arguments: what `alpheus plan` is told.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_PLAN_ARGUMENTS_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_PLAN_ARGUMENTS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/platform.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace alpheus::cli {

struct PlanArguments {
  std::string domain;  // this and the two below: empty if not said
  std::string ddio;
  std::string rqwrb;
  std::string transport = "infiniband";
  bool no_atomic_write = false;
  bool no_native_flush = false;
  bool all = false;
  bool cheapest = false;
  bool verify = false;
  std::string format = "text";
  RoundTripCosts costs;

  bool names_platform() const {
    return !domain.empty() || !ddio.empty() || !rqwrb.empty();
  }
  // Of what is not said the weakest.
  Platform platform() const;
  // Of a line of Table 1, with this transport and adapter.
  Platform WithAdapter(Platform configuration) const;
  // Whether the line is one that the arguments ask for.
  bool Wants(const Platform& configuration) const;
};

void AddPlanOptions(CLI::App* command, PlanArguments* arguments);

// Errors: InvalidArgument (what can't be asked for at once, or nothing was).
absl::Status CheckPlanArguments(const PlanArguments& arguments);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_PLAN_ARGUMENTS_H_
