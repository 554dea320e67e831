// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/membership_faults.h"

#include "tools/sim/actors/membership_service.h"

namespace alpheus::sim {
namespace {

// A machine with an application, drawn at random: its candidate comes first.
int MachineOf(World& world, const Fault& fault) {
  const auto has_application = [](const World::Machine& machine) {
    return machine.primary != nullptr;
  };
  if (fault.other % 2 == 0) {
    const World::Machine* const found =
        world.FindMachine(fault.machine, has_application);
    if (found != nullptr) return found->number;
  }
  return static_cast<int>(fault.machine % world.machines().size());
}

// The direction that is cut: to the service, from it, or both.
bool Cut(World& world, MembershipService& service, const Fault& fault) {
  const int machine = MachineOf(world, fault);
  const uint64_t way = fault.other / 2 % 4;
  const bool to = way != 0;
  const bool from = way != 1;
  if (to) service.CutTo(machine);
  if (from) service.CutFrom(machine);
  const uint64_t lost = service.lost(machine);
  world.network().Schedule(fault.lasts_ns, [=, &world, &service] {
    if (to) service.HealTo(machine);
    if (from) service.HealFrom(machine);
    if (service.lost(machine) != lost) world.Count(fault.kind);
  });
  return false;
}

bool Restart(World& world, MembershipService& service, const Fault& fault) {
  if (!service.is_up()) return false;
  service.Stop();
  const uint64_t how = fault.other % 4;
  const bool lies = fault.other / 4 % 3 == 0;
  world.network().Schedule(fault.lasts_ns, [&service, how, lies] {
    if (service.is_up()) return;
    service.Start(/*with_sessions=*/how >= 2);
    if (how != 0) return;
    if (lies) return service.Lie();
    service.RollBack();
  });
  return true;
}

}  // namespace

bool InjectIntoMembership(World& world, const Fault& fault) {
  if (world.membership() == nullptr) return false;
  MembershipService& service = *world.membership();
  switch (fault.kind) {
    case FaultKind::kExpireSession:
      return service.Expire(MachineOf(world, fault));
    case FaultKind::kCutMembership:
      return Cut(world, service, fault);
    case FaultKind::kDelayWatches:
      service.DelayWatches(world.now() + fault.lasts_ns,
                           [&world, fault] { world.Count(fault.kind); });
      return false;
    case FaultKind::kRestartMembership:
      return Restart(world, service, fault);
    default:
      return false;
  }
}

}  // namespace alpheus::sim
