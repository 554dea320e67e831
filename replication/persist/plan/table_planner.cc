// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/plan/table_planner.h"

#include <algorithm>
#include <utility>

#include "replication/persist/platform/method_steps.h"

namespace alpheus::replication {
namespace {

bool HasAction(std::span<const Step> steps, StepAction action) {
  return std::ranges::count(steps, action, &Step::action) > 0;
}

void AddNotes(const Platform& platform, TablePlan* plan) {
  const auto add = [plan](const char* note) { plan->notes.emplace_back(note); };
  const Platform same = AsInTables(platform);
  if (platform.domain != same.domain) {
    add("On this transport a completion says only that the operation was "
        "posted: the row is MHP's.");
  }
  if (platform.ddio != same.ddio) {
    add("On this transport the adapter is a program, which stores through the "
        "cache: the row is that of DDIO on.");
  }
  const bool is_emulated =
      HasAction(plan->row.steps, StepAction::kRequesterWriteAtomic) &&
      !platform.atomic_write;
  if (is_emulated) {
    plan->steps = steps::kWritesThenFlushes;
    add("Without atomic WRITE b waits for the first FLUSH: a round trip more.");
  }
  const bool flushes = HasAction(plan->steps, StepAction::kRequesterFlush);
  if (flushes && !platform.native_flush) {
    add("FLUSH is a READ of the last bytes that were written.");
  }
  if (flushes && HasAction(plan->steps, StepAction::kRequesterWriteImmediate)) {
    add("The immediate may be lost: nothing may depend on it.");
  }
  if (NeedsMessagesApplied(plan->steps)) {
    add("Recovery must apply the messages that it finds in receive buffers.");
  }
}

}  // namespace

Platform AsInTables(const Platform& platform) {
  Platform same = platform;
  if (platform.transport == Transport::kInfiniBand) return same;
  same.domain = std::min(platform.domain, PersistenceDomain::kHierarchy);
  if (platform.transport == Transport::kTcp) same.ddio = true;
  return same;
}

TablePlan PlanOfTable(const Platform& platform, UpdateKind kind,
                      UpdateOperation operation) {
  TablePlan plan;
  plan.row =
      RowOfTable(ConfigurationIndex(AsInTables(platform)), kind, operation);
  plan.steps = plan.row.steps;
  AddNotes(platform, &plan);
  return plan;
}

PlanCost CostOf(std::span<const Step> steps, const RoundTripCosts& costs) {
  PlanCost sum;
  sum.leaves_message = NeedsMessagesApplied(steps);
  const auto add_round_trip = [&sum](double cost) {
    sum.cost += cost;
    ++sum.round_trips;
  };
  for (const Step& step : steps) {
    ++sum.steps;
    switch (step.action) {
      case StepAction::kRequesterCompleteWrite:
      case StepAction::kRequesterCompleteWriteImmediate:
      case StepAction::kRequesterCompleteSend:
        add_round_trip(costs.completion);
        break;
      case StepAction::kRequesterCompleteFlush:
        add_round_trip(costs.flush);
        break;
      case StepAction::kRequesterReceiveAck:
        add_round_trip(costs.exchange);
        break;
      default:
        sum.responder_steps += IsOfResponder(step.action) ? 1 : 0;
        break;
    }
  }
  return sum;
}

TablePlan CheapestOfTable(const Platform& platform, UpdateKind kind,
                          const RoundTripCosts& costs) {
  TablePlan cheapest = PlanOfTable(platform, kind, UpdateOperation::kWrite);
  for (const UpdateOperation operation : kUpdateOperations) {
    TablePlan plan = PlanOfTable(platform, kind, operation);
    if (CostOf(plan.steps, costs) < CostOf(cheapest.steps, costs)) {
      cheapest = std::move(plan);
    }
  }
  return cheapest;
}

}  // namespace alpheus::replication
