// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/faults.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "log/base/mix.h"
#include "tools/sim/actors/candidate_agent.h"
#include "tools/sim/actors/membership_service.h"
#include "tools/sim/actors/node_process.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/standing_agent.h"
#include "tools/sim/faults/client_faults.h"
#include "tools/sim/faults/clock_faults.h"
#include "tools/sim/faults/membership_faults.h"
#include "tools/sim/faults/network_faults.h"
#include "tools/sim/faults/storage_faults.h"

namespace alpheus::sim {
namespace {

using Machine = World::Machine;

FaultKind DrawKind(const RunOptions& options, RandomSource& random) {
  const uint64_t sum = std::accumulate(options.weights.begin(),
                                       options.weights.end(), uint64_t{0});
  uint64_t left = random.Below(sum);
  size_t kind = 0;
  while (left >= options.weights[kind]) left -= options.weights[kind++];
  return static_cast<FaultKind>(kind);
}

Machine* WithPrimary(World& world, uint64_t drawn) {
  return world.FindMachine(
      drawn, [](const Machine& machine) { return machine.primary != nullptr; });
}

Machine* WithNode(World& world, uint64_t drawn) {
  return world.FindMachine(
      drawn, [](const Machine& machine) { return machine.node != nullptr; });
}

void After(World& world, int64_t ns, std::function<void()> what) {
  world.network().Schedule(ns, std::move(what));
}

void PauseFor(World& world, ProcessId process, int64_t ns) {
  world.threads().Pause(process);
  After(world, ns, [&world, process] { world.threads().Continue(process); });
}

bool PausePrimary(World& world, const Fault& fault) {
  Machine* const machine = WithPrimary(world, fault.machine);
  if (machine == nullptr) return false;
  PauseFor(world, machine->primary->process(), fault.lasts_ns);
  // A machine that stands still has its session expire, too.
  if (machine->candidate != nullptr && fault.other % 2 == 0) {
    PauseFor(world, machine->candidate->process(), fault.lasts_ns);
  }
  // It is one process with the candidate that opened the log.
  if (machine->standing != nullptr) {
    PauseFor(world, machine->standing->process(), fault.lasts_ns);
  }
  return true;
}

bool PauseNode(World& world, const Fault& fault) {
  Machine* const machine = WithNode(world, fault.machine);
  if (machine == nullptr) return false;
  PauseFor(world, machine->node->process(), fault.lasts_ns);
  return true;
}

// Sets a breakpoint in one of the next calls of the persistence primitive on
// that machine, if enough come in time. Counted when it strikes.
void SetBreakpoint(World& world, Machine& machine, const Fault& fault) {
  machine.breakpoint.Set(fault.kind, fault.aim, fault.calls);
  After(world, fault.lasts_ns, [&machine] { machine.breakpoint.Clear(); });
}

// Half of them for metadata, which is touched seldom.
void DrawBreakpoint(Fault& fault, RandomSource& random) {
  switch (random.Below(4)) {
    case 0:
      fault.aim = BreakpointAim::kMetadata;
      break;
    case 1:
      fault.aim = BreakpointAim::kSuperlineOrTable;
      break;
    default:
      fault.calls = 1 + random.Below(60);
      return;
  }
  fault.calls = 1 + random.Below(20);
}

bool KillPrimary(World& world, const Fault& fault) {
  Machine* const machine = WithPrimary(world, fault.machine);
  if (machine == nullptr) return false;
  if (fault.calls != 0 && machine->region_user == World::RegionUser::kPrimary) {
    SetBreakpoint(world, *machine, fault);
    return false;
  }
  world.KillPrimary(*machine);
  return true;
}

bool KillNode(World& world, const Fault& fault) {
  Machine* const machine = WithNode(world, fault.machine);
  if (machine == nullptr) return false;
  After(world, fault.lasts_ns,
        [&world, machine] { world.StartNode(*machine); });
  if (fault.calls != 0 && machine->region_user == World::RegionUser::kNode) {
    SetBreakpoint(world, *machine, fault);
    return false;
  }
  world.KillNode(*machine);
  return true;
}

void ComeBack(World& world, Machine& machine, int64_t after_ns) {
  After(world, after_ns, [&world, &machine] { world.RestorePower(machine); });
}

bool CutPower(World& world, const Fault& fault) {
  Machine& machine = world.machines()[fault.machine % world.machines().size()];
  if (!machine.has_power) return false;
  ComeBack(world, machine, fault.lasts_ns);
  if (fault.calls != 0 && machine.pmem != nullptr) {
    SetBreakpoint(world, machine, fault);
    return false;
  }
  world.CutPower(machine);
  return true;
}

bool CutPowerOfAll(World& world, const Fault& fault) {
  Machine& machine = world.machines()[fault.machine % world.machines().size()];
  const bool later = fault.calls != 0 && machine.pmem != nullptr;
  if (later) {
    SetBreakpoint(world, machine, fault);
  } else {
    world.CutPowerOfAll();
  }
  int64_t after = later ? fault.lasts_ns : fault.lasts_ns / 4;
  for (Machine& machine : world.machines()) {
    ComeBack(world, machine, after);
    after += static_cast<int64_t>(
        world.random().Below(static_cast<uint64_t>(fault.lasts_ns)));
  }
  return !later;
}

bool SlowDown(World& world, const Fault& fault) {
  Machine* const machine = fault.other % 2 == 0
                               ? WithNode(world, fault.machine)
                               : WithPrimary(world, fault.machine);
  if (machine == nullptr) return false;
  const ProcessId process = fault.other % 2 == 0 ? machine->node->process()
                                                 : machine->primary->process();
  world.threads().SetDelay(process, fault.lasts_ns / 20);
  After(world, fault.lasts_ns,
        [&world, process] { world.threads().SetDelay(process, 0); });
  return true;
}

}  // namespace

std::vector<Fault> DrawFaults(const RunOptions& options) {
  std::vector<Fault> faults;
  if (std::accumulate(options.weights.begin(), options.weights.end(), 0u) ==
      0) {
    return faults;
  }
  int64_t at = 2'000'000;
  for (int i = 0; i < options.faults; ++i) {
    Random random(Mix(options.seed, static_cast<uint64_t>(i) + 1));
    Fault fault;
    fault.number = static_cast<uint32_t>(i);
    fault.kind = DrawKind(options, random);
    at += static_cast<int64_t>(
        random.Below(static_cast<uint64_t>(options.fault_gap_ns_max)));
    fault.at_ns = at;
    fault.machine = random.Next() >> 8;
    fault.other = random.Next() >> 8;
    fault.lasts_ns =
        100'000 + static_cast<int64_t>(random.Below(
                      random.Below(4) == 0 ? 10'000'000 : 2'000'000));
    if (random.Below(3) != 0) DrawBreakpoint(fault, random);
    faults.push_back(fault);
  }
  return faults;
}

