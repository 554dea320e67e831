// SPDX-License-Identifier: Apache-2.0
// table_planner: what the taxonomy's tables say for a platform, whether it is
// built in (planner.h) or not, and what it costs.
//
// Idea: the tables are made for InfiniBand's completions, and for an adapter
// with FLUSH and atomic WRITE. A platform that has less takes the row of a
// weaker configuration, or of what an adapter has not, its emulation; never a
// row that is weaker.
//
//   iWARP      a completion says that the operation was posted: WSP as MHP
//              (§3.2)
//   TCP        the same, and the adapter is a program that stores through the
//              cache, from buffers of its own: DDIO as on
//   no FLUSH   a READ of the last bytes that were written (§3.4); the steps
//   stay no atomic  the second write waits for the first FLUSH (§3.3)
//
// Thread safety: pure functions.
// References: remote persistence taxonomy, Tables 1 to 3;
// docs/design/remote_persistence.md.
#ifndef ALPHEUS_REPLICATION_PERSIST_TABLE_PLANNER_H_
#define ALPHEUS_REPLICATION_PERSIST_TABLE_PLANNER_H_

#include <compare>
#include <span>
#include <string>
#include <vector>

#include "replication/persist/method_table.h"
#include "replication/persist/platform.h"

namespace alpheus {

// A platform on which completions and memory do as the tables say, and which
// keeps no more than this one.
Platform AsInTables(const Platform& platform);

struct TablePlan {
  TableRow row;  // its steps are not these where they are emulated
  std::span<const Step> steps;
  // What follows from the platform or is required of recovery; sentences.
  std::vector<std::string> notes;
};

TablePlan PlanOfTable(const Platform& platform, UpdateKind kind,
                      UpdateOperation operation);

// What a round trip costs, by what ends it, in any unit. "On some systems, a
// message exchange, using RDMA SEND, can possibly be more efficient than a RDMA
// FLUSH" (Table 2's note): who has measured it says so here.
struct RoundTripCosts {
  double completion = 1;  // of WRITE, WRITEIMM, SEND
  double flush = 1;
  double exchange = 1;
};

struct PlanCost {
  double cost = 0;
  int round_trips = 0;
  int responder_steps = 0;  // of its program
  // Some program must apply a message yet, if the power goes or not.
  bool leaves_message = false;
  int steps = 0;

  // Cheap before dear: by cost, then by what the responder's processor does.
  auto operator<=>(const PlanCost&) const = default;
};
PlanCost CostOf(std::span<const Step> steps, const RoundTripCosts& costs);

// Of the three operations' plans the cheapest; of equal ones the first, as
// UpdateOperation has them.
TablePlan CheapestOfTable(const Platform& platform, UpdateKind kind,
                          const RoundTripCosts& costs);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_TABLE_PLANNER_H_
