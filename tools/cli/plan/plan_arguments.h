// SPDX-License-Identifier: Apache-2.0
// plan_arguments: the arguments of `alpheus plan`.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_CLI_PLAN_PLAN_ARGUMENTS_H_
#define ALPHEUS_TOOLS_CLI_PLAN_PLAN_ARGUMENTS_H_

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
  std::string domain;  // this and the two below: empty if not given
  std::string ddio;
  std::string rqwrb;
  std::string transport = "infiniband";
  bool no_atomic_write = false;
  bool no_native_flush = false;
  bool all = false;
  bool cheapest = false;
  bool verify = false;
  std::string format = "text";
  replication::RoundTripCosts costs;

  bool names_platform() const {
    return !domain.empty() || !ddio.empty() || !rqwrb.empty();
  }
  // Returns the platform; missing arguments mean the weakest.
  replication::Platform platform() const;
  // Returns a configuration of Table 1 with this transport and adapter.
  replication::Platform WithAdapter(replication::Platform configuration) const;
  // Returns whether the arguments ask for this configuration.
  bool Wants(const replication::Platform& configuration) const;
};

void AddPlanOptions(CLI::App* command, PlanArguments* arguments);

// Checks the arguments. Errors: InvalidArgument (they contradict each other, or
// ask for nothing).
absl::Status CheckPlanArguments(const PlanArguments& arguments);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_PLAN_PLAN_ARGUMENTS_H_