std::string Describe(const Fault& fault) {
  const std::string_view name = FaultName(fault.kind);
  return absl::StrCat("#", fault.number, " ",
                      absl::string_view(name.data(), name.size()), " at ",
                      fault.at_ns, " ns for ", fault.lasts_ns, " ns");
}

bool Inject(World& world, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kKillPrimary:
      return KillPrimary(world, fault);
    case FaultKind::kKillNode:
      return KillNode(world, fault);
    case FaultKind::kPowerCut:
      return CutPower(world, fault);
    case FaultKind::kPowerCutAll:
      return CutPowerOfAll(world, fault);
    case FaultKind::kPausePrimary:
      return PausePrimary(world, fault);
    case FaultKind::kPauseNode:
      return PauseNode(world, fault);
    case FaultKind::kCutLink:
    case FaultKind::kCutOneWay:
    case FaultKind::kIsolate:
    case FaultKind::kSlowLink:
    case FaultKind::kNoReceives:
    case FaultKind::kOverrunQueue:
    case FaultKind::kFlipInTransit:
      return InjectIntoNetwork(world, fault);
    case FaultKind::kFullRing:
    case FaultKind::kKeepReservation:
      return InjectIntoClients(world, fault);
    case FaultKind::kRival: {
      Machine& machine =
          world.machines()[fault.machine % world.machines().size()];
      if (machine.primary != nullptr || !machine.has_power) return false;
      world.StartPrimary(machine);
      return true;
    }
    case FaultKind::kClosePrimary: {
      Machine* const machine = WithPrimary(world, fault.machine);
      if (machine == nullptr || !machine->primary->is_open()) return false;
      machine->primary->Close();
      return true;
    }
    case FaultKind::kSlowMachine:
      return SlowDown(world, fault);
    case FaultKind::kClockJump:
      return InjectIntoClock(world, fault);
    case FaultKind::kExpireSession:
    case FaultKind::kCutMembership:
    case FaultKind::kDelayWatches:
    case FaultKind::kRestartMembership:
      return InjectIntoMembership(world, fault);
    case FaultKind::kSwapRegions:
    case FaultKind::kCloneRegion:
    case FaultKind::kForeignRegion:
    case FaultKind::kLoseRegion:
    case FaultKind::kWipeRegion:
    case FaultKind::kBlankRegion:
    case FaultKind::kRollBackRegion:
    case FaultKind::kFlipBit:
    case FaultKind::kPoison:
    case FaultKind::kLoseLine:
    case FaultKind::kMisdirectLine:
    case FaultKind::kMisdirectRecord:
    case FaultKind::kFailFence:
      return InjectIntoStorage(world, fault);
  }
  return false;
}

void Heal(World& world) {
  const auto count = static_cast<int>(world.machines().size());
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) world.RestoreLink(from, to);
  }
  EndNetworkFaults(world);
  CalmClients(world);
  EndStorageFaults(world);
  for (Machine& machine : world.machines()) {
    machine.breakpoint.Clear();
    world.RestorePower(machine);
    if (machine.pmem != nullptr) world.StartNode(machine);
  }
  if (world.membership() != nullptr) world.membership()->Heal();
  HealClocks(world);
  world.threads().ContinueAll();
}

}  // namespace alpheus::sim
