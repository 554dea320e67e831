// SPDX-License-Identifier: Apache-2.0
// Memory of a world's machines: what each has, what ends of processes and of
// the power leave of it, and what its platform would keep.
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/ring/format_region.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/power_cut.h"
#include "tools/sim/world/region_store.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

Platform World::PlatformOf(int machine) const {
  const auto index = static_cast<size_t>(machine);
  return index < options_.platforms.size() ? options_.platforms[index]
                                           : Platform();
}

void World::Format(int number, Model& pmem) const {
  FormatIdentity identity;
  identity.cluster_id = kClusterId;
  identity.log_id = kLogId;
  identity.node = NodeId(static_cast<uint64_t>(number) + 1);
  identity.configuration = configuration();
  ALPHEUS_CHECK(FormatRegion(pmem, pmem.region(), layout_, identity).ok(),
                "modelled memory does not fail unasked");
}

// Both adapters of the machine have it, whichever program uses it.
void World::GiveMemory(Machine& machine, std::unique_ptr<Model> pmem) {
  machine.pmem = std::move(pmem);
  machine.pmem->SetHook(
      [this, number = machine.number](const Model::Event& event) {
        OnPrimitive(machines_[static_cast<size_t>(number)], event);
      });
  for (const int host : HostsOf(machine.number)) {
    network_->AttachMemory(host, *machine.pmem);
  }
}

std::unique_ptr<World::Model> World::TakeMemory(Machine& machine) {
  if (machine.pmem == nullptr) return nullptr;
  for (const int host : HostsOf(machine.number)) {
    network_->DetachMemory(host, *machine.pmem);
  }
  machine.pmem->SetHook({});
  return std::move(machine.pmem);
}

std::unique_ptr<World::Model> World::GiveRegion(int machine,
                                                std::unique_ptr<Model> region) {
  ALPHEUS_CHECK(!machines_[machine].has_power ||
                    machines_[machine].holder == Holder::kNobody,
                "nobody has it open");
  std::unique_ptr<Model> old = TakeMemory(machines_[machine]);
  GiveMemory(machines_[machine], std::move(region));
  return old;
}

void World::ExchangeRegions(int a, int b) {
  std::unique_ptr<Model> of_b = TakeMemory(machines_[b]);
  GiveMemory(machines_[b], GiveRegion(a, std::move(of_b)));
}

bool World::LeaveRegion(Machine& machine) {
  ALPHEUS_CHECK(machine.holder == Holder::kPrimary, "it has the region");
  for (const int host : HostsOf(machine.number)) {
    if (network_->stages(host).HasInbound()) return false;
  }
  auto left = std::make_unique<Model>(layout_.region_bytes);
  left->CopyAfterKill(*machine.pmem);
  left->SetThread(machine.pmem->thread());
  machine.pmem->FailFence(0);
  for (const int host : HostsOf(machine.number)) {
    network_->DetachMemory(host, *machine.pmem);
  }
  // With its hook: threads of the primary are in the middle of it.
  KeepOldMemory(std::move(machine.pmem));
  GiveMemory(machine, std::move(left));
  machine.holder = Holder::kNobody;
  ++counters_.given_up;
  Trace(absl::StrCat("machine ", machine.number, ": replica is given up"));
  return true;
}

std::span<const std::byte> World::Medium(int number) {
  Model& pmem = *store_->medium(number);
  if (!store_->IsOwn(number)) return pmem.persistent();  // SRS1
  Machine& machine = machines_[static_cast<size_t>(number)];
  const PersistenceDomain domain = PlatformOf(number).domain;
  if (domain == PersistenceDomain::kMemory) return pmem.persistent();
  const auto visible = pmem.region();
  if (domain == PersistenceDomain::kHierarchy) return visible;
  bool is_all = true;
  for (const int host : HostsOf(number)) {
    is_all = is_all && !network_->stages(host).HasInbound();
  }
  if (is_all) return visible;
  machine.medium.assign(visible.begin(), visible.end());
  for (const int host : HostsOf(number)) {
    network_->stages(host).LandInto(machine.medium, pmem);
  }
  return machine.medium;
}

void World::LosePower(Machine& machine) {
  Trace(absl::StrCat("machine ", machine.number, ": power is cut"));
  machine.has_power = false;
  machine.trap.Clear();
  ForgetNode(machine, /*with_power=*/false);
  ForgetPrimary(machine, /*with_power=*/false);
  machine.holder = Holder::kNobody;
  for (const int host : HostsOf(machine.number)) {
    network_->LosePowerOfAdapter(host);
  }
  if (machine.pmem == nullptr) return;
  if (options_.canary == Canary::kLostFences) {
    Model formatted(layout_.region_bytes);
    Format(machine.number, formatted);
    return machine.pmem->Reset(formatted.persistent());
  }
  machine.pmem->Reset(DrawPowerCut(*machine.pmem, random_));
  checkers_->epochs.Look(machine.number);
  checkers_->holders.Look();
}

}  // namespace alpheus::sim
