// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/fault_budget.h"

#include <algorithm>
#include <map>

#include "recovery/opening/opening_quorums.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {

bool FaultBudget::IsIgnored() const {
  return world_.options().canary == Canary::kNoBudget;
}

bool FaultBudget::IsUnlimited() const {
  return world_.options().is_beyond_budget || IsIgnored();
}

const Configuration& FaultBudget::configuration() const {
  return world_.checkers().configurations.in_force();
}

std::vector<int> FaultBudget::Members() const {
  return world_.checkers().configurations.Members();
}

int FaultBudget::OpeningQuorumNow() const {
  const quorum::QuorumSizes sizes = recovery::SizesOf(configuration());
  return static_cast<int>(quorum::OpeningQuorumSize(sizes));
}

int FaultBudget::WriteQuorumNow() const {
  return world_.checkers().configurations.WriteQuorumOf(configuration());
}

// For good; or another one is there, which has not joined yet.
bool FaultBudget::IsLost(int machine) const {
  const ConfigurationChecker& configurations = world_.checkers().configurations;
  return world_.store().IsGone(machine) || world_.store().IsNewcomer(machine) ||
         !configurations.IsMember(configuration(), machine);
}

// Spares machines that are not members or are about to leave. During a change
// it spares all machines, since two configurations may count.
bool FaultBudget::IsOpenToHarm(int machine) const {
  const std::vector<int> members = Members();
  return std::ranges::find(members, machine) != members.end() &&
         world_.checkers().configurations.IsInForceEverywhere();
}

int FaultBudget::Lost(int more) const {
  int lost = 0;
  for (const int m : Members()) lost += IsLost(m) || m == more ? 1 : 0;
  return lost;
}

int FaultBudget::Harmed(int more) const {
  int harmed = 0;
  for (const int m : Members()) {
    const RegionStore& store = world_.store();
    harmed += IsLost(m) || store.IsHurt(m) || store.IsSuspect(m) || m == more ||
                      world_.checkers().epochs.repairing(m)
                  ? 1
                  : 0;
  }
  return harmed;
}

bool FaultBudget::MayLose(int machine) const {
  if (IsUnlimited()) return true;
  const auto count = static_cast<int>(configuration().replica_count);
  return Lost(machine) <= count - OpeningQuorumNow() && MayHurt(machine);
}

bool FaultBudget::MayHurt(int machine) const {
  if (IsUnlimited()) return true;
  return IsOpenToHarm(machine) && Harmed(machine) < WriteQuorumNow();
}

bool FaultBudget::MustSurvive() const {
  if (IsIgnored()) return true;
  bool any = false;
  for (const int m : Members()) {
    any |= IsLost(m) || world_.store().IsHurt(m) || world_.store().IsSuspect(m);
  }
  if (!any) return true;
  // The configuration that a change was to bring may lose more.
  if (!world_.checkers().configurations.IsInForceEverywhere()) return false;
  const auto count = static_cast<int>(configuration().replica_count);
  return Lost(-1) <= count - OpeningQuorumNow() &&
         Harmed(-1) < WriteQuorumNow();
}

bool FaultBudget::IsSpare(int machine, const RegionImage& image,
                          const ImageRecord& record, Epoch log_epoch) const {
  if (IsIgnored()) return true;
  int holders = 0;
  for (const int m : Members()) {
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
  return holders >= WriteQuorumNow();
}

bool FaultBudget::IsForgettable(int machine, Epoch promised,
                                Epoch log_epoch) const {
  const EpochChecker& epochs = world_.checkers().epochs;
  int promises = 0;
  int logs = 0;
  for (const int m : Members()) {
    if (m == machine || world_.store().medium(m) == nullptr) continue;
    promises += epochs.promise(m).epoch >= promised ? 1 : 0;
    logs += epochs.log_epoch(m) >= log_epoch && !epochs.repairing(m) ? 1 : 0;
  }
  return promises >= OpeningQuorumNow() && logs >= WriteQuorumNow();
}

bool FaultBudget::MayRollBack(int machine, const RegionImage& now,
                              const RegionImage& then) const {
  if (IsIgnored()) return true;
  if (!IsOpenToHarm(machine)) return false;
  for (const World::Machine& other : world_.machines()) {
    if (other.primary != nullptr && !other.primary->is_open()) return false;
  }
  const std::optional<ImageLog> log = ReadImage(now);
  const std::optional<ImageLog> old = ReadImage(then);
  if (!log || !old || log->repairing || old->repairing) return false;
  if (!IsForgettable(machine, log->promised, log->log_epoch)) return false;
  // Records that this one has acknowledged may become durable any moment.
  std::vector<Lsn> heads;
  for (const int other : Members()) {
    if (other == machine) continue;
    heads.push_back(world_.checkers().marks.head(other));
  }
  if (MarkChecker::DurableHead(std::move(heads), WriteQuorumNow()) <
      log->head.lsn) {
    return false;
  }
  return std::ranges::all_of(log->records, [&](const ImageRecord& record) {
    return IsSpare(machine, now, record, log->log_epoch);
  });
}

}  // namespace alpheus::sim
