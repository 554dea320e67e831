// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/storage_faults.h"

#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tools/sim/faults/fault_budget.h"
#include "tools/sim/faults/region_damage.h"
#include "tools/sim/world/region_images.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

using Machine = World::Machine;
using Content = RegionStore::Content;

// Draws until something is found that may be damaged.
constexpr int kDrawsMax = 8;

Machine& MachineOf(World& world, uint64_t drawn) {
  return world.machine(
      static_cast<int>(drawn % static_cast<uint64_t>(world.options().nodes)));
}

// The machine comes back; meanwhile no process has its region open.
void TakePower(World& world, Machine& machine, int64_t for_ns) {
  world.network().Schedule(for_ns,
                           [&world, &machine] { world.RestorePower(machine); });
  if (machine.has_power) world.CutPower(machine);
}

RegionImage ImageOf(World& world, const Machine& machine) {
  return world.store().medium(machine.number)->CutKeepingNone();
}

void PutBack(World& world, Machine& machine) {
  RegionStore& store = world.store();
  if (!store.IsMisplaced(machine.number)) return;
  for (Machine& other : world.machines()) {
    if (store.SharesFate(machine.number, other.number) && other.has_power) {
      world.CutPower(other);
      world.network().Schedule(0,
                               [&world, &other] { world.RestorePower(other); });
    }
  }
  store.PutBack(machine.number);
}

void PutBackLater(World& world, Machine& machine, int64_t after_ns) {
  world.network().Schedule(after_ns, [&world, &machine] {
    if (!world.store().IsMisplaced(machine.number)) return;
    PutBack(world, machine);
    world.RestorePower(machine);
  });
}

bool Swap(World& world, const Fault& fault) {
  Machine& a = MachineOf(world, fault.machine);
  Machine& b = MachineOf(world, fault.other);
  RegionStore& store = world.store();
  if (&a == &b || !store.IsOwn(a.number) || !store.IsOwn(b.number)) {
    return false;
  }
  TakePower(world, a, fault.lasts_ns / 4);
  TakePower(world, b, fault.lasts_ns / 4);
  store.Swap(a.number, b.number);
  PutBackLater(world, a, fault.lasts_ns);
  return true;
}

bool SetAside(World& world, const Fault& fault, Content content,
              const RegionImage& image) {
  Machine& machine = MachineOf(world, fault.machine);
  if (!world.store().IsOwn(machine.number)) return false;
  TakePower(world, machine, fault.lasts_ns / 4);
  world.store().SetAside(machine.number, content, image);
  PutBackLater(world, machine, fault.lasts_ns);
  return true;
}

bool Clone(World& world, const Fault& fault) {
  const Machine& machine = MachineOf(world, fault.machine);
  const Machine& other = MachineOf(world, fault.other);
  if (&machine == &other || world.store().medium(other.number) == nullptr) {
    return false;
  }
  return SetAside(world, fault, Content::kAlien, ImageOf(world, other));
}

// A region of the right node that is not the machine's replica.
bool MountForeign(World& world, const Fault& fault) {
  const Machine& machine = MachineOf(world, fault.machine);
  if (!world.store().IsOwn(machine.number)) return false;
  RegionImage image;
  if (fault.other % 3 == 0) {
    image = OfAnotherFormat(ImageOf(world, machine));
  } else {
    RegionIdentity identity{kClusterId, kLogId, machine.id()};
    (fault.other % 3 == 1 ? identity.log_id : identity.cluster_id).low ^= 1;
    image = FormattedRegion(identity, 100 + machine.id().value,
                            world.configuration(), world.layout());
  }
  return SetAside(world, fault, Content::kAlien, image);
}

RegionImage Blank(World& world, const Fault& fault) {
  return FormattedRegion(
      {kClusterId, kLogId, MachineOf(world, fault.machine).id()},
      /*incarnation=*/1'000 + fault.number, world.configuration(),
      world.layout());
}

bool Lose(World& world, const Fault& fault, Content content,
          const RegionImage& image) {
  Machine& machine = MachineOf(world, fault.machine);
  if (!world.store().IsOwn(machine.number) ||
      !FaultBudget(world).MayLose(machine.number)) {
    return false;
  }
  TakePower(world, machine, fault.lasts_ns);
  world.store().Lose(machine.number, content, image);
  return true;
}

bool MayRollBack(World& world, const Machine& machine,
                 const RegionImage& then) {
  if (!world.store().IsOwn(machine.number) ||
      world.store().IsHurt(machine.number)) {
    return false;
  }
  const RegionImage now = ImageOf(world, machine);
  return now != then &&
         FaultBudget(world).MayRollBack(machine.number, now, then);
}

