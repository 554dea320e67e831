// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/fault_budget.h"

#include <algorithm>
#include <map>

#include "tools/sim/checkers.h"
#include "tools/sim/primary_process.h"
#include "tools/sim/region_store.h"

namespace alpheus::sim {

bool FaultBudget::IsIgnored() const {
  return world_.options().canary == Canary::kNoBudget;
}

bool FaultBudget::IsUnlimited() const {
  return world_.options().is_beyond_budget || IsIgnored();
}

int FaultBudget::Lost(int more) const {
  int lost = 0;
  for (int m = 0; m < world_.options().nodes; ++m) {
    lost += world_.store().IsGone(m) || m == more ? 1 : 0;
  }
  return lost;
}

int FaultBudget::Harmed(int more) const {
  int harmed = 0;
  for (int m = 0; m < world_.options().nodes; ++m) {
    const RegionStore& store = world_.store();
    harmed += store.IsGone(m) || store.IsHurt(m) || store.IsSuspect(m) ||
                      m == more || world_.checkers().epochs.repairing(m)
                  ? 1
                  : 0;
  }
  return harmed;
}

bool FaultBudget::MayLose(int machine) const {
  if (IsUnlimited()) return true;
  const auto needed = static_cast<int>(OpeningQuorum(world_.sizes()));
  return Lost(machine) <= world_.options().nodes - needed && MayHurt(machine);
}

bool FaultBudget::MayHurt(int machine) const {
  if (IsUnlimited()) return true;
  return Harmed(machine) < world_.options().write_quorum;
}

bool FaultBudget::MustSurvive() const {
  if (IsIgnored()) return true;
  const auto needed = static_cast<int>(OpeningQuorum(world_.sizes()));
  bool any = false;
  for (int m = 0; m < world_.options().nodes; ++m) {
    any |= world_.store().IsGone(m) || world_.store().IsHurt(m) ||
           world_.store().IsSuspect(m);
  }
  if (!any) return true;
  return Lost(-1) <= world_.options().nodes - needed &&
         Harmed(-1) < world_.options().write_quorum;
}

bool FaultBudget::IsSpare(int machine, const RegionImage& image,
                          const ImageRecord& record, Epoch log_epoch) const {
  if (IsIgnored()) return true;
  int holders = 0;
  for (int m = 0; m < world_.options().nodes; ++m) {
    const auto* const medium = world_.store().medium(m);
    const EpochChecker& epochs = world_.checkers().epochs;
    if (m == machine || medium == nullptr || epochs.repairing(m) ||
        epochs.log_epoch(m) < log_epoch) {
      continue;
    }
    holders +=
        AreOneRecord(image.data() + record.at,
                     medium->persistent().data() + record.at, record.said)
            ? 1
            : 0;
  }
  return holders >= world_.options().write_quorum;
}

bool FaultBudget::IsForgettable(int machine, Epoch promised,
                                Epoch log_epoch) const {
  const EpochChecker& epochs = world_.checkers().epochs;
  const auto needed = static_cast<int>(OpeningQuorum(world_.sizes()));
  int promises = 0;
  int logs = 0;
  for (int m = 0; m < world_.options().nodes; ++m) {
    if (m == machine || world_.store().medium(m) == nullptr) continue;
    promises += epochs.promise(m).epoch >= promised ? 1 : 0;
    logs += epochs.log_epoch(m) >= log_epoch && !epochs.repairing(m) ? 1 : 0;
  }
  return promises >= needed && logs >= world_.options().write_quorum;
}

bool FaultBudget::MayRollBack(int machine, const RegionImage& now,
                              const RegionImage& then) const {
  if (IsIgnored()) return true;
  for (const World::Machine& other : world_.machines()) {
    if (other.primary != nullptr && !other.primary->is_open()) return false;
  }
  const std::optional<ImageLog> log = ReadImage(now);
  const std::optional<ImageLog> old = ReadImage(then);
  if (!log || !old || log->repairing || old->repairing) return false;
  if (!IsForgettable(machine, log->promised, log->log_epoch)) return false;
  const MarkChecker& marks = world_.checkers().marks;
  const int quorum = world_.options().write_quorum;
  // What this one has acknowledged may be durable any moment.
  if (marks.DurableHeadWithout(machine, quorum) < log->head.lsn) {
    return false;
  }
  return std::ranges::all_of(log->records, [&](const ImageRecord& record) {
    return IsSpare(machine, now, record, log->log_epoch);
  });
}

}  // namespace alpheus::sim
