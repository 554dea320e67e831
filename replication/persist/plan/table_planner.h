// SPDX-License-Identifier: Apache-2.0
// table_planner: the plan that the taxonomy's tables give for a platform, built
// in (planner.h) or not, and its cost.
//
// Idea: the tables assume InfiniBand's completions, and an adapter with FLUSH
// and atomic WRITE. A weaker platform takes the row of a weaker configuration,
// or emulates what the adapter lacks; never a row that is not enough.
//
//   iWARP      a completion says that the operation was posted: WSP as MHP
//              (§3.2)
//   TCP        like iWARP, and the adapter is a program that stores through the
//              cache, from buffers of its own: DDIO as on
//   no FLUSH   a READ of the last bytes that were written (§3.4); the steps
//              stay
//   no atomic  the second write waits for the first FLUSH (§3.3)
//
// Thread safety: pure functions.
// References: remote persistence taxonomy, Tables 1 to 3;
// docs/design/remote_persistence.md.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLAN_TABLE_PLANNER_H_
#define ALPHEUS_REPLICATION_PERSIST_PLAN_TABLE_PLANNER_H_

#include <compare>
#include <span>
#include <string>
#include <vector>

#include "replication/persist/platform/method_table.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::replication {

// Returns a platform on which completions and memory behave as in the tables,
// and which keeps no more than `platform`.
Platform AsInTables(const Platform& platform);

struct TablePlan {
  // The row; its steps differ from `steps` if these are emulated.
  TableRow row;
  std::span<const Step> steps;
  // Sentences: effects of the platform, and requirements on recovery.
  std::vector<std::string> notes;
};

TablePlan PlanOfTable(const Platform& platform, UpdateKind kind,
                      UpdateOperation operation);

// The cost of a round trip, by the event that ends it, in any unit. "On some
// systems, a message exchange, using RDMA SEND, can possibly be more efficient
// than a RDMA FLUSH" (Table 2's note): measured costs go here.
struct RoundTripCosts {
  double completion = 1;  // of WRITE, WRITEIMM, SEND
  double flush = 1;
  double exchange = 1;
};

struct PlanCost {
  double cost = 0;
  int round_trips = 0;
  int responder_steps = 0;  // steps of the responder's program
  // True if a program must still apply a message, with or without a power cut.
  bool leaves_message = false;
  int steps = 0;

  // Orders cheap before dear: by cost, then by the work of the responder's
  // processor.
  auto operator<=>(const PlanCost&) const = default;
};
PlanCost CostOf(std::span<const Step> steps, const RoundTripCosts& costs);

// Returns the cheapest of the three operations' plans; of equal ones the first,
// in the order of UpdateOperation.
TablePlan CheapestOfTable(const Platform& platform, UpdateKind kind,
                          const RoundTripCosts& costs);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_PLAN_TABLE_PLANNER_H_