// Rolls back as soon as nobody needs the forgotten records, within its time.
void RollBack(World& world, const Fault& fault, int64_t until_ns) {
  Machine& machine = MachineOf(world, fault.machine);
  const auto& images = world.images().of(machine.number);
  if (world.now() >= until_ns || images.empty()) return;
  if (world.store().has_ended()) return;
  const RegionImage& then = images[fault.other % images.size()];
  if (MayRollBack(world, machine, then)) {
    TakePower(world, machine, fault.lasts_ns);
    if (!MayRollBack(world, machine, then)) return;
    world.store().RollBack(machine.number, then);
    world.Count(fault.kind);
    return;
  }
  world.network().Schedule(
      fault.lasts_ns / kDrawsMax,
      [&world, fault, until_ns] { RollBack(world, fault, until_ns); });
}

// Makes one of the next fences fail, if enough come in time. Counted when
// noticed.
bool FailAFence(World& world, const Fault& fault) {
  Machine& machine = MachineOf(world, fault.machine);
  if (machine.region_user == World::RegionUser::kNobody ||
      !world.store().IsOwn(machine.number) ||
      !FaultBudget(world).MayHurt(machine.number)) {
    return false;
  }
  World::Model* const pmem = machine.pmem.get();
  pmem->FailFence(1 + fault.calls / 8);
  world.network().Schedule(fault.lasts_ns, [&machine, pmem] {
    if (machine.pmem.get() == pmem) pmem->FailFence(0);
  });
  return false;
}

// Whether the log must survive that the machine lacks this.
bool MayLack(const FaultBudget& budget, const Machine& machine,
             const RegionImage& image, const ImageLog& log,
             const Lacks& lacks) {
  for (const ImageRecord& record : log.records) {
    const auto lack = lacks.find(record.lsn.value);
    if (lack == lacks.end()) continue;
    const bool may =
        lack->second.is_proven
            ? budget.MayHurt(machine.number)
            : budget.IsSpare(machine.number, image, record, log.log_epoch);
    if (!may) return false;
  }
  return true;
}

bool DamageBytes(World& world, const Fault& fault, ByteDamage damage) {
  Machine& machine = MachineOf(world, fault.machine);
  RegionStore& store = world.store();
  if (!store.IsOwn(machine.number) || store.IsHurt(machine.number)) {
    return false;
  }
  TakePower(world, machine, fault.lasts_ns);
  const RegionImage image = ImageOf(world, machine);
  const auto& images = world.images().of(machine.number);
  const RegionImage& older =
      images.empty() ? image : images[fault.other % images.size()];
  const std::optional<ImageLog> log = ReadImage(image);
  if (!log || log->repairing) return false;
  const FaultBudget budget(world);
  for (int i = 0; i < kDrawsMax; ++i) {
    RegionImage damaged = image;
    Damage(damage, *log, world.layout(), older, world.random(), damaged);
    const std::optional<Lacks> lacks = LacksOf(*log, image, damaged);
    if (damaged == image || !lacks ||
        !MayLack(budget, machine, image, *log, *lacks)) {
      continue;
    }
    store.Damage(machine.number, damaged, *lacks);
    return true;
  }
  return false;
}

}  // namespace

void EndStorageFaults(World& world) {
  world.store().EndFaults();
  for (Machine& machine : world.machines()) {
    PutBack(world, machine);
    if (machine.pmem != nullptr) machine.pmem->FailFence(0);
  }
}

bool InjectIntoStorage(World& world, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kSwapRegions:
      return Swap(world, fault);
    case FaultKind::kCloneRegion:
      return Clone(world, fault);
    case FaultKind::kForeignRegion:
      return MountForeign(world, fault);
    case FaultKind::kLoseRegion:
      return SetAside(world, fault, Content::kAbsent,
                      RegionImage(world.layout().region_bytes));
    case FaultKind::kWipeRegion:
      return Lose(world, fault, Content::kAlien,
                  RegionImage(world.layout().region_bytes,
                              std::byte(fault.other % 2 == 0 ? 0 : 0xff)));
    case FaultKind::kBlankRegion:
      return Lose(world, fault, Content::kBlank, Blank(world, fault));
    case FaultKind::kRollBackRegion:
      RollBack(world, fault, world.now() + fault.lasts_ns);
      return false;
    case FaultKind::kFlipBit:
      return DamageBytes(world, fault, ByteDamage::kFlipBit);
    case FaultKind::kPoison:
      return DamageBytes(world, fault, ByteDamage::kPoison);
    case FaultKind::kLoseLine:
      return DamageBytes(world, fault, ByteDamage::kLostLine);
    case FaultKind::kMisdirectLine:
      return DamageBytes(world, fault, ByteDamage::kMisdirectLine);
    case FaultKind::kMisdirectRecord:
      return DamageBytes(world, fault, ByteDamage::kMisdirectRecord);
    case FaultKind::kFailFence:
      return FailAFence(world, fault);
    default:
      return false;
  }
}

}  // namespace alpheus::sim
