// SPDX-License-Identifier: Apache-2.0
// plan_report: plans as text, and as CSV: RFC 4180, except that lines end as on
// this system. Part of the interface: columns and words stay.
//
//   domain,ddio,rqwrb,update,operation,steps
//   mhp,on,dram,singleton,write,rq:write(a);rq:flush;rq:comp(flush)
//
// Thread safety: pure functions.
#ifndef ALPHEUS_TOOLS_CLI_PLAN_PLAN_REPORT_H_
#define ALPHEUS_TOOLS_CLI_PLAN_PLAN_REPORT_H_

#include <span>
#include <string>
#include <vector>

#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_table.h"

namespace alpheus::cli {

// Plan of a platform; the plan of its row may differ.
struct PlannedUpdate {
  replication::Platform platform;
  replication::TablePlan plan;
};

// "mhp,on,dram,singleton,write".
std::string RowKey(const replication::Platform& platform,
                   replication::UpdateKind kind,
                   replication::UpdateOperation operation);
inline std::string RowKey(const PlannedUpdate& update) {
  return RowKey(update.platform, update.plan.row.kind,
                update.plan.row.operation);
}

std::string PlansToCsv(std::span<const PlannedUpdate> updates);
// Returns each step with its meaning.
std::string PlansToText(std::span<const PlannedUpdate> updates);

// Returns CSV with two more columns: round_trips and responder_steps.
std::string CheapestToCsv(std::span<const PlannedUpdate> updates);
// Returns one line for each.
std::string CheapestToText(std::span<const PlannedUpdate> updates);

// Returns the rows grouped by their steps: each distinct sequence once.
std::string TableToText(std::span<const PlannedUpdate> updates);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_PLAN_PLAN_REPORT_H_
