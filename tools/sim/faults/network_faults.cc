// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/network_faults.h"

#include <cstddef>
#include <cstdint>

#include "tools/sim/world/region_store.h"

namespace alpheus::sim {

using model::SimNetwork;

namespace {

// Completions that still have room.
constexpr uint64_t kCompletionsMax = 1;

void CutFor(World& world, int from, int to, int64_t ns) {
  world.CutLink(from, to);
  world.network().Schedule(ns,
                           [&world, from, to] { world.HealLink(from, to); });
}

struct Pair {
  int a = 0;
  int b = 0;
};

// Two different machines: there is always one more than replicas.
Pair PairOf(World& world, const Fault& fault) {
  const size_t count = world.machines().size();
  const auto a = static_cast<int>(fault.machine % count);
  const auto b =
      static_cast<int>((fault.machine + 1 + fault.other % (count - 1)) % count);
  return {a, b};
}

bool CutLinks(World& world, const Fault& fault, bool both_ways) {
  const Pair pair = PairOf(world, fault);
  CutFor(world, pair.a, pair.b, fault.lasts_ns);
  if (both_ways) CutFor(world, pair.b, pair.a, fault.lasts_ns);
  return true;
}

bool Isolate(World& world, const Fault& fault) {
  const auto count = static_cast<int>(world.machines().size());
  const auto a = static_cast<int>(fault.machine % world.machines().size());
  for (int b = 0; b < count; ++b) {
    CutFor(world, a, b, fault.lasts_ns);
    CutFor(world, b, a, fault.lasts_ns);
  }
  return true;
}

// All adapters of both machines.
void SetDelay(World& world, const Pair& pair, int64_t ns) {
  for (const int from : world.HostsOf(pair.a)) {
    for (const int to : world.HostsOf(pair.b)) {
      world.network().SlowDown(from, to, ns);
      world.network().SlowDown(to, from, ns);
    }
  }
}

bool SlowLink(World& world, const Fault& fault) {
  const Pair pair = PairOf(world, fault);
  SetDelay(world, pair, fault.lasts_ns / 4);
  world.network().Schedule(fault.lasts_ns,
                           [&world, pair] { SetDelay(world, pair, 0); });
  return true;
}

const World::Machine& TargetOf(World& world, const Fault& fault) {
  return world.machines()[fault.machine % world.machines().size()];
}

// The node's adapter, or the application's.
int HostOf(World& world, const Fault& fault) {
  const World::Machine& machine = TargetOf(world, fault);
  const bool is_node = machine.pmem != nullptr && fault.other % 3 != 0;
  return is_node ? world.NodeHost(machine) : world.PrimaryHost(machine);
}

// Half of them so short that trying again may help.
bool HideReceives(World& world, const Fault& fault) {
  SimNetwork& network = world.network();
  const int host = HostOf(world, fault);
  const uint64_t before = network.receives_hidden(host);
  const int64_t ns =
      fault.other / 3 % 2 == 0 ? fault.lasts_ns / 20 : 2 * fault.lasts_ns;
  network.HideReceives(host, true);
  network.Schedule(ns, [&world, host, before, kind = fault.kind] {
    world.network().HideReceives(host, false);
    if (world.network().receives_hidden(host) != before) world.Count(kind);
  });
  return false;
}

bool OverrunQueue(World& world, const Fault& fault) {
  SimNetwork& network = world.network();
  const int host = HostOf(world, fault);
  const uint64_t before = network.overruns(host);
  network.LimitCompletions(host, fault.other / 3 % (kCompletionsMax + 1));
  network.Schedule(fault.lasts_ns, [&world, host, before, kind = fault.kind] {
    world.network().LimitCompletions(host);
    if (world.network().overruns(host) != before) world.Count(kind);
  });
  return false;
}

// Flips a bit of the next write or message there; counted when it happens. A
// link with a check of its own would send it again. A suspect replica gets all
// records again, in their places, so that a flip may destroy one that was
// there, like a storage fault; no other replica has such a record overwritten.
bool FlipInTransit(World& world, const Fault& fault) {
  SimNetwork& network = world.network();
  const int host = HostOf(world, fault);
  const int machine = TargetOf(world, fault).number;
  const uint64_t before = network.flips(host);
  const auto what = fault.other / 3 % 2 == 0 ? SimNetwork::Flips::kWrite
                                             : SimNetwork::Flips::kSend;
  network.FlipNext(host, what, [&world, machine, what] {
    RegionStore& store = world.store();
    const bool may_take = what == SimNetwork::Flips::kWrite &&
                          store.IsSuspect(machine) &&
                          store.medium(machine) != nullptr;
    if (may_take) store.KeepBefore(machine);
  });
  network.Schedule(fault.lasts_ns, [&world, host, before, kind = fault.kind] {
    world.network().FlipNext(host, SimNetwork::Flips::kNone);
    if (world.network().flips(host) != before) world.Count(kind);
  });
  return false;
}

}  // namespace

bool InjectIntoNetwork(World& world, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kCutLink:
      return CutLinks(world, fault, /*both_ways=*/true);
    case FaultKind::kCutOneWay:
      return CutLinks(world, fault, /*both_ways=*/false);
    case FaultKind::kIsolate:
      return Isolate(world, fault);
    case FaultKind::kSlowLink:
      return SlowLink(world, fault);
    case FaultKind::kNoReceives:
      return HideReceives(world, fault);
    case FaultKind::kOverrunQueue:
      return OverrunQueue(world, fault);
    case FaultKind::kFlipInTransit:
      return FlipInTransit(world, fault);
    default:
      return false;
  }
}

void EndNetworkFaults(World& world) {
  SimNetwork& network = world.network();
  const int hosts = network.options().hosts;
  for (int host = 0; host < hosts; ++host) {
    network.HideReceives(host, false);
    network.LimitCompletions(host);
    network.FlipNext(host, SimNetwork::Flips::kNone);
    for (int to = 0; to < hosts; ++to) network.SlowDown(host, to, 0);
  }
}

}  // namespace alpheus::sim
