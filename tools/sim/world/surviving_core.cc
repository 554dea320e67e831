// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/surviving_core.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "recovery/opening/opening_quorums.h"
#include "tools/sim/actors/candidate_agent.h"
#include "tools/sim/actors/membership_service.h"
#include "tools/sim/actors/node_process.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/standing_agent.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/client_faults.h"
#include "tools/sim/faults/clock_faults.h"
#include "tools/sim/faults/network_faults.h"
#include "tools/sim/faults/storage_faults.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

// All processes of a machine.
std::set<ProcessId> ProcessesOf(const World::Machine& machine) {
  std::set<ProcessId> processes;
  if (machine.node != nullptr) processes.insert(machine.node->process());
  if (machine.primary != nullptr) processes.insert(machine.primary->process());
  if (machine.candidate != nullptr) {
    processes.insert(machine.candidate->process());
  }
  if (machine.standing != nullptr) {
    processes.insert(machine.standing->process());
  }
  return processes;
}

// Takes `count` of them, drawn at random.
void Take(std::vector<int>& from, size_t count, RandomSource& random,
          std::set<int>& taken) {
  for (; count > 0 && !from.empty(); --count) {
    std::swap(from[random.Below(from.size())], from.back());
    taken.insert(from.back());
    from.pop_back();
  }
}

}  // namespace

std::set<int> DrawSurvivingCore(const quorum::QuorumSizes& sizes,
                                const std::set<int>& usable,
                                const std::set<int>& knowing,
                                RandomSource& random) {
  const size_t needed = std::max(sizes.read_quorum, sizes.write_quorum);
  std::set<int> core;
  if (knowing.size() < sizes.read_quorum || usable.size() < needed) {
    for (uint32_t i = 0; i < sizes.replica_count; ++i) {
      core.insert(static_cast<int>(i));
    }
    return core;
  }
  std::vector<int> known(knowing.begin(), knowing.end());
  Take(known, sizes.read_quorum, random, core);
  std::vector<int> rest;
  std::ranges::set_difference(usable, core, std::back_inserter(rest));
  // The fewest possible in half of the runs.
  const size_t spare = usable.size() - needed;
  const size_t more = random.Below(2) == 0 ? 0 : random.Below(spare + 1);
  Take(rest, needed - core.size() + more, random, core);
  return core;
}

SurvivingCore::SurvivingCore(World& world) : world_(world) {
  const ConfigurationChecker& configurations = world.checkers().configurations;
  const Configuration& in_force = configurations.in_force();
  quorum::QuorumSizes sizes = recovery::SizesOf(in_force);
  sizes.write_quorum =
      static_cast<uint32_t>(configurations.WriteQuorumOf(in_force));
  const std::vector<int> machines = configurations.Members();
  std::set<int> usable;
  std::set<int> knowing;
  for (size_t i = 0; i < machines.size(); ++i) {
    const int member = static_cast<int>(i);
    const RegionStore& store = world.store();
    if (store.IsGone(machines[i]) || store.IsNewcomer(machines[i])) continue;
    usable.insert(member);
    if (store.IsHurt(machines[i]) || store.IsSuspect(machines[i])) continue;
    if (!world.checkers().epochs.repairing(machines[i])) knowing.insert(member);
  }
  std::set<int> members =
      DrawSurvivingCore(sizes, usable, knowing, world.random());
  if (world.options().canary == Canary::kSmallCore) {
    const size_t needed = std::max(sizes.read_quorum, sizes.write_quorum);
    while (members.size() >= needed) members.erase(members.begin());
  }
  for (const int member : members) machines_.push_back(machines[member]);
  for (const World::Machine& machine : world.machines()) {
    if (std::ranges::find(machines, machine.number) != machines.end()) continue;
    if (world.random().Below(2) == 0) machines_.push_back(machine.number);
  }
}

bool SurvivingCore::Contains(int machine) const {
  return std::ranges::find(machines_, machine) != machines_.end();
}

bool SurvivingCore::is_all() const {
  return machines_.size() == world_.machines().size();
}

void SurvivingCore::Heal() {
  world_.Trace(absl::StrCat("core: machines ", absl::StrJoin(machines_, ", ")));
  if (world_.membership() != nullptr) world_.membership()->Heal();
  EndNetworkFaults(world_);
  CalmClients(world_);
  EndStorageFaults(world_);
  for (World::Machine& machine : world_.machines()) {
    if (!Contains(machine.number)) Break(machine);
  }
  for (const int machine : machines_) HealMachine(world_.machine(machine));
  HealClocks(world_);
  if (world_.random().Below(2) == 0 &&
      world_.options().canary != Canary::kSmallCore) {
    return;
  }
  for (World::Machine& machine : world_.machines()) {
    if (!machine.stays_broken) world_.KillPrimary(machine);
  }
}

void SurvivingCore::HealMachine(World::Machine& machine) {
  for (const int other : machines_) world_.RestoreLink(machine.number, other);
  machine.breakpoint.Clear();
  world_.RestorePower(machine);
  if (machine.pmem != nullptr) world_.StartNode(machine);
  for (const ProcessId process : ProcessesOf(machine)) {
    world_.threads().EndPauses(process);
  }
}

SurvivingCore::Fate SurvivingCore::DrawFate(const World::Machine& machine) {
  const bool is_canary = world_.options().canary == Canary::kSmallCore;
  const auto fate = static_cast<Fate>(world_.random().Below(7));
  if (fate == Fate::kNoNode && machine.node == nullptr) return Fate::kNoPower;
  // A primary that runs there has its replica, with which the core is enough.
  const bool may_help = fate == Fate::kAsItIs || fate == Fate::kNoNode;
  if (may_help && is_canary) return Fate::kNoPower;
  return fate;
}

void SurvivingCore::Break(World::Machine& machine) {
  const Fate fate = DrawFate(machine);
  constexpr const char* kWords[] = {
      "stays as it is",    "stays without power", "stays without a node",
      "stands still",      "stays cut off",       "hears nothing",
      "is heard by nobody"};
  world_.Trace(absl::StrCat("machine ", machine.number, ": ",
                            kWords[static_cast<size_t>(fate)]));
  if (fate == Fate::kAsItIs) return;
  machine.stays_broken = true;
  machine.breakpoint.Clear();
  ++world_.counters().left_broken;
  switch (fate) {
    case Fate::kNoPower:
      if (machine.has_power) world_.CutPower(machine);
      return;
    case Fate::kNoNode:
      world_.KillNode(machine);
      return;
    case Fate::kStandsStill:
      return StandStill(machine);
    case Fate::kCutOff:
      return CutOff(machine, /*to_it=*/true, /*from_it=*/true);
    case Fate::kDeaf:
      return CutOff(machine, /*to_it=*/true, /*from_it=*/false);
    case Fate::kMute:
      return CutOff(machine, /*to_it=*/false, /*from_it=*/true);
    case Fate::kAsItIs:
      return;
  }
}

void SurvivingCore::StandStill(World::Machine& machine) {
  for (const ProcessId process : ProcessesOf(machine)) {
    world_.threads().Pause(process);
  }
}

void SurvivingCore::CutOff(const World::Machine& machine, bool to_it,
                           bool from_it) {
  for (const World::Machine& other : world_.machines()) {
    if (to_it) world_.CutLink(other.number, machine.number);
    if (from_it) world_.CutLink(machine.number, other.number);
  }
  if (world_.membership() == nullptr) return;
  world_.membership()->CutOff(machine.number);
}

void SurvivingCore::EndFaults() {
  for (World::Machine& machine : world_.machines()) {
    machine.stays_broken = false;
  }
}

}  // namespace alpheus::sim
